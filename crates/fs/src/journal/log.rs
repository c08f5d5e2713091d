//! Log: frames of records, in a ring of blocks.
//!
//! A frame takes whole blocks and never wraps around the end of the ring. Its number is one more than that of the frame
//! before it, and a checksum covers all of it. So frames of earlier rounds and torn frames are recognized.
//!
//! ```text
//!   frame: magic u32 · checksum u32 · file system u128 · number u64 · records u32 · bytes u32 · records …
//!   record: bytes u32 · time u64 · changes …
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::array::Data;
use crate::device::BLOCK_BYTES;
use crate::device::area::Area;
use crate::error::FsError;
use crate::executor::{Mutex, Signal};
use crate::format::change::Change;
use crate::format::coding::{Decoder, Encoder, Malformed, checksum};
use crate::journal::mirror::Mirror;

const MAGIC: u32 = 0x676f_6c49; // "Ilog"
const HEAD_BYTES: usize = 40;
/// Bytes before the changes of a record.
const RECORD_HEAD_BYTES: usize = 12;
/// Smallest number of frames that fit into the ring.
const FRAMES_MIN: u64 = 8;
/// Divisor of the ring: operations leave a quarter of it free for the commits that a checkpoint needs.
const KEPT_BACK: u64 = 4;
/// Blocks in one read of the search for later frames.
const SCAN_BLOCKS: u64 = 64;

/// Record as decoded from the log: the changes that one operation made together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Time at which the record was made, in nanoseconds since 1970.
    pub time_ns: i64,
    /// Changes of the namespace, in the order in which they are applied.
    pub changes: Vec<Change>,
}

/// Place in the log: the block of the ring at which a frame, a group of records, begins, and the number of that frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPlace {
    /// Block at which the frame, a group of records, begins: a block of 4 KiB, counted from 0 at the start of the ring
    /// of the log.
    pub block: u64,
    /// Number of the frame, a group of records that was written at once. It is one more than that of the frame before
    /// it, for the whole life of the file system.
    pub frame: u64,
}

#[derive(Debug)]
struct State {
    /// Encoded records that are in no frame yet.
    pending: VecDeque<Vec<u8>>,
    pending_bytes: usize,
    /// Number of records made so far. `durable` is how many of them are durable.
    made: u64,
    durable: u64,
    /// Place of the next frame.
    head: LogPlace,
    /// First block of the ring whose frame is still needed.
    tail: u64,
    /// Number of blocks of the ring that are needed.
    used: u64,
    /// Error after which nothing can be committed any more.
    failed: Option<FsError>,
    /// How often a checkpoint that would have made room failed. `refused` is the error of the last failure.
    refusals: u64,
    refused: Option<FsError>,
}

/// Log of a file system: a ring of blocks with frames, groups of records that are written at once, and the records that
/// wait in memory.
pub struct Log {
    area: Mirror,
    uuid: u128,
    first: u64,
    blocks: u64,
    state: RefCell<State>,
    /// Lock of the commit in progress.
    lock: Mutex,
    /// Signal that occurs when a frame, a group of records, became durable, or the log failed.
    pub committed: Signal,
    /// Signal that occurs when a checkpoint is needed, because no more than a quarter of the ring of the log is free,
    /// or a group of records does not fit.
    pub is_short: Signal,
    /// Signal that occurs when space of the log was freed after a checkpoint, a checkpoint failed, or the log failed.
    pub has_room: Signal,
    frames: Cell<u64>,
}

impl Log {
    /// Returns the log of file system `uuid` in `blocks` blocks of 4 KiB of `area`, from block `first` on. The next
    /// frame, a group of records, goes to `head`. Frames from `tail` on are needed until [`Log::release`]; `tail`
    /// equals `head` if there are none. Nothing is read or written.
    pub fn new(area: Mirror, uuid: u128, (first, blocks): (u64, u64), tail: LogPlace, head: LogPlace) -> Log {
        let used = if head.frame == tail.frame { 0 } else { distance(tail.block, head.block, blocks) };
        let state = State {
            pending: VecDeque::new(),
            pending_bytes: 0,
            made: 0,
            durable: 0,
            head,
            tail: tail.block,
            used,
            failed: None,
            refusals: 0,
            refused: None,
        };
        Log {
            area,
            uuid,
            first,
            blocks,
            state: RefCell::new(state),
            lock: Mutex::default(),
            committed: Signal::default(),
            is_short: Signal::default(),
            has_room: Signal::default(),
            frames: Cell::new(0),
        }
    }

