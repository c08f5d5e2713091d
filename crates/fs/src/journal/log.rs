//! The log: frames of records, in a ring of blocks.
//!
//! A frame takes whole blocks and never goes round the end of the ring. It bears the number that follows that of the frame
//! before it, and a checksum over everything; so what is left of earlier rounds, and what was torn, is known for what it is.
//!
//! ```text
//!   frame: magic u32 · checksum u32 · file system u128 · number u64 · records u32 · bytes u32 · records …
//!   record: bytes u32 · time u64 · changes …
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::array::Data;
use crate::clock::{Gate, Signal};
use crate::device::BLOCK_BYTES;
use crate::device::area::Area;
use crate::error::FsError;
use crate::format::change::Change;
use crate::format::coding::{Decoder, Encoder, Malformed, checksum};
use crate::journal::mirror::Mirror;

const MAGIC: u32 = 0x676f_6c49; // "Ilog"
const HEAD_BYTES: usize = 40;
/// What stands before the changes of a record.
const RECORD_HEAD_BYTES: usize = 12;
/// Blocks of the ring at least.
pub const BLOCKS_MIN: u64 = 16;
/// The ring has room for so many frames at least.
const FRAMES_MIN: u64 = 8;
/// Operations leave one part in so many of the ring free for the commits that a checkpoint needs.
const KEPT_BACK: u64 = 4;
/// Blocks that are read at once where frames are looked for.
const SCAN_BLOCKS: u64 = 64;

/// A record as it is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When it was made, in nanoseconds since 1970.
    pub time_ns: i64,
    /// What it changes.
    pub changes: Vec<Change>,
}

/// A place in the log: where a frame begins, and the number it bears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPlace {
    /// Block of the ring.
    pub block: u64,
    /// Number of the frame.
    pub frame: u64,
}

#[derive(Debug)]
struct State {
    /// Records that are in no frame yet.
    pending: VecDeque<Vec<u8>>,
    pending_bytes: usize,
    /// Records made so far, and of those how many are durable.
    made: u64,
    durable: u64,
    /// Where the next frame goes.
    head: LogPlace,
    /// From where on frames are still needed.
    tail: u64,
    /// Blocks of the ring that are needed.
    used: u64,
    /// Why nothing can be committed any more.
    failed: Option<FsError>,
    /// How often no checkpoint could be taken that would have made room, and why it was not the last time.
    refusals: u64,
    refused: Option<FsError>,
}

/// The log.
pub struct Log {
    area: Mirror,
    uuid: u128,
    first: u64,
    blocks: u64,
    state: RefCell<State>,
    /// One commit at a time.
    gate: Gate,
    /// Records became durable, or it failed.
    pub committed: Signal,
    /// A checkpoint is needed for room.
    pub is_short: Signal,
    /// Room was made.
    pub has_room: Signal,
    frames: Cell<u64>,
}

