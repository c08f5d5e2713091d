//! The queue of a block device: takes requests from the driver, gives them to the front, and gives the driver the answers.
//!
//! ```text
//!   with the driver ──request──► with the drive ──answer──► with the driver
//!         └──────────────── device taken away ────────────────► ended
//! ```
//! One thread owns the queue, as the driver demands. Without a pace it also serves the requests; with one the pacer
//! leaves its answers in a list and wakes this thread over a socket, which the ring watches.
//!
//! Invariants:
//! 1. Each tag is in one of the three states above; only this thread changes it.
//! 2. A tag's buffer is touched here only while the tag is with the drive, and by the driver only while it is not.
//! 3. The thread ends when every tag has ended.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use imbrex_device::{DeviceError, Io, IoKind};
use io_uring::{cqueue, opcode, squeue, types, IoUring};
use memmap2::{MmapMut, MmapOptions, MmapRaw};

use super::abi::{command, operation, Descriptor, QueueCommand, ABORTED, KERNEL_SECTOR_BYTES, QUEUE_DEPTH_MAX};
use super::control::in_request;
use crate::front::{Answer, Front, Target};

/// How a wake-up is told from the answer to a command, which carries its tag.
const WAKE: u64 = u64::MAX;

/// Sizes and opcodes that were agreed on with the driver.
#[derive(Clone, Copy, Debug)]
pub struct Agreed {
    /// Requests at once.
    pub depth: u16,
    /// Bytes of a request that carries any, at most.
    pub request_bytes_max: usize,
    /// Opcode for a first request.
    pub fetch: u32,
    /// Opcode for an answer and the next request.
    pub commit_and_fetch: u32,
}

impl Agreed {
    /// With opcodes as the driver knows them.
    pub fn new(depth: u16, request_bytes_max: usize, opcode: impl Fn(u32) -> u32) -> Agreed {
        Agreed {
            depth,
            request_bytes_max,
            fetch: opcode(command::FETCH),
            commit_and_fetch: opcode(command::COMMIT_AND_FETCH),
        }
    }
}

/// Where the pacer leaves answers.
struct Answers {
    waiting: Mutex<VecDeque<Answer>>,
    waker: UnixStream,
}

impl Target for Answers {
    fn answer(&self, answer: Answer) {
        let mut waiting = self.waiting.lock().expect("no thread panics while it holds the answers");
        waiting.push_back(answer);
        if waiting.len() == 1 {
            // A socket that is full wakes the queue as well as one more byte would.
            let _ = (&self.waker).write(&[0]);
        }
    }
}

/// The queue of one device.
pub struct Queue {
    front: Arc<Front>,
    agreed: Agreed,
    device: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    descriptors: MmapRaw,
    buffers: MmapMut,
    answers: Arc<Answers>,
    target: Arc<dyn Target>,
    woken: UnixStream,
    /// Buffers to be filled again.
    spare: Vec<Vec<u8>>,
    ended: u16,
}

impl Queue {
    /// The queue of the device behind the character device `device`. To be made in the thread that runs it.
    pub fn new(front: Arc<Front>, device: File, agreed: Agreed) -> io::Result<Queue> {
        assert!(usize::from(agreed.depth) <= QUEUE_DEPTH_MAX, "the driver has no deeper queues");
        let depth = usize::from(agreed.depth);
        // One entry for each tag, one for the socket: a ring that never is full.
        let ring = IoUring::builder().build((depth as u32 + 1).next_power_of_two())?;
        let descriptors =
            MmapOptions::new().len(depth * size_of::<Descriptor>()).populate().map_raw_read_only(&device)?;
        let buffers = MmapMut::map_anon(depth * agreed.request_bytes_max)?;
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let answers = Arc::new(Answers { waiting: Mutex::default(), waker });
        let target: Arc<dyn Target> = answers.clone();
        let spare = Vec::with_capacity(depth);
        Ok(Queue { front, agreed, device, ring, descriptors, buffers, answers, target, woken, spare, ended: 0 })
    }

