//! A drive as a virtio block device: requests of the guest become requests to the drive (Virtual I/O Device 1.3 §5.2).
//!
//! ```text
//!   queue ─► take ─┬─► zones' rule ─► to the drive ─► completed ─► used ring, notice
//!                  └─► answered at once ───────────────────────────►    "
//! ```
//!
//! Invariants:
//! 1. Every request taken from a queue is returned to the guest once.
//! 2. A request that breaks the format, whatever it contains, gets an error and changes nothing.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use imbrex_device::zoned::{Condition, Zone, ZoneError, ZonedMode};
use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind};

use super::session::{Chain, Session};
use crate::drive_server::Facts;
use crate::zones::{Operation, Ruling, ZoneRequest, Zones};

/// Size in bytes of the sectors in which requests count.
const SECTOR_BYTES: u64 = 512;
/// Largest request in bytes that is accepted.
pub const REQUEST_BYTES_MAX: u64 = 32 << 20;
/// Largest discard in bytes.
const DISCARD_BYTES_MAX: u64 = 1 << 30;
/// Largest write of zeros in bytes.
const ZEROES_BYTES_MAX: u64 = 8 << 20;
/// Largest number of parts of a request's memory: the size of a queue less the header and the status.
const SEGMENTS_MAX: u32 = 254;
/// Bytes of the header of a request: type, reserved, sector.
const HEADER_BYTES: usize = 16;
/// Bytes of a range of a discard: sector, number of sectors, flags.
const RANGE_BYTES: usize = 16;
/// Bytes of a zone in a report, and of the head of a report.
const ZONE_BYTES: usize = 64;
/// Bytes of the name of a device.
const NAME_BYTES: usize = 20;

/// Bits of the features of a block device.
mod feature {
    pub(super) const SEGMENT_COUNT: u64 = 1 << 2;
    pub(super) const READ_ONLY: u64 = 1 << 5;
    pub(super) const BLOCK_SIZE: u64 = 1 << 6;
    pub(super) const FLUSH: u64 = 1 << 9;
    pub(super) const TOPOLOGY: u64 = 1 << 10;
    pub(super) const SEVERAL_QUEUES: u64 = 1 << 12;
    pub(super) const DISCARD: u64 = 1 << 13;
    pub(super) const WRITE_ZEROES: u64 = 1 << 14;
    pub(super) const ZONED: u64 = 1 << 17;
}

/// Types of requests.
mod kind {
    pub(super) const IN: u32 = 0;
    pub(super) const OUT: u32 = 1;
    pub(super) const FLUSH: u32 = 4;
    pub(super) const GET_ID: u32 = 8;
    pub(super) const DISCARD: u32 = 11;
    pub(super) const WRITE_ZEROES: u32 = 13;
    pub(super) const ZONE_APPEND: u32 = 15;
    pub(super) const ZONE_REPORT: u32 = 16;
    pub(super) const ZONE_OPEN: u32 = 18;
    pub(super) const ZONE_CLOSE: u32 = 20;
    pub(super) const ZONE_FINISH: u32 = 22;
    pub(super) const ZONE_RESET: u32 = 24;
    pub(super) const ZONE_RESET_ALL: u32 = 26;
}

/// Statuses of completed requests.
mod status {
    pub(super) const OK: u8 = 0;
    pub(super) const IO_ERROR: u8 = 1;
    pub(super) const UNSUPPORTED: u8 = 2;
    pub(super) const ZONE_INVALID: u8 = 3;
    pub(super) const ZONE_OFF_POINTER: u8 = 4;
    pub(super) const ZONE_TOO_MANY_OPEN: u8 = 5;
    pub(super) const ZONE_TOO_MANY_ACTIVE: u8 = 6;
}

