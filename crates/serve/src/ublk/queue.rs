//! The queue of a block device: takes requests from the driver, passes them to the front, and returns the answers to the driver.
//!
//! ```text
//!   with the driver ──request──► with the drive ──answer──► with the driver
//!         └──────────────── device taken away ────────────────► ended
//! ```
//! One thread owns the queue, as the driver demands. Without a pace the thread also serves the requests. With a pace,
//! the pacer puts its answers into a list and wakes this thread over a socket, which the ring watches. Further rules
//! for zones are in `crate::zones`.
//!
//! Invariants:
//! 1. Each tag is in one of the three states above; only this thread changes its state.
//! 2. This process touches the bytes of a tag only while the tag is with the drive, and the driver only while it is not.
//! 3. The thread ends when every tag has ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use imbrex_device::zoned::{Condition, Zone, ZoneError};
use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use memmap2::{MmapMut, MmapOptions, MmapRaw};

use super::abi::{ABORTED, KERNEL_SECTOR_BYTES, QUEUE_DEPTH_MAX};
use super::abi::{Descriptor, KernelZone, QueueCommand, bytes_offset, command, operation, zone_condition, zone_kind};
use super::control::in_request;
use crate::answers::Answers;
use crate::drive_server::{Answer, DriveServer, Target, backdate};
use crate::zones::{Operation, Ruling, ZoneRequest, Zones};

/// User data of a wake-up in the ring; other events carry a tag.
const WAKE: u64 = u64::MAX;

/// Sizes and opcodes agreed on with the driver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    /// Depth of the queue: the maximum number of requests in flight.
    pub depth: u16,
    /// Maximum number of data bytes of one request.
    pub request_bytes_max: usize,
    /// Opcode for [`command::FETCH`] (asks for the first request of a tag) that this kernel's driver understands.
    pub fetch: u32,
    /// Opcode for [`command::COMMIT_AND_FETCH`] (returns a result, asks for the next request) that this kernel's driver
    /// understands.
    pub commit_and_fetch: u32,
}

impl Agreed {
    /// Creates the agreement; `opcode` returns the opcode that the driver uses for a command.
    pub(super) fn new(depth: u16, request_bytes_max: usize, opcode: impl Fn(u32) -> u32) -> Agreed {
        Agreed {
            depth,
            request_bytes_max,
            fetch: opcode(command::FETCH),
            commit_and_fetch: opcode(command::COMMIT_AND_FETCH),
        }
    }
}

/// The place of the requests' bytes.
enum Room {
    /// Buffers of this process, one range for each tag, which the driver fills and empties.
    Ours(MmapMut),
    /// Memory of the driver, which is read and written through the character device. Zoned devices use this.
    Drivers,
}

/// The queue of a device.
pub(super) struct Queue {
    front: Arc<DriveServer>,
    agreed: Agreed,
    device: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    descriptors: MmapRaw,
    room: Room,
    zones: Option<Zones>,
    /// First sector of the append with each tag.
    appended: Vec<u64>,
    /// Tags of the requests in flight in a paced drive, by the drive's numbers.
    in_flight: BTreeMap<u64, u16>,
    answers: Arc<Answers>,
    target: Arc<dyn Target>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    ended: u16,
    /// Lateness of the latest answer.
    late: Duration,
}

impl Queue {
    /// Creates the queue of the device behind the character device `device`. Must be called in the thread that runs the
    /// queue.
    pub(super) fn new(front: Arc<DriveServer>, device: File, agreed: Agreed) -> io::Result<Queue> {
        assert!(usize::from(agreed.depth) <= QUEUE_DEPTH_MAX, "the driver has no deeper queues");
        let depth = usize::from(agreed.depth);
        // One entry for each tag and one for the socket: such a ring is never full.
        let ring = IoUring::builder().build((depth as u32 + 1).next_power_of_two())?;
        let descriptors =
            MmapOptions::new().len(depth * size_of::<Descriptor>()).populate().map_raw_read_only(&device)?;
        let zones = front.facts().zones.map(Zones::new);
        let room = match zones {
            Some(_) => Room::Drivers,
            None => Room::Ours(MmapMut::map_anon(depth * agreed.request_bytes_max)?),
        };
        let appended = vec![0; depth];
        let answers = Answers::new()?;
        let target: Arc<dyn Target> = answers.clone();
        let spare = Vec::with_capacity(depth);
        let ended = 0;
        Ok(Queue {
            front,
            agreed,
            device,
            ring,
            descriptors,
            room,
            zones,
            appended,
            in_flight: BTreeMap::new(),
            answers,
            target,
            spare,
            ended,
            late: Duration::ZERO,
        })
    }