    /// Adds a record with time `time_ns`, in nanoseconds since 1970, to the pending records in memory. Returns the
    /// record's number, counted from 1 since the mount. The record is durable after [`Log::commit`] of that number.
    pub fn append(&self, time_ns: i64, changes: &[Change]) -> u64 {
        let mut encoder = Encoder::default();
        encoder.u32(0);
        encoder.u64(time_ns as u64);
        changes.iter().for_each(|change| change.encode(&mut encoder));
        let length = (encoder.bytes.len() - 4) as u32;
        encoder.bytes[..4].copy_from_slice(&length.to_le_bytes());
        let mut state = self.state.borrow_mut();
        state.pending_bytes += encoder.bytes.len();
        state.pending.push_back(encoder.bytes);
        state.made += 1;
        state.made
    }

    /// Returns the largest size, in bytes, of the encoded changes of a record that fits into a frame, or group of
    /// records, of the usual size: an eighth of the ring. A larger record gets a larger frame.
    pub fn record_bytes_max(&self) -> u64 {
        frame_blocks_max(self.blocks) * BLOCK_BYTES as u64 - (HEAD_BYTES + RECORD_HEAD_BYTES) as u64
    }

    /// Returns the number of the last record appended since the mount, pending or durable; 0 if there is none.
    pub fn made(&self) -> u64 {
        self.state.borrow().made
    }

    /// Returns the number of the last durable record; all records before it are durable, too. 0 if no record became
    /// durable since the mount.
    pub fn durable(&self) -> u64 {
        self.state.borrow().durable
    }

    /// Returns the size, in bytes, of the encoded records that wait in memory: they are in no frame, or group of
    /// records, that is written or being written.
    pub fn pending_bytes(&self) -> usize {
        self.state.borrow().pending_bytes
    }

    /// Returns the number of frames, groups of records written at once, that became durable since the mount.
    pub fn frames(&self) -> u64 {
        self.frames.get()
    }

    /// Returns the place of the next frame, or group of records, to be written. If the frame does not fit before the
    /// end of the ring, it goes to block 0 instead. A checkpoint that begins now records this place: replay continues
    /// there, and finds the records that are pending now.
    pub fn head(&self) -> LogPlace {
        self.state.borrow().head
    }

    /// Returns the number of the next frame, or group of records, to be written. All frames with lower numbers are
    /// durable.
    pub fn durable_frame(&self) -> u64 {
        self.head().frame
    }

    /// Returns the number of blocks in use, including those for pending records, and the number of all blocks of the
    /// ring. Blocks have 4 KiB.
    pub fn fill(&self) -> (u64, u64) {
        let state = self.state.borrow();
        (state.used + blocks_for(state.pending_bytes), self.blocks)
    }

    /// Returns whether an operation may make records now: more than a quarter of the ring is free. That quarter is
    /// reserved for the commits that a checkpoint needs (invariant 4).
    pub fn has_room_now(&self) -> bool {
        self.keeps_back(KEPT_BACK)
    }

    /// Returns whether more than the fraction 1 / `share` of the ring is free.
    fn keeps_back(&self, share: u64) -> bool {
        let (used, blocks) = self.fill();
        used + blocks / share < blocks
    }

    /// Waits until more than a quarter of the ring is free, so that an operation may make records. Requests checkpoints
    /// until then. Returns at once if the room is there.
    ///
    /// # Errors
    /// A requested checkpoint failed, or the log failed ([`Log::check`]).
    pub async fn room(&self) -> Result<(), FsError> {
        while !self.has_room_now() {
            self.check()?;
            self.next_checkpoint().await?;
        }
        self.check()
    }

    /// Returns whether more than an eighth of the ring is free. If so, an operation that makes the next checkpoint
    /// smaller, such as a deletion, may make records even if no checkpoint can be taken. It then uses up to half of the
    /// quarter of the ring that is reserved from other operations ([`Log::has_room_now`]).
    pub fn has_room_to_free(&self) -> bool {
        self.keeps_back(2 * KEPT_BACK)
    }

    /// Asks for a checkpoint, and waits for it.
    ///
    /// # Errors
    /// The checkpoint could not be taken.
    async fn next_checkpoint(&self) -> Result<(), FsError> {
        let (room, refusals) = (self.has_room.next(), self.state.borrow().refusals);
        self.is_short.give();
        room.await;
        let state = self.state.borrow();
        state.refused.clone().filter(|_| state.refusals > refusals).map_or(Ok(()), Err)
    }

