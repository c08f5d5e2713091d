//! The clock of a kernel in virtual time, by Linux's interface for it (`include/uapi/linux/um_timetravel.h`, version 2
//! of its shared memory).
//!
//! The guest runs up to a time that is given to it, then asks for a time at which to go on, and waits. Its clock and its
//! next event lie in memory that both sides map, so few messages are sent.
//!
//! Invariants:
//! 1. Exactly one side runs: the guest between [`Calendar::run`] and its message `WAIT`, and this process otherwise.
//! 2. Time does not go back.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use imbrex_disk::SimTime;
use imbrex_serve::vhost_user::message::send_with_fds;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// Operations of messages.
mod operation {
    pub(super) const ACK: u32 = 0;
    pub(super) const START: u32 = 1;
    pub(super) const REQUEST: u32 = 2;
    pub(super) const WAIT: u32 = 3;
    pub(super) const GET: u32 = 4;
    pub(super) const UPDATE: u32 = 5;
    pub(super) const RUN: u32 = 6;
    pub(super) const GET_TIME_OF_DAY: u32 = 8;
    pub(super) const BROADCAST: u32 = 9;
}

/// Version of the layout of the shared memory.
const VERSION: u32 = 2;
/// Bytes before the clients' parts of the shared memory, and bytes of each part.
const HEAD_BYTES: usize = 4096;
const CLIENT_BYTES: usize = 128;
/// This process and the guest.
const CLIENTS: usize = 2;
/// Numbers of the clients.
const OURS: u16 = 0;
const GUESTS: u16 = 1;
/// Offsets of fields in the head.
const LENGTH_AT: usize = 4;
const FREE_UNTIL_AT: usize = 8;
const NOW_AT: usize = 16;
const RUNNING_AT: usize = 24;
const CLIENTS_AT: usize = 26;
/// Offsets of fields in a client's part.
const CAPABILITIES_AT: usize = 0;
const FLAGS_AT: usize = 4;
const WANTED_AT: usize = 8;
/// A client that uses the shared memory.
const SHARES_TIME: u32 = 1;
/// A client that asks for a time at which to run.
const HAS_REQUEST: u32 = 1;
/// Time for which a guest asks that waits for nothing but an interrupt.
const FOREVER: u64 = i64::MAX as u64;

/// Message of the interface: operation, number, time in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Message {
    operation: u32,
    number: u32,
    time: u64,
}

impl Message {
    const BYTES: usize = 16;

    fn receive(mut socket: &UnixStream) -> io::Result<Option<Message>> {
        let mut bytes = [0; Message::BYTES];
        match socket.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let word = |from: usize| u32::from_ne_bytes(bytes[from..from + 4].try_into().expect("four bytes"));
        let time = u64::from_ne_bytes(bytes[8..].try_into().expect("eight bytes"));
        Ok(Some(Message { operation: word(0), number: word(4), time }))
    }

    fn bytes(self) -> [u8; Message::BYTES] {
        let mut bytes = [0; Message::BYTES];
        bytes[..4].copy_from_slice(&self.operation.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.number.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }
}

/// The effect of a message of the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// None that concerns the caller.
    Nothing,
    /// The guest has stopped, and waits for its turn.
    Waits,
    /// The guest wrote this number to `/sys/kernel/um-ext-time/bc-message`.
    Mark(u64),
    /// The kernel has ended.
    Ended,
}

/// The clock of one guest.
pub(crate) struct Calendar {
    socket: UnixStream,
    memory: MmapRaw,
    /// Kept open for the guest.
    _file: OwnedFd,
    time_of_day_ns: u64,
    next_number: u32,
}

impl Calendar {
    /// Begins the clock of the guest that has connected over `socket`, at time zero. The guest's time of day then is
    /// `time_of_day_ns`, in nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// The socket fails, the guest does not speak the interface, or memory cannot be shared.
    pub(crate) fn begin(socket: UnixStream, time_of_day_ns: u64) -> io::Result<Calendar> {
        let length = HEAD_BYTES + CLIENTS * CLIENT_BYTES;
        let file = memfd_create("calendar", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, length as u64)?;
        let memory = MmapOptions::new().len(length).map_raw(&file)?;
        let log = std::fs::File::options().write(true).open("/dev/null")?;
        let calendar = Calendar { socket, memory, _file: file, time_of_day_ns, next_number: 1 };
        calendar.set::<u32>(0, VERSION);
        calendar.set::<u32>(LENGTH_AT, length as u32);
        calendar.set::<u16>(CLIENTS_AT, CLIENTS as u16);
        calendar.set::<u16>(RUNNING_AT, GUESTS);
        calendar.set::<u32>(client(OURS) + CAPABILITIES_AT, SHARES_TIME);
        let start = Message::receive(&calendar.socket)?.filter(|message| message.operation == operation::START);
        let start = start.ok_or_else(|| io::Error::other("the kernel did not begin with its clock"))?;
        let answer = Message { operation: operation::ACK, time: u64::from(GUESTS), ..start };
        send_with_fds(&calendar.socket, &answer.bytes(), &[calendar._file.as_fd(), log.as_fd()])?;
        Ok(calendar)
    }