impl Log {
    /// The log in `blocks` of `area`, from `first` on, whose next frame goes to `head` and which needs its frames from
    /// `tail` on.
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
            gate: Gate::default(),
            committed: Signal::default(),
            is_short: Signal::default(),
            has_room: Signal::default(),
            frames: Cell::new(0),
        }
    }

    /// Makes a record; its number, which [`Log::commit`] takes.
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

    /// Bytes of changes that a record may have to fit into a frame with others.
    pub fn record_bytes_max(&self) -> u64 {
        frame_blocks_max(self.blocks) * BLOCK_BYTES as u64 - (HEAD_BYTES + RECORD_HEAD_BYTES) as u64
    }

    /// The number of the record made last.
    pub fn made(&self) -> u64 {
        self.state.borrow().made
    }

    /// How many records are durable: those with numbers up to this one.
    pub fn durable(&self) -> u64 {
        self.state.borrow().durable
    }

    /// Bytes of records that are in no frame yet.
    pub fn pending_bytes(&self) -> usize {
        self.state.borrow().pending_bytes
    }

    /// Frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames.get()
    }

    /// Where the next frame goes, and so where a checkpoint that begins now has its place. Records that are pending now are
    /// in frames from there on.
    pub fn head(&self) -> LogPlace {
        self.state.borrow().head
    }

    /// All frames before this one are durable.
    pub fn durable_frame(&self) -> u64 {
        self.head().frame
    }

    /// Blocks that are used, those for pending records included; and all blocks of the ring.
    pub fn fill(&self) -> (u64, u64) {
        let state = self.state.borrow();
        (state.used + blocks_for(state.pending_bytes), self.blocks)
    }

    /// Whether an operation may make records now: a quarter of the ring is kept back for the commits that a checkpoint
    /// needs (invariant 4).
    pub fn has_room_now(&self) -> bool {
        self.keeps_back(KEPT_BACK)
    }

    /// Whether a `share`th of the ring is free.
    fn keeps_back(&self, share: u64) -> bool {
        let (used, blocks) = self.fill();
        used + blocks / share < blocks
    }

    /// Waits until an operation may make records; why it may not, where no checkpoint can be taken that would make room.
    pub async fn room(&self) -> Result<(), FsError> {
        while !self.has_room_now() {
            self.check()?;
            self.next_checkpoint().await?;
        }
        self.check()
    }

    /// Whether an operation that makes a checkpoint smaller may take of what is kept back where there can be none.
    pub fn has_room_to_free(&self) -> bool {
        self.keeps_back(2 * KEPT_BACK)
    }

    /// Asks for a checkpoint, and waits for it; why there is none if it could not be taken.
    async fn next_checkpoint(&self) -> Result<(), FsError> {
        let (room, refusals) = (self.has_room.next(), self.state.borrow().refusals);
        self.is_short.give();
        room.await;
        let state = self.state.borrow();
        state.refused.clone().filter(|_| state.refusals > refusals).map_or(Ok(()), Err)
    }

    /// No checkpoint can be taken: whoever waits for room is told why.
    pub fn refuse(&self, error: FsError) {
        let mut state = self.state.borrow_mut();
        (state.refusals, state.refused) = (state.refusals + 1, Some(error));
        drop(state);
        self.has_room.give();
    }

    /// Frames before `place` are no longer needed.
    pub fn release(&self, place: LogPlace) {
        let mut state = self.state.borrow_mut();
        state.tail = place.block;
        state.used =
            if state.head.frame == place.frame { 0 } else { distance(place.block, state.head.block, self.blocks) };
        drop(state);
        self.has_room.give();
    }

    /// Fails if the log cannot be written any more.
    pub fn check(&self) -> Result<(), FsError> {
        self.state.borrow().failed.clone().map_or(Ok(()), Err)
    }

    /// Returns once the records with numbers up to `record` are durable. `data` is flushed before every frame. Where the ring has
    /// no room for a frame a checkpoint is waited for; if none can be taken the records wait, and an error says why.
    pub async fn commit(&self, record: u64, data: &Data) -> Result<(), FsError> {
        while !self.commit_what_fits(record, data).await? {
            self.next_checkpoint().await?;
        }
        Ok(())
    }

    /// The same for a checkpoint: it cannot wait for itself, so without room it is an error.
    pub async fn commit_for_checkpoint(&self, record: u64, data: &Data) -> Result<(), FsError> {
        if self.commit_what_fits(record, data).await? { Ok(()) } else { Err(FsError::NoMetadataSpace) }
    }

    /// Makes records up to `record` durable as far as there is room; whether there was for all of them.
    async fn commit_what_fits(&self, record: u64, data: &Data) -> Result<bool, FsError> {
        while self.durable() < record {
            let _pass = self.gate.enter().await;
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

    /// Writes one frame of what is pending; false where there is no room for it.
    async fn commit_next(&self, data: &Data) -> Result<bool, FsError> {
        let (records, bytes) = self.next_frame();
        let Some(place) = self.place_for(blocks_for(bytes))? else { return Ok(false) };
        let bytes = self.take_frame(records, bytes);
        // Everything that these records name was written before they were made.
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

    /// How many of the records that wait go into one frame, and its bytes.
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

    /// Takes the first `records` of those that wait, which make a frame of so many bytes.
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

    /// Where a frame of so many blocks goes; nowhere where there is no room now.
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

/// Blocks that a frame in a ring of `blocks` takes at most, unless one record alone is larger.
pub const fn frame_blocks_max(blocks: u64) -> u64 {
    if blocks < FRAMES_MIN { 1 } else { blocks / FRAMES_MIN }
}

fn blocks_for(bytes: usize) -> u64 {
    bytes.div_ceil(BLOCK_BYTES) as u64
}

/// Blocks from `tail` round to `head`; a full ring never is.
fn distance(tail: u64, head: u64, blocks: u64) -> u64 {
    if head > tail { head - tail } else { blocks - tail + head }
}

/// What reading the log found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// Where the next frame goes.
    pub head: LogPlace,
    /// A frame behind the first one that is not there. None is written before the one before it is durable, so that one was
    /// not torn by a power cut: it is damaged, and what was committed from there on is lost.
    pub behind_damage: Option<u64>,
}

/// Reads the log from `from` on and gives each record to `see`, in order. What may lie behind damage is looked for in the
/// `sought` blocks behind the end.
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

/// The number of a frame that follows the one that should be at `at`, in the `sought` blocks from there on, round the end.
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
        // What cannot be read holds no frame that could be applied.
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

/// The number in the head of a frame of file system `uuid`, if `block` begins with one.
fn frame_number(block: &[u8], uuid: u128) -> Option<u64> {
    let mut head = Decoder::new(block);
    let magic = head.u32().ok()?;
    head.u32().ok()?;
    (magic == MAGIC && head.u128().ok()? == uuid).then(|| head.u64().ok())?
}

/// The records of the frame at `at`, and its blocks, if the frame that should be there is, on some copy; those that do not have
/// it, because the power went or they are damaged, get it.
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
    let told = |error: Malformed| FsError::format(&area.name(), format!("a frame of the log: {error}"));
    let mut head = Decoder::new(&frame[HEAD_BYTES - 8..]);
    let (records, length) = (head.u32().map_err(told)?, head.u32().map_err(told)? as usize);
    let records = decode_records(&frame[HEAD_BYTES..HEAD_BYTES + length], records).map_err(told)?;
    Ok(Some((records, (frame.len() / BLOCK_BYTES) as u64)))
}

/// The whole blocks of the frame that should be at `at`, if one copy has it. A block that cannot be read was being written when
/// the power went: no frame is there.
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