/// Returns the features and the configuration space of a block device for a drive. With `has_flush`, the guest sends
/// flushes.
pub fn device_of(facts: &Facts, queues: u16, has_flush: bool) -> (u64, Vec<u8>) {
    let mut features = feature::SEGMENT_COUNT | feature::BLOCK_SIZE | feature::TOPOLOGY;
    let mut set = |is_set: bool, bit: u64| features |= if is_set { bit } else { 0 };
    set(facts.read_only, feature::READ_ONLY);
    set(has_flush, feature::FLUSH);
    set(queues > 1, feature::SEVERAL_QUEUES);
    set(facts.trims_to_zeros && facts.zones.is_none(), feature::DISCARD);
    set(facts.zones.is_none(), feature::WRITE_ZEROES);
    set(facts.zones.is_some(), feature::ZONED);
    let sectors = |bytes: u64| (bytes / SECTOR_BYTES) as u32;
    let discard = if facts.trims_to_zeros { sectors(DISCARD_BYTES_MAX) } else { 0 };
    // A write of zeros may have to be written.
    let zeroes = sectors(ZEROES_BYTES_MAX);
    let mut config = Vec::with_capacity(96);
    config.extend_from_slice(&(facts.capacity_bytes / SECTOR_BYTES).to_le_bytes());
    let mut words = |values: &[u32]| values.iter().for_each(|value| config.extend_from_slice(&value.to_le_bytes()));
    // Largest segment (not used), number of segments, geometry (not used), size of a block.
    words(&[0, SEGMENTS_MAX, 0, facts.sector_bytes]);
    // Physical blocks are logical blocks; the least size of a request is one block; no best size.
    words(&[1 << 16, 0]);
    // Mode of the cache (not used), number of queues.
    words(&[u32::from(queues) << 16]);
    words(&[discard, 1, sectors(u64::from(facts.sector_bytes)), zeroes, 1]);
    // Zeros may be unmapped; no secure erase.
    words(&[u32::from(facts.trims_to_zeros), 0, 0, 0]);
    if let Some(zones) = &facts.zones {
        let zone_sectors = sectors(zones.zone_sectors.0 * u64::from(zones.sector_bytes));
        let limits = [zones.open_max, zones.active_max].map(|limit| limit.unwrap_or(0));
        const HOST_MANAGED: u32 = 1;
        words(&[zone_sectors, limits[0], limits[1], sectors(1 << 20), zones.sector_bytes, HOST_MANAGED]);
    }
    (features, config)
}

/// The answer of a drive to a submitted request.
#[derive(Debug)]
pub enum Submitted {
    /// The request is in flight under this number. [`BlockDevice::completed`] is to be called with it.
    Accepted(u64),
    /// The request has been completed, with these bytes of a read, or refused.
    Answered(Vec<u8>, Result<(), DeviceError>),
}

/// The drive behind a block device.
pub trait Backend {
    /// Calls `look` with the drive.
    fn with<T>(&mut self, look: impl FnOnce(&mut EmulatedDrive) -> T) -> T;

    /// Submits a request to the drive.
    fn submit(&mut self, io: Io) -> Submitted;
}

/// A request of the guest.
#[derive(Debug)]
struct Request {
    queue: usize,
    chain: Chain,
    kind: u32,
    /// First sector, in sectors of 512 bytes. For an append, the first sector of the zone.
    sector: u64,
    /// Number of sectors of 512 bytes.
    sectors: u32,
    /// For a write, the bytes to write.
    data: Vec<u8>,
    /// For a write of zeros, whether the drive may drop the sectors.
    may_unmap: bool,
    /// For an append, the sector at which it was written.
    appended: u64,
}

/// A drive as a virtio block device.
pub struct BlockDevice {
    session: Session,
    zones: Option<Zones>,
    mode: Option<ZonedMode>,
    is_read_only: bool,
    trims_to_zeros: bool,
    name: [u8; NAME_BYTES],
    /// Requests at the drive, by the drive's numbers.
    in_flight: BTreeMap<u64, Request>,
    /// Requests that wait for their zone, by tag.
    waiting: BTreeMap<u32, Request>,
    /// Queues with requests that were returned since the guest was last told.
    returned: Vec<bool>,
}