    /// Returns the socket, to wait for messages.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives one message of the guest and answers it.
    ///
    /// # Errors
    ///
    /// The socket fails, or the message is unknown.
    pub(crate) fn hear(&mut self) -> io::Result<Heard> {
        let Some(message) = Message::receive(&self.socket)? else { return Ok(Heard::Ended) };
        let mut answer = Message { operation: operation::ACK, ..message };
        let heard = match message.operation {
            operation::WAIT => {
                self.set::<u16>(RUNNING_AT, OURS);
                // A guest that shares the memory expects no answer.
                return Ok(Heard::Waits);
            }
            // A request for an interrupt while this process runs.
            operation::REQUEST => {
                self.set::<u64>(client(GUESTS) + WANTED_AT, message.time);
                let flags = self.get::<u32>(client(GUESTS) + FLAGS_AT);
                self.set::<u32>(client(GUESTS) + FLAGS_AT, flags | HAS_REQUEST);
                Heard::Nothing
            }
            operation::GET => {
                answer.time = self.now().0;
                Heard::Nothing
            }
            operation::UPDATE => {
                self.set::<u64>(NOW_AT, message.time);
                Heard::Nothing
            }
            operation::GET_TIME_OF_DAY => {
                answer.time = self.time_of_day_ns;
                Heard::Nothing
            }
            operation::BROADCAST => Heard::Mark(message.time),
            // The answer to a message of this process.
            operation::ACK => return Ok(Heard::Nothing),
            other => return Err(io::Error::other(format!("the kernel sent an unknown message to its clock: {other}"))),
        };
        self.socket.write_all(&answer.bytes())?;
        Ok(heard)
    }

    /// Returns whether the guest runs.
    pub(crate) fn is_guest_running(&self) -> bool {
        self.get::<u16>(RUNNING_AT) == GUESTS
    }

    /// Returns the time: that of the guest's latest request to a drive if the guest runs, and otherwise that which
    /// [`Calendar::set_now`] set.
    pub(crate) fn now(&self) -> SimTime {
        SimTime(self.get(NOW_AT))
    }

    /// Sets the time while the guest waits.
    pub(crate) fn set_now(&self, now: SimTime) {
        assert!(now >= self.now(), "time goes back, from {} to {} ns: invariant 2", self.now().0, now.0);
        self.set(NOW_AT, now.0);
    }

    /// Returns the time at which the waiting guest asks to go on; `None` if it waits for an interrupt only.
    pub(crate) fn wanted(&self) -> Option<SimTime> {
        let has_request = self.get::<u32>(client(GUESTS) + FLAGS_AT) & HAS_REQUEST != 0;
        let wanted: u64 = self.get(client(GUESTS) + WANTED_AT);
        (has_request && wanted < FOREVER).then_some(SimTime(wanted))
    }

    /// Permits the running guest to go on without asking as long as its time is before `until`.
    pub(crate) fn permit_until(&self, until: SimTime) {
        self.set(FREE_UNTIL_AT, until.0.min(FOREVER));
    }

    /// Lets the waiting guest run from time `now` on. It goes on without asking as long as its time is before `until`.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub(crate) fn run(&mut self, now: SimTime, until: SimTime) -> io::Result<()> {
        self.set_now(now);
        self.permit_until(until);
        self.set::<u16>(RUNNING_AT, GUESTS);
        let message = Message { operation: operation::RUN, number: self.next_number, time: now.0 };
        self.next_number = self.next_number.wrapping_add(1);
        self.socket.write_all(&message.bytes())
    }

    fn get<T: Copy>(&self, at: usize) -> T {
        assert!(at + size_of::<T>() <= self.memory.len() && at.is_multiple_of(align_of::<T>()));
        #[expect(unsafe_code, reason = "memory shared with the guest")]
        // SAFETY: the field lies in the mapping and is aligned. Any bytes are valid as a number. The other side writes
        // whole aligned numbers.
        unsafe {
            self.memory.as_ptr().add(at).cast::<T>().read_volatile()
        }
    }

    fn set<T: Copy>(&self, at: usize, value: T) {
        assert!(at + size_of::<T>() <= self.memory.len() && at.is_multiple_of(align_of::<T>()));
        #[expect(unsafe_code, reason = "memory shared with the guest")]
        // SAFETY: the field lies in the mapping and is aligned, and only one side writes it at a time.
        unsafe {
            self.memory.as_mut_ptr().add(at).cast::<T>().write_volatile(value);
        }
    }
}

/// Returns the offset of a client's part of the shared memory.
fn client(number: u16) -> usize {
    HEAD_BYTES + usize::from(number) * CLIENT_BYTES
}