    /// Reports that a checkpoint failed with `error`. The tasks that wait for a checkpoint in [`Log::room`] or
    /// [`Log::commit`] get this error.
    pub fn refuse(&self, error: FsError) {
        let mut state = self.state.borrow_mut();
        (state.refusals, state.refused) = (state.refusals + 1, Some(error));
        drop(state);
        self.has_room.give();
    }

    /// Frees the space of the log before `place`, and wakes the tasks that wait for room. The caller has made a
    /// checkpoint durable that contains the changes of the records there.
    pub fn release(&self, place: LogPlace) {
        let mut state = self.state.borrow_mut();
        state.tail = place.block;
        state.used =
            if state.head.frame == place.frame { 0 } else { distance(place.block, state.head.block, self.blocks) };
        drop(state);
        self.has_room.give();
    }

    /// Checks whether the log can still be written.
    ///
    /// # Errors
    /// The error of the commit that failed. After it, no further record becomes durable until the next mount.
    pub fn check(&self) -> Result<(), FsError> {
        self.state.borrow().failed.clone().map_or(Ok(()), Err)
    }

    /// Makes the records with numbers up to `record` durable: writes and flushes frames, that is, groups of pending
    /// records, in order. `data` is flushed before every frame. If the ring has no room for a frame, requests a
    /// checkpoint and waits for it. Returns at once if the records are durable already.
    ///
    /// # Errors
    /// The requested checkpoint failed: the records stay pending, and a later attempt may succeed. Or a write or a
    /// flush failed, now or earlier: the log has then failed for good ([`Log::check`]). A record that is too large for
    /// the ring counts as such a failure.
    pub async fn commit(&self, record: u64, data: &Data) -> Result<(), FsError> {
        while !self.commit_what_fits(record, data).await? {
            self.next_checkpoint().await?;
        }
        Ok(())
    }

    /// Makes the records with numbers up to `record` durable, for a checkpoint. Unlike [`Log::commit`], does not wait
    /// for a checkpoint if the ring has no room. `data` is flushed before every group of records is written. Returns at
    /// once if the records are durable already.
    ///
    /// # Errors
    /// [`FsError::NoMetadataSpace`] if the ring has no room; the remaining records stay pending. Or a write or a flush
    /// failed, now or earlier: the log has then failed for good ([`Log::check`]).
    pub async fn commit_for_checkpoint(&self, record: u64, data: &Data) -> Result<(), FsError> {
        if self.commit_what_fits(record, data).await? { Ok(()) } else { Err(FsError::NoMetadataSpace) }
    }