impl BlockDevice {
    /// Creates the device of a drive with these properties, for the guest of this session.
    pub fn new(session: Session, facts: &Facts) -> BlockDevice {
        let mut name = [0; NAME_BYTES];
        let label = facts.label.as_bytes();
        let count = label.len().min(NAME_BYTES);
        name[..count].copy_from_slice(&label[..count]);
        BlockDevice {
            returned: vec![false; session.queues()],
            session,
            zones: facts.zones.map(Zones::new),
            mode: facts.zones,
            is_read_only: facts.read_only,
            trims_to_zeros: facts.trims_to_zeros,
            name,
            in_flight: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Returns the session, for messages of the front end.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns whether the drive has zones, and the front end has not accepted them: its guest would write elsewhere than at
    /// the write pointers.
    pub fn lacks_zones(&self) -> bool {
        self.mode.is_some() && !self.session.has(feature::ZONED)
    }

    /// Returns the number of requests that the guest waits for.
    pub fn outstanding(&self) -> usize {
        self.in_flight.len() + self.waiting.len()
    }

    /// Returns whether requests were returned since the last call of [`BlockDevice::take_returned`].
    pub fn has_returned(&self) -> bool {
        self.returned.contains(&true)
    }

    /// Removes and returns the queues with requests that were returned since the last call: the guest is to be told.
    pub fn take_returned(&mut self) -> Vec<usize> {
        let queues = self.returned.iter_mut().enumerate();
        queues.filter_map(|(queue, returned)| std::mem::take(returned).then_some(queue)).collect()
    }

    /// Takes all requests from a queue and submits them.
    ///
    /// # Errors
    ///
    /// The rings do not lie in the memory of the guest.
    pub fn kicked(&mut self, queue: usize, backend: &mut impl Backend) -> io::Result<()> {
        while let Some(chain) = self.session.take(queue) {
            match parse(queue, chain) {
                Ok(request) => self.enter(request, backend)?,
                Err((chain, status)) => self.answer_to(queue, &chain, status)?,
            }
        }
        Ok(())
    }

    /// Returns a completed request to the guest. `buffer` has the bytes of a read.
    ///
    /// # Errors
    ///
    /// The rings do not lie in the memory of the guest.
    ///
    /// # Panics
    ///
    /// If no request is in flight under this number.
    pub fn completed(
        &mut self,
        number: u64,
        buffer: &[u8],
        outcome: &Result<(), DeviceError>,
        backend: &mut impl Backend,
    ) -> io::Result<()> {
        let request = self.in_flight.remove(&number).expect("a request is completed once, after its submission");
        self.answer(request, buffer, outcome, backend)
    }

    fn enter(&mut self, request: Request, backend: &mut impl Backend) -> io::Result<()> {
        if let (Some(zones), Some(asked)) = (&mut self.zones, request.of_zones()) {
            let tag = request.tag();
            if !zones.enter(tag, &asked) {
                self.waiting.insert(tag, request);
                return Ok(());
            }
        }
        self.begin(request, backend)
    }

    /// Carries out a request whose zone, if it needs one, is its own.
    fn begin(&mut self, mut request: Request, backend: &mut impl Backend) -> io::Result<()> {
        let changes = !matches!(request.kind, kind::IN | kind::FLUSH | kind::GET_ID | kind::ZONE_REPORT);
        if changes && self.is_read_only {
            return self.answer(request, &[], &Err(DeviceError::ReadOnly), backend);
        }
        let (offset, length) = match (&self.zones, request.of_zones()) {
            (Some(zones), Some(asked)) => match backend.with(|drive| zones.rule(&asked, drive)) {
                Ok(Ruling::Serve { offset, length }) => (offset, length),
                Ok(Ruling::Done) => return self.answer(request, &[], &Ok(()), backend),
                Ok(Ruling::Report { first, count }) => {
                    let bytes = backend.with(|drive| report(drive, first, count, self.mode.as_ref()));
                    return self.answer(request, &bytes, &Ok(()), backend);
                }
                Err(error) => return self.answer(request, &[], &Err(error), backend),
            },
            (None, Some(asked)) if !matches!(asked.operation, Operation::Read | Operation::Write) => {
                return self.answer_to(request.queue, &request.chain.clone(), status::UNSUPPORTED);
            }
            _ => (request.sector * SECTOR_BYTES, u64::from(request.sectors) * SECTOR_BYTES),
        };
        request.appended = offset / SECTOR_BYTES;
        let zeros = |length: u64| (IoKind::Write { fua: false }, vec![0; length as usize]);
        let (kind, buffer) = match request.kind {
            kind::IN => (IoKind::Read, Vec::new()),
            kind::OUT | kind::ZONE_APPEND => (IoKind::Write { fua: false }, std::mem::take(&mut request.data)),
            kind::FLUSH => (IoKind::Flush, Vec::new()),
            kind::DISCARD if self.trims_to_zeros => (IoKind::Trim, Vec::new()),
            kind::WRITE_ZEROES if length > ZEROES_BYTES_MAX => {
                return self.answer_to(request.queue, &request.chain.clone(), status::UNSUPPORTED);
            }
            kind::WRITE_ZEROES if self.trims_to_zeros && request.may_unmap => (IoKind::Trim, Vec::new()),
            kind::WRITE_ZEROES => zeros(length),
            kind::GET_ID => return self.answer(request, &self.name.clone(), &Ok(()), backend),
            _ => return self.answer_to(request.queue, &request.chain.clone(), status::UNSUPPORTED),
        };
        match backend.submit(Io { kind, offset, length, buffer }) {
            Submitted::Accepted(number) => {
                self.in_flight.insert(number, request);
                Ok(())
            }
            Submitted::Answered(buffer, outcome) => self.answer(request, &buffer, &outcome, backend),
        }
    }

    /// Returns a request to the guest, and begins the next one of its zone.
    fn answer(
        &mut self,
        request: Request,
        bytes: &[u8],
        outcome: &Result<(), DeviceError>,
        backend: &mut impl Backend,
    ) -> io::Result<()> {
        let status = match outcome {
            Ok(()) => status::OK,
            Err(error) => status_of(error),
        };
        let mut bytes = bytes;
        let appended = request.appended.to_le_bytes();
        if request.kind == kind::ZONE_APPEND {
            bytes = &appended;
        }
        let bytes = if status == status::OK { bytes } else { &[] };
        let written = write_answer(&request.chain, bytes, status).unwrap_or(0);
        self.session.give_back(request.queue, &request.chain, written)?;
        self.returned[request.queue] = true;
        let next = match (&mut self.zones, request.of_zones()) {
            (Some(zones), Some(asked)) => zones.leave(&asked),
            _ => None,
        };
        match next.and_then(|tag| self.waiting.remove(&tag)) {
            Some(next) => self.begin(next, backend),
            None => Ok(()),
        }
    }

    /// Returns a request that did not reach the drive to the guest.
    fn answer_to(&mut self, queue: usize, chain: &Chain, status: u8) -> io::Result<()> {
        // A request without room for a status cannot be told.
        let written = write_answer(chain, &[], status).unwrap_or(0);
        self.returned[queue] = true;
        self.session.give_back(queue, chain, written)
    }
}

impl Request {
    /// Returns the number under which the request waits for its zone.
    fn tag(&self) -> u32 {
        (self.queue as u32) << 16 | u32::from(self.chain.head_index())
    }

    /// Returns the request as one to zones; `None` if zones do not concern it.
    fn of_zones(&self) -> Option<ZoneRequest> {
        let operation = match self.kind {
            kind::IN => Operation::Read,
            kind::OUT => Operation::Write,
            kind::ZONE_APPEND => Operation::Append,
            kind::ZONE_REPORT => Operation::Report,
            kind::ZONE_OPEN => Operation::Open,
            kind::ZONE_CLOSE => Operation::Close,
            kind::ZONE_FINISH => Operation::Finish,
            kind::ZONE_RESET => Operation::Reset,
            kind::ZONE_RESET_ALL => Operation::ResetAll,
            _ => return None,
        };
        Some(ZoneRequest { operation, sector: self.sector, sectors: self.sectors })
    }
}

/// Reads a request from the memory of the guest.
///
/// # Errors
///
/// The descriptors, and the status with which the guest gets them back.
fn parse(queue: usize, chain: Chain) -> Result<Request, (Chain, u8)> {
    match parts(&chain) {
        Ok(Parts { kind, sector, sectors, data, may_unmap }) => {
            Ok(Request { queue, chain, kind, sector, sectors, data, may_unmap, appended: 0 })
        }
        Err(status) => Err((chain, status)),
    }
}

/// The parts of a request in the memory of the guest, as [`Request`] has them.
struct Parts {
    kind: u32,
    sector: u64,
    sectors: u32,
    data: Vec<u8>,
    may_unmap: bool,
}

fn parts(chain: &Chain) -> Result<Parts, u8> {
    let broken = |_| status::IO_ERROR;
    let memory = chain.memory();
    let mut reader = chain.clone().reader(memory).map_err(|_| status::IO_ERROR)?;
    let writer = chain.clone().writer(memory).map_err(|_| status::IO_ERROR)?;
    // The last byte that the guest can be given is the status.
    let room = writer.available_bytes().checked_sub(1).ok_or(status::IO_ERROR)? as u64;
    let mut header = [0; HEADER_BYTES];
    reader.read_exact(&mut header).map_err(broken)?;
    let word = |from: usize| u32::from_le_bytes(header[from..from + 4].try_into().expect("four bytes"));
    let (request_kind, mut sector) = (word(0), u64::from(word(8)) | u64::from(word(12)) << 32);
    let given = reader.available_bytes() as u64;
    if given.max(room) > REQUEST_BYTES_MAX {
        return Err(status::IO_ERROR);
    }
    let whole = |bytes: u64| match bytes % SECTOR_BYTES {
        0 => Ok((bytes / SECTOR_BYTES) as u32),
        _ => Err(status::IO_ERROR),
    };
    let (mut data, mut may_unmap) = (Vec::new(), false);
    let sectors = match request_kind {
        kind::IN => whole(room)?,
        kind::OUT | kind::ZONE_APPEND => {
            data.resize(given as usize, 0);
            reader.read_exact(&mut data).map_err(broken)?;
            whole(given)?
        }
        kind::DISCARD | kind::WRITE_ZEROES => {
            let mut range = [0; RANGE_BYTES];
            reader.read_exact(&mut range).map_err(broken)?;
            if given != RANGE_BYTES as u64 {
                return Err(status::UNSUPPORTED);
            }
            let word = |from: usize| u32::from_le_bytes(range[from..from + 4].try_into().expect("four bytes"));
            sector = u64::from(word(0)) | u64::from(word(4)) << 32;
            // A discard has no flags, and a write of zeros this one.
            const UNMAP: u32 = 1;
            may_unmap = word(12) == UNMAP;
            if word(12) != 0 && !(may_unmap && request_kind == kind::WRITE_ZEROES) {
                return Err(status::UNSUPPORTED);
            }
            word(8)
        }
        // In a report, the number of zones that have room.
        kind::ZONE_REPORT => (room as usize / ZONE_BYTES).saturating_sub(1) as u32,
        _ => 0,
    };
    // Sectors past any drive would overflow as bytes.
    if sector > u64::MAX / SECTOR_BYTES - u64::from(u32::MAX) {
        return Err(status::IO_ERROR);
    }
    Ok(Parts { kind: request_kind, sector, sectors, data, may_unmap })
}

/// Writes the bytes of an answer, and its status after all the room for bytes. Returns the number of bytes up to the
/// end of the status.
fn write_answer(chain: &Chain, bytes: &[u8], status: u8) -> io::Result<u32> {
    let memory = chain.memory();
    let broken = |error| io::Error::other(format!("{error}"));
    let mut data = chain.clone().writer(memory).map_err(broken)?;
    let room = data.available_bytes().checked_sub(1).ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut last = data.split_at(room).map_err(broken)?;
    data.write_all(&bytes[..bytes.len().min(room)])?;
    last.write_all(&[status])?;
    Ok((room + 1) as u32)
}

/// Returns the status of a request that failed.
fn status_of(error: &DeviceError) -> u8 {
    match error {
        DeviceError::Zone(ZoneError::TooManyOpen { .. }) => status::ZONE_TOO_MANY_OPEN,
        DeviceError::Zone(ZoneError::TooManyActive { .. }) => status::ZONE_TOO_MANY_ACTIVE,
        DeviceError::Zone(ZoneError::NotAtPointer { .. }) => status::ZONE_OFF_POINTER,
        DeviceError::Zone(_) => status::ZONE_INVALID,
        _ => status::IO_ERROR,
    }
}

/// Returns a report of `count` zones from zone `first` on: a head with their number, and a descriptor of each.
fn report(drive: &EmulatedDrive, first: u32, count: u32, mode: Option<&ZonedMode>) -> Vec<u8> {
    let mut zones = Vec::with_capacity(count as usize);
    drive.report_zones(first, count, &mut zones);
    let scale = mode.map_or(1, |mode| u64::from(mode.sector_bytes) / SECTOR_BYTES);
    let mut bytes = vec![0; ZONE_BYTES];
    bytes[..8].copy_from_slice(&(zones.len() as u64).to_le_bytes());
    for zone in &zones {
        bytes.extend_from_slice(&descriptor(zone, scale));
    }
    bytes
}

/// Returns the descriptor of a zone; sectors of the drive are `scale` sectors of 512 bytes.
fn descriptor(zone: &Zone, scale: u64) -> [u8; ZONE_BYTES] {
    let (start, length) = (zone.start.0 * scale, zone.sectors.0 * scale);
    let is_conventional = zone.condition == Condition::Conventional;
    let pointer = if is_conventional { u64::MAX } else { start + zone.pointer.0 * scale };
    let mut bytes = [0; ZONE_BYTES];
    for (index, number) in [length, start, pointer].into_iter().enumerate() {
        bytes[8 * index..8 * index + 8].copy_from_slice(&number.to_le_bytes());
    }
    bytes[24] = if is_conventional { 1 } else { 2 };
    bytes[25] = match zone.condition {
        Condition::Conventional => 0,
        Condition::Empty => 1,
        Condition::ImplicitlyOpen => 2,
        Condition::ExplicitlyOpen => 3,
        Condition::Closed => 4,
        Condition::ReadOnly => 13,
        Condition::Full => 14,
        Condition::Offline => 15,
    };
    bytes
}