    /// Serves until the device is taken away.
    pub fn run(mut self) -> io::Result<()> {
        for tag in 0..self.agreed.depth {
            self.tell_driver(self.agreed.fetch, tag, 0);
        }
        self.watch_for_answers();
        let mut events = Vec::with_capacity(usize::from(self.agreed.depth) + 1);
        while self.ended < self.agreed.depth {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            events.extend(self.ring.completion().map(|event| (event.user_data(), event.result())));
            for (which, result) in events.drain(..) {
                match (which, result) {
                    (WAKE, _) => self.take_answers()?,
                    (tag, 0) => self.serve(tag as u16),
                    (_, ABORTED) => self.ended += 1,
                    (_, error) => return Err(io::Error::from_raw_os_error(-error)),
                }
            }
        }
        Ok(())
    }

    fn descriptor(&self, tag: u16) -> Descriptor {
        assert!(tag < self.agreed.depth, "the driver names tag {tag} of {}", self.agreed.depth);
        #[expect(unsafe_code, reason = "memory shared with the driver")]
        // SAFETY: the mapping has one descriptor for each tag, page-aligned; while the tag is with the drive nobody
        // writes to it, and any bytes are valid as its numbers.
        unsafe {
            self.descriptors.as_ptr().cast::<Descriptor>().add(usize::from(tag)).read_volatile()
        }
    }

    fn buffer(&mut self, tag: u16, bytes: usize) -> &mut [u8] {
        let first = usize::from(tag) * self.agreed.request_bytes_max;
        &mut self.buffers[first..first + bytes]
    }

    /// Begins to serve the request with `tag`.
    fn serve(&mut self, tag: u16) {
        let asked = self.descriptor(tag);
        let length = u64::from(asked.sectors) * KERNEL_SECTOR_BYTES;
        let Some(kind) = kind_of(asked.operation_and_flags, self.front.facts().trims_to_zeros) else {
            return self.commit(tag, -libc::EOPNOTSUPP);
        };
        let mut buffer = self.spare.pop().unwrap_or_default();
        let operation = asked.operation_and_flags & 0xff;
        if operation == operation::WRITE {
            buffer.clear();
            buffer.extend_from_slice(self.buffer(tag, length as usize));
        } else if matches!(kind, IoKind::Write { .. }) {
            buffer.clear();
            buffer.resize(length as usize, 0);
        }
        let (offset, length) =
            if kind == IoKind::Flush { (0, 0) } else { (asked.sector * KERNEL_SECTOR_BYTES, length) };
        let io = Io { tag: u64::from(tag), kind, offset, length, buffer };
        if self.front.is_unpaced() {
            let answer = self.front.serve(io);
            self.answer(answer);
        } else {
            self.front.submit(io, &self.target);
        }
    }

    /// Gives the driver an answer.
    fn answer(&mut self, answer: Answer) {
        let Answer { tag, buffer, outcome } = answer;
        let tag = tag as u16;
        let asked = self.descriptor(tag);
        let result = match outcome {
            Ok(()) if asked.operation_and_flags & 0xff == operation::READ => {
                self.buffer(tag, buffer.len()).copy_from_slice(&buffer);
                buffer.len() as i32
            }
            Ok(()) if asked.operation_and_flags & 0xff == operation::WRITE => {
                (u64::from(asked.sectors) * KERNEL_SECTOR_BYTES) as i32
            }
            Ok(()) => 0,
            Err(error) => -errno_of(&error),
        };
        self.spare.push(buffer);
        self.commit(tag, result);
    }

    fn commit(&mut self, tag: u16, result: i32) {
        self.tell_driver(self.agreed.commit_and_fetch, tag, result);
    }