    /// Makes the records up to `record` durable as far as there is room. Returns whether there was room for all of
    /// them.
    async fn commit_what_fits(&self, record: u64, data: &Data) -> Result<bool, FsError> {
        while self.durable() < record {
            let _pass = self.lock.enter().await;
            self.check()?;
            if self.durable() >= record {
                break;
            }
            match self.commit_next(data).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    self.state.borrow_mut().failed = Some(error.clone());
                    self.committed.give();
                    self.has_room.give();
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Writes one frame of pending records. Returns false if there is no room for the frame.
    async fn commit_next(&self, data: &Data) -> Result<bool, FsError> {
        let (records, bytes) = self.next_frame();
        let Some(place) = self.place_for(blocks_for(bytes))? else { return Ok(false) };
        let bytes = self.take_frame(records, bytes);
        // All data that these records name were written before the records were made.
        data.flush().await?;
        self.area.flush_files().await?;
        let block = self.seal(bytes, records, place.frame);
        let blocks = (block.len() / BLOCK_BYTES) as u64;
        self.area.write(self.first + place.block, &block).await?;
        self.area.flush().await?;
        let mut state = self.state.borrow_mut();
        state.head = LogPlace { block: place.block + blocks, frame: place.frame + 1 };
        state.used = distance(state.tail, state.head.block, self.blocks);
        state.durable += u64::from(records);
        self.frames.set(self.frames.get() + 1);
        drop(state);
        self.committed.give();
        if !self.has_room_now() {
            self.is_short.give();
        }
        Ok(true)
    }

    /// Returns how many pending records go into the next frame, and the bytes of the frame.
    fn next_frame(&self) -> (u32, usize) {
        let state = self.state.borrow();
        let bytes_max = frame_blocks_max(self.blocks) as usize * BLOCK_BYTES;
        let (mut records, mut bytes) = (0, HEAD_BYTES);
        for record in &state.pending {
            if records > 0 && bytes + record.len() > bytes_max {
                break;
            }
            (records, bytes) = (records + 1, bytes + record.len());
        }
        (records, bytes)
    }

    /// Takes the first `records` pending records, and returns their frame of `bytes` bytes, without its header.
    fn take_frame(&self, records: u32, bytes: usize) -> Vec<u8> {
        let mut state = self.state.borrow_mut();
        let mut frame = Vec::with_capacity(bytes);
        frame.resize(HEAD_BYTES, 0);
        for record in state.pending.drain(..records as usize) {
            frame.extend_from_slice(&record);
        }
        state.pending_bytes -= frame.len() - HEAD_BYTES;
        frame
    }

    /// Returns the place for a frame of `blocks`; `None` if there is no room now.
    ///
    /// # Errors
    /// The frame is larger than half of the ring, so it may never fit.
    fn place_for(&self, blocks: u64) -> Result<Option<LogPlace>, FsError> {
        let state = self.state.borrow();
        let at = if state.head.block + blocks > self.blocks { 0 } else { state.head.block };
        let skipped = if at == 0 { (self.blocks - state.head.block) % self.blocks } else { 0 };
        if state.used + skipped + blocks < self.blocks {
            return Ok(Some(LogPlace { block: at, frame: state.head.frame }));
        }
        if blocks * 2 <= self.blocks {
            return Ok(None);
        }
        let (needed, there) = (blocks * BLOCK_BYTES as u64, self.blocks * BLOCK_BYTES as u64);
        let reason = format!("one record takes {needed} bytes, and the log has {there}: make it with more metadata");
        Err(FsError::format(&self.area.name(), reason))
    }

    fn seal(&self, mut bytes: Vec<u8>, records: u32, frame: u64) -> Vec<u8> {
        let length = (bytes.len() - HEAD_BYTES) as u32;
        let mut head = Encoder::default();
        head.u32(MAGIC);
        head.u32(0);
        head.u128(self.uuid);
        head.u64(frame);
        head.u32(records);
        head.u32(length);
        bytes[..HEAD_BYTES].copy_from_slice(&head.bytes);
        let sum = checksum(&[&bytes]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        bytes
    }
}

/// Returns the usual maximum number of blocks of 4 KiB of a frame, a group of records, in a ring of `blocks` blocks: an
/// eighth, or 1 if the ring has fewer than 8 blocks. A single record that is larger gets a larger frame.
pub const fn frame_blocks_max(blocks: u64) -> u64 {
    if blocks < FRAMES_MIN { 1 } else { blocks / FRAMES_MIN }
}

fn blocks_for(bytes: usize) -> u64 {
    bytes.div_ceil(BLOCK_BYTES) as u64
}

/// Returns the number of blocks from `tail` forward to `head`, around the end of the ring. The ring is never full.
fn distance(tail: u64, head: u64, blocks: u64) -> u64 {
    if head > tail { head - tail } else { blocks - tail + head }
}

/// Result of reading the log at a mount ([`replay`]): the place of the next group of records, and whether later groups
/// show that one is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// Place behind the last frame, or group of records, that was read. The next frame is to be written there.
    pub head: LogPlace,
    /// Number of an intact frame, or group of records, that is later than the first missing or damaged one. `None` if
    /// none was found. Each frame is written only when the frame before it is durable. So a power cut did not tear the
    /// missing frame: it is damaged, and all records from there on are lost. A mount also sets a number here if the
    /// superblocks record frames that are missing.
    pub behind_damage: Option<u64>,
}

/// Reads the frames (groups of records) of the log from `from` on, and passes each record to `see`, in the order in
/// which the records were made. Ends at the first frame that no copy of `area` has intact. The log is the ring of
/// `blocks` blocks of `area` from block `first` on, of file system `uuid`. Behind the last intact frame, up to `sought`
/// blocks are searched for a later intact frame. Copies of `area` that lack a frame are overwritten with it, unless the
/// area is read-only.
///
/// # Errors
/// An error of `see`, or a frame with a matching checksum whose records cannot be decoded.
pub async fn replay(
    area: &Mirror,
    uuid: u128,
    (first, blocks): (u64, u64),
    from: LogPlace,
    sought: u64,
    mut see: impl AsyncFnMut(Record) -> Result<(), FsError>,
) -> Result<Replayed, FsError> {
    let mut at = from;
    loop {
        let found = match read_frame(area, uuid, (first, blocks), at).await? {
            Some(found) => Some((at.block, found)),
            // A frame that does not fit before the end of the ring is at its beginning.
            None => read_frame(area, uuid, (first, blocks), LogPlace { block: 0, ..at }).await?.map(|found| (0, found)),
        };
        let Some((block, (records, taken))) = found else {
            let behind_damage = later_frame(area, uuid, (first, blocks), at, sought).await?;
            return Ok(Replayed { head: at, behind_damage });
        };
        for record in records {
            see(record).await?;
        }
        at = LogPlace { block: block + taken, frame: at.frame + 1 };
    }
}

/// Returns the number of an intact frame that is later than the one of `at`, in the `sought` blocks from there on,
/// around the end of the ring.
async fn later_frame(
    area: &Mirror,
    uuid: u128,
    (first, blocks): (u64, u64),
    at: LogPlace,
    sought: u64,
) -> Result<Option<u64>, FsError> {
    let (mut block, mut left) = (at.block, sought.min(blocks));
    while left > 0 {
        block %= blocks;
        let count = SCAN_BLOCKS.min(left).min(blocks - block);
        // Unreadable blocks hold no frame that could be applied.
        for bytes in area.read_each(first + block, count).await {
            for (number, head) in bytes.chunks(BLOCK_BYTES).enumerate() {
                let Some(frame) = frame_number(head, uuid).filter(|frame| *frame > at.frame) else { continue };
                let place = LogPlace { block: block + number as u64, frame };
                if read_frame(area, uuid, (first, blocks), place).await?.is_some() {
                    return Ok(Some(frame));
                }
            }
        }
        (block, left) = (block + count, left - count);
    }
    Ok(None)
}

/// Returns the number in the header of a frame of file system `uuid`, if `block` begins with one.
fn frame_number(block: &[u8], uuid: u128) -> Option<u64> {
    let mut head = Decoder::new(block);
    let magic = head.u32().ok()?;
    head.u32().ok()?;
    (magic == MAGIC && head.u128().ok()? == uuid).then(|| head.u64().ok())?
}

/// Returns the records of the frame at `at` and its number of blocks, if some copy has the frame intact. Copies that
/// lack it, after a power cut or damage, are overwritten with it.
async fn read_frame(
    area: &Mirror,
    uuid: u128,
    ring: (u64, u64),
    at: LogPlace,
) -> Result<Option<(Vec<Record>, u64)>, FsError> {
    if at.block >= ring.1 {
        return Ok(None);
    }
    let read = async |copy: &Area| frame_in(copy, uuid, ring, at).await;
    let Some(frame) = area.agree(ring.0 + at.block, |_| 0, read).await else { return Ok(None) };
    let in_frame = |error: Malformed| FsError::format(&area.name(), format!("a frame of the log: {error}"));
    let mut head = Decoder::new(&frame[HEAD_BYTES - 8..]);
    let (records, length) = (head.u32().map_err(in_frame)?, head.u32().map_err(in_frame)? as usize);
    let records = decode_records(&frame[HEAD_BYTES..HEAD_BYTES + length], records).map_err(in_frame)?;
    Ok(Some((records, (frame.len() / BLOCK_BYTES) as u64)))
}

/// Returns the whole blocks of the frame at `at`, if this copy has it intact. An unreadable block was being written
/// during a power cut, so no frame is there.
async fn frame_in(area: &Area, uuid: u128, (first, blocks): (u64, u64), at: LogPlace) -> Option<Vec<u8>> {
    let mut bytes = area.read(first + at.block, 1).await.ok()?;
    let mut head = Decoder::new(&bytes);
    let is_ours = head.u32().ok()? == MAGIC;
    let sum = head.u32().ok()?;
    let is_ours = is_ours && head.u128().ok()? == uuid && head.u64().ok()? == at.frame;
    head.u32().ok()?;
    let length = head.u32().ok()? as usize;
    let taken = blocks_for(HEAD_BYTES + length);
    if !is_ours || at.block + taken > blocks {
        return None;
    }
    if taken > 1 {
        bytes.extend_from_slice(&area.read(first + at.block + 1, taken - 1).await.ok()?);
    }
    let mut summed = bytes[..HEAD_BYTES + length].to_vec();
    summed[4..8].fill(0);
    (checksum(&[&summed]) == sum).then_some(bytes)
}

fn decode_records(bytes: &[u8], count: u32) -> Result<Vec<Record>, Malformed> {
    let mut from = Decoder::new(bytes);
    let mut records = Vec::new();
    for _ in 0..count {
        let mut record = Decoder::new(from.bytes()?);
        let time_ns = record.u64()? as i64;
        let mut changes = Vec::new();
        while !record.is_done() {
            changes.push(Change::decode(&mut record)?);
        }
        records.push(Record { time_ns, changes });
    }
    Ok(records)
}