    /// Serves requests until the device is removed.
    pub(super) fn run(mut self) -> io::Result<()> {
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
        // SAFETY: the mapping has one descriptor for each tag, page-aligned. While the tag is with the drive nobody
        // writes to it, and any bytes are valid as its numbers.
        unsafe {
            self.descriptors.as_ptr().cast::<Descriptor>().add(usize::from(tag)).read_volatile()
        }
    }

    /// Copies the bytes that the host sends with the request into `buffer`.
    fn take_bytes(&mut self, tag: u16, length: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        let first = usize::from(tag) * self.agreed.request_bytes_max;
        match &self.room {
            Room::Ours(room) => buffer.extend_from_slice(&room[first..first + length]),
            Room::Drivers => {
                buffer.resize(length, 0);
                self.device.read_exact_at(buffer, bytes_offset(tag))?;
            }
        }
        Ok(())
    }

    /// Copies the bytes of an answer to the host.
    fn give_bytes(&mut self, tag: u16, bytes: &[u8]) -> io::Result<()> {
        let first = usize::from(tag) * self.agreed.request_bytes_max;
        match &mut self.room {
            Room::Ours(room) => room[first..first + bytes.len()].copy_from_slice(bytes),
            Room::Drivers => self.device.write_all_at(bytes, bytes_offset(tag))?,
        }
        Ok(())
    }

    /// Serves the request with `tag`, or queues it for its zone.
    fn serve(&mut self, tag: u16) {
        let asked = self.descriptor(tag);
        let may_begin = match (&mut self.zones, of_zones(&asked)) {
            (Some(zones), Some(request)) => zones.enter(u32::from(tag), &request),
            _ => true,
        };
        if may_begin {
            self.begin(tag, &asked);
        }
    }

    /// Returns the next step for a request. On a drive without zones every request goes to the drive unchanged.
    fn rule(&self, asked: &Descriptor) -> Result<Ruling, DeviceError> {
        if asked.operation_and_flags & 0xff == operation::FLUSH {
            // The sector number of a flush is undefined, and may lie past the end.
            return Ok(Ruling::Serve { offset: 0, length: 0 });
        }
        let length = u64::from(asked.sectors) * KERNEL_SECTOR_BYTES;
        match (&self.zones, of_zones(asked)) {
            (Some(zones), Some(request)) => {
                if self.front.facts().read_only && !matches!(request.operation, Operation::Read | Operation::Report) {
                    return Err(DeviceError::ReadOnly);
                }
                self.front.with(|drive, _| zones.rule(&request, drive))
            }
            _ => Ok(Ruling::Serve { offset: asked.sector * KERNEL_SECTOR_BYTES, length }),
        }
    }

    fn begin(&mut self, tag: u16, asked: &Descriptor) {
        match self.rule(asked) {
            Ok(Ruling::Serve { offset, length }) => self.submit(tag, asked, offset, length),
            Ok(Ruling::Done) => self.end_with_bytes(tag, asked, Vec::new()),
            Ok(Ruling::Report { first, count }) => {
                let count = count.min((self.agreed.request_bytes_max / size_of::<KernelZone>()) as u32);
                let bytes = self.front.with(|drive, _| report(drive, first, count));
                self.end_with_bytes(tag, asked, bytes);
            }
            Err(error) => self.commit(tag, -errno_of(&error)),
        }
    }

    fn submit(&mut self, tag: u16, asked: &Descriptor, offset: u64, length: u64) {
        let operation = asked.operation_and_flags & 0xff;
        let Some(kind) = kind_of(asked.operation_and_flags, self.front.facts().trims_to_zeros) else {
            return self.commit(tag, -libc::EOPNOTSUPP);
        };
        let mut buffer = self.spare.pop().unwrap_or_default();
        if operation == operation::WRITE || operation == operation::ZONE_APPEND {
            if self.take_bytes(tag, length as usize, &mut buffer).is_err() {
                return self.commit(tag, -libc::EIO);
            }
            self.appended[usize::from(tag)] = offset / KERNEL_SECTOR_BYTES;
        } else if matches!(kind, IoKind::Write { .. }) {
            buffer.clear();
            buffer.resize(length as usize, 0);
        }
        let io = Io { kind, offset, length, buffer };
        if self.front.is_unpaced() {
            let answer = self.front.serve(io);
            return self.answer(tag, answer);
        }
        let (arrived, in_flight) = (backdate(Instant::now(), self.late), &mut self.in_flight);
        let accepted = |number| {
            in_flight.insert(number, tag);
        };
        if let Err(error) = self.front.submit(io, arrived, &self.target, accepted) {
            self.answer(tag, Answer::refused(Vec::new(), error));
        }
    }