    fn tell_driver(&mut self, opcode: u32, tag: u16, result: i32) {
        let address = self.buffers.as_ptr() as u64 + u64::from(tag) * self.agreed.request_bytes_max as u64;
        let words = QueueCommand { queue: 0, tag, result, address };
        let entry = opcode::UringCmd80::new(types::Fd(self.device.as_raw_fd()), opcode)
            .cmd(in_request(&words))
            .build()
            .user_data(u64::from(tag));
        self.push(&entry);
    }

    fn watch_for_answers(&mut self) {
        let poll = opcode::PollAdd::new(types::Fd(self.woken.as_raw_fd()), libc::POLLIN as u32).build();
        self.push(&squeue::Entry128::from(poll.user_data(WAKE)));
    }

    fn push(&mut self, entry: &squeue::Entry128) {
        #[expect(unsafe_code, reason = "a request to io_uring is one by its nature")]
        // SAFETY: the buffers and the files that requests name belong to the queue. When it is dropped, every tag has
        // ended, or the ring has failed and the process ends.
        unsafe {
            self.ring.submission().push(entry).expect("the ring has room for every tag and the socket");
        }
    }

    /// Gives the driver what the pacer has answered.
    fn take_answers(&mut self) -> io::Result<()> {
        let mut bytes = [0; 64];
        // To have read all is enough: the list is looked at afterwards.
        while matches!(self.woken.read(&mut bytes), Ok(read) if read == bytes.len()) {}
        let waiting =
            std::mem::take(&mut *self.answers.waiting.lock().map_err(|_| io::Error::other("the pacer died"))?);
        for answer in waiting {
            self.answer(answer);
        }
        self.watch_for_answers();
        Ok(())
    }
}

/// What a request of the block layer is to the drive.
fn kind_of(operation_and_flags: u32, trims_to_zeros: bool) -> Option<IoKind> {
    let fua = operation_and_flags & operation::FUA != 0;
    let stays = operation_and_flags & operation::NO_UNMAP != 0;
    match operation_and_flags & 0xff {
        operation::READ => Some(IoKind::Read),
        operation::WRITE => Some(IoKind::Write { fua }),
        operation::FLUSH => Some(IoKind::Flush),
        operation::DISCARD => Some(IoKind::Trim),
        operation::WRITE_ZEROES if trims_to_zeros && !stays && !fua => Some(IoKind::Trim),
        operation::WRITE_ZEROES => Some(IoKind::Write { fua }),
        _ => None,
    }
}

/// What the block layer calls an error.
fn errno_of(error: &DeviceError) -> i32 {
    match error {
        DeviceError::Medium { cause, .. } if cause.kind() == io::ErrorKind::StorageFull => libc::ENOSPC,
        DeviceError::Medium { .. } | DeviceError::Destroyed { .. } | DeviceError::Stopped(_) => libc::EIO,
        DeviceError::Image { .. } | DeviceError::Damaged { .. } | DeviceError::Replay(_) => libc::EIO,
        DeviceError::ReadOnly => libc::EPERM,
        DeviceError::PastEnd { .. } => libc::ENOSPC,
        DeviceError::Refused(_) | DeviceError::Zone(_) => libc::EINVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroes_are_a_trim_only_where_that_reads_as_zeros_and_nobody_wants_the_place_kept() {
        let zeroes = operation::WRITE_ZEROES;
        assert_eq!(kind_of(zeroes, true), Some(IoKind::Trim));
        assert_eq!(kind_of(zeroes, false), Some(IoKind::Write { fua: false }));
        assert_eq!(kind_of(zeroes | operation::NO_UNMAP, true), Some(IoKind::Write { fua: false }));
        assert_eq!(kind_of(zeroes | operation::FUA, true), Some(IoKind::Write { fua: true }));
    }

    #[test]
    fn what_the_drive_does_not_know_is_refused() {
        assert_eq!(kind_of(operation::WRITE | operation::FUA, true), Some(IoKind::Write { fua: true }));
        assert_eq!(kind_of(4, true), None);
        assert_eq!(kind_of(13, true), None);
    }
}