    /// Returns the answer to the request with `tag` to the driver.
    fn answer(&mut self, tag: u16, answer: Answer) {
        let Answer { buffer, outcome, due } = answer;
        self.late = due.elapsed();
        let asked = self.descriptor(tag);
        match outcome {
            Ok(()) => match asked.operation_and_flags & 0xff {
                operation::READ => return self.end_with_bytes(tag, &asked, buffer),
                operation::WRITE => self.commit(tag, (u64::from(asked.sectors) * KERNEL_SECTOR_BYTES) as i32),
                _ => self.commit(tag, 0),
            },
            Err(error) => self.commit(tag, -errno_of(&error)),
        }
        self.spare.push(buffer);
    }

    /// Answers with `bytes`, padded with zeros to the length of a read.
    fn end_with_bytes(&mut self, tag: u16, asked: &Descriptor, mut bytes: Vec<u8>) {
        let result = match asked.operation_and_flags & 0xff {
            operation::READ => {
                bytes.resize((u64::from(asked.sectors) * KERNEL_SECTOR_BYTES) as usize, 0);
                bytes.len() as i32
            }
            // Only the driver knows the length that it requested, and takes no more. It would repeat the request after
            // a shorter report.
            operation::REPORT_ZONES => self.agreed.request_bytes_max as i32,
            _ => 0,
        };
        let given = if bytes.is_empty() { Ok(()) } else { self.give_bytes(tag, &bytes) };
        self.spare.push(bytes);
        self.commit(tag, if given.is_ok() { result } else { -libc::EIO });
    }

    /// Returns the result to the driver, and starts the next request that waited for the zone.
    fn commit(&mut self, tag: u16, result: i32) {
        let asked = self.descriptor(tag);
        self.tell_driver(self.agreed.commit_and_fetch, tag, result);
        let next = match (&mut self.zones, of_zones(&asked)) {
            (Some(zones), Some(request)) => zones.leave(&request),
            _ => None,
        };
        if let Some(next) = next.map(|next| next as u16) {
            let asked = self.descriptor(next);
            self.begin(next, &asked);
        }
    }

    fn tell_driver(&mut self, opcode: u32, tag: u16, result: i32) {
        let address = match &self.room {
            Room::Ours(room) => room.as_ptr() as u64 + u64::from(tag) * self.agreed.request_bytes_max as u64,
            // The driver takes no address here, except from an append.
            Room::Drivers if opcode == self.agreed.fetch => 0,
            Room::Drivers => match self.descriptor(tag).operation_and_flags & 0xff {
                operation::ZONE_APPEND => self.appended[usize::from(tag)],
                _ => 0,
            },
        };
        let words = QueueCommand { queue: 0, tag, result, address };
        let entry = opcode::UringCmd80::new(types::Fd(self.device.as_raw_fd()), opcode)
            .cmd(in_request(&words))
            .build()
            .user_data(u64::from(tag));
        self.push(&entry);
    }

    fn watch_for_answers(&mut self) {
        let poll = opcode::PollAdd::new(types::Fd(self.answers.woken.as_raw_fd()), libc::POLLIN as u32).build();
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

    /// Returns the pacer's answers to the driver.
    fn take_answers(&mut self) -> io::Result<()> {
        for (number, answer) in self.answers.take()? {
            let tag = self.in_flight.remove(&number).expect("each request is recorded before its answer");
            self.answer(tag, answer);
        }
        self.watch_for_answers();
        Ok(())
    }
}

/// Returns a request as one to zones; `None` if zones do not concern it.
fn of_zones(asked: &Descriptor) -> Option<ZoneRequest> {
    let operation = match asked.operation_and_flags & 0xff {
        operation::READ => Operation::Read,
        operation::WRITE => Operation::Write,
        operation::ZONE_APPEND => Operation::Append,
        operation::REPORT_ZONES => Operation::Report,
        operation::ZONE_OPEN => Operation::Open,
        operation::ZONE_CLOSE => Operation::Close,
        operation::ZONE_FINISH => Operation::Finish,
        operation::ZONE_RESET => Operation::Reset,
        operation::ZONE_RESET_ALL => Operation::ResetAll,
        _ => return None,
    };
    Some(ZoneRequest { operation, sector: asked.sector, sectors: asked.sectors })
}

/// Returns a report of `count` zones from zone `first` on, in the block layer's format.
fn report(drive: &EmulatedDrive, first: u32, count: u32) -> Vec<u8> {
    let mut zones = Vec::with_capacity(count as usize);
    drive.report_zones(first, count, &mut zones);
    let scale = u64::from(drive.sector_bytes()) / KERNEL_SECTOR_BYTES;
    let mut bytes = Vec::with_capacity(zones.len() * size_of::<KernelZone>());
    for zone in &zones {
        let kernel = kernel_zone(zone, scale);
        for number in [kernel.start, kernel.length, kernel.pointer] {
            bytes.extend_from_slice(&number.to_ne_bytes());
        }
        bytes.extend_from_slice(&[kernel.kind, kernel.condition, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&kernel.capacity.to_ne_bytes());
        bytes.extend_from_slice(&kernel.reserved_end);
    }
    bytes
}

/// Returns a zone in the block layer's format, whose sectors are smaller than the drive's by the factor `scale`.
fn kernel_zone(zone: &Zone, scale: u64) -> KernelZone {
    let (start, length) = (zone.start.0 * scale, zone.sectors.0 * scale);
    let condition = match zone.condition {
        Condition::Conventional => zone_condition::NO_POINTER,
        Condition::Empty => zone_condition::EMPTY,
        Condition::ImplicitlyOpen => zone_condition::IMPLICITLY_OPEN,
        Condition::ExplicitlyOpen => zone_condition::EXPLICITLY_OPEN,
        Condition::Closed => zone_condition::CLOSED,
        Condition::Full => zone_condition::FULL,
        Condition::ReadOnly => zone_condition::READ_ONLY,
        Condition::Offline => zone_condition::OFFLINE,
    };
    let is_conventional = zone.condition == Condition::Conventional;
    KernelZone {
        start,
        length,
        pointer: if is_conventional { u64::MAX } else { start + zone.pointer.0 * scale },
        kind: if is_conventional { zone_kind::CONVENTIONAL } else { zone_kind::SEQUENTIAL },
        condition,
        capacity: length,
        ..KernelZone::default()
    }
}

/// Returns the drive's operation for a request of the block layer; `None` for an unknown operation.
fn kind_of(operation_and_flags: u32, trims_to_zeros: bool) -> Option<IoKind> {
    let fua = operation_and_flags & operation::FUA != 0;
    let stays = operation_and_flags & operation::NO_UNMAP != 0;
    match operation_and_flags & 0xff {
        operation::READ => Some(IoKind::Read),
        operation::WRITE | operation::ZONE_APPEND => Some(IoKind::Write { fua }),
        operation::FLUSH => Some(IoKind::Flush),
        operation::DISCARD => Some(IoKind::Trim),
        operation::WRITE_ZEROES if trims_to_zeros && !stays && !fua => Some(IoKind::Trim),
        operation::WRITE_ZEROES => Some(IoKind::Write { fua }),
        _ => None,
    }
}

/// Returns the block layer's error number for an error of the drive.
fn errno_of(error: &DeviceError) -> i32 {
    match error {
        DeviceError::Medium { cause, .. } if cause.kind() == io::ErrorKind::StorageFull => libc::ENOSPC,
        DeviceError::Medium { .. }
        | DeviceError::Destroyed { .. }
        | DeviceError::Unreadable { .. }
        | DeviceError::Lost { .. }
        | DeviceError::Corrupt { .. }
        | DeviceError::Stopped(_) => libc::EIO,
        DeviceError::Image { .. }
        | DeviceError::InUse { .. }
        | DeviceError::CopiedUnclosed { .. }
        | DeviceError::Damaged { .. }
        | DeviceError::Replay(_) => libc::EIO,
        DeviceError::ReadOnly => libc::EPERM,
        DeviceError::PastEnd { .. } => libc::ENOSPC,
        DeviceError::Refused(_) => libc::EINVAL,
        // The block layer knows these two errors; any other refusal by a zone is an I/O error.
        DeviceError::Zone(ZoneError::TooManyOpen { .. }) => libc::ETOOMANYREFS,
        DeviceError::Zone(ZoneError::TooManyActive { .. }) => libc::EOVERFLOW,
        DeviceError::Zone(_) => libc::EIO,
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
    fn zones_are_reported_as_the_kernel_numbers_them() {
        use crate::verify::small_drive;
        let mut drive = small_drive("zoned");
        let zone_bytes = drive.zoned_mode().expect("it has zones").zone_sectors.0 * 512;
        drive.write(zone_bytes, &[7; 4096], false).expect("at the pointer");
        let bytes = report(&drive, 0, 3);
        assert_eq!(bytes.len(), 3 * 64);
        let number = |from: usize| u64::from_ne_bytes(bytes[from..from + 8].try_into().expect("eight bytes"));
        assert_eq!(number(64 + 16), (zone_bytes + 4096) / 512, "the write pointer, in sectors of 512 bytes");
        assert_eq!([0, 1, 2].map(|zone| bytes[zone * 64 + 25]), [1, 2, 1], "as linux/blkzoned.h numbers them");
    }

    #[test]
    fn what_the_drive_does_not_know_is_refused() {
        assert_eq!(kind_of(operation::WRITE | operation::FUA, true), Some(IoKind::Write { fua: true }));
        assert_eq!(kind_of(4, true), None);
        assert_eq!(kind_of(operation::ZONE_RESET, true), None);
    }
}
