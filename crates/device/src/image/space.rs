//! The space of an image: regions cut into chunks, and the table that says in which slot each chunk lies.
//!
//! Invariants:
//! 1. A chunk's slot, once given, stays.
//! 2. The mark in the durable state lies at or past every slot given out; after an opening, slots go on from the mark.
//!    So a slot whose entry in the table was lost in a power cut is never given to another chunk.
//! 3. The medium is as long as all slots up to the mark before the mark says so: a file that was cut short shows it.
//! 4. A copy of the state lies in one sector, which a power cut leaves old or new. So a copy that is neither whole nor
//!    as made is damage, and the older one beside it is not to be trusted: it may forget slots and a checkpoint.

use crate::error::DeviceError;
use crate::image::header::{Header, HEADER_BYTES};
use crate::media::Media;

/// What part of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Region {
    /// Contents of the platters.
    Disk = 0,
    /// Contents of the flash.
    Flash = 1,
    /// A bit for each sector of the platters.
    Damage = 2,
    /// The first journal.
    JournalA = 3,
    /// The second journal.
    JournalB = 4,
}

const REGIONS: usize = 5;
/// Where the two copies of the state lie.
const STATE_OFFSETS: [u64; 2] = [HEADER_BYTES, HEADER_BYTES + 4096];
const TABLE_OFFSET: u64 = HEADER_BYTES + 8192;
const STATE_MAGIC: u32 = 0x5354_4154;
/// Entries of the table that are read and kept together.
const ENTRIES_PER_PAGE: u64 = 1024;
/// Slots by which the mark moves on: one write of the state for so many chunks.
const SLOTS_PER_MARK: u64 = 256;

/// What changes seldom, and is written in turn to two places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Counts the writes of the state; the copy with the higher one is valid.
    pub generation: u64,
    /// Which journal is valid: 0 or 1.
    pub journal: u32,
    /// The epoch in which that journal begins.
    pub journal_epoch: u32,
    /// The epoch of the latest opening for work.
    pub epoch: u32,
    /// Slots up to here may be in use.
    pub slot_mark: u64,
    /// Records that the valid journal has at least.
    pub journal_records: u64,
}

/// Bytes of a copy.
const STATE_BYTES: usize = 48;

impl State {
    fn bytes(&self) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        bytes[4..8].copy_from_slice(&STATE_MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.journal.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.journal_epoch.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.slot_mark.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.journal_records.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; STATE_BYTES]) -> Option<State> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let is_whole = word(0) == crc32c::crc32c(&bytes[4..]) && word(4) == STATE_MAGIC && word(16) < 2;
        is_whole.then(|| State {
            generation: long(8),
            journal: word(16),
            journal_epoch: word(20),
            epoch: word(24),
            slot_mark: long(32),
            journal_records: long(40),
        })
    }

    /// The valid one of the two copies, or what is wrong with them.
    fn newest(copies: &[[u8; STATE_BYTES]; 2]) -> Result<State, &'static str> {
        let parsed =
            [0, 1].map(|index| State::parse(&copies[index]).filter(|state| state.generation % 2 == index as u64));
        match parsed {
            [Some(even), Some(odd)] if even.generation.abs_diff(odd.generation) == 1 => {
                Ok(if even.generation > odd.generation { even } else { odd })
            }
            // The second copy is written first; a drive whose state never changed has no other.
            [None, Some(first)] if first.generation == 1 && copies[0] == [0; STATE_BYTES] => Ok(first),
            [None, None] => Err("is cut short or damaged: neither copy of its state is whole; restore it from a copy"),
            _ => {
                Err("is damaged: of the two copies of its state one is spoilt, so that the other may be out of date; \
                      restore it from a copy")
            }
        }
    }
}

/// The space.
#[derive(Debug)]
pub struct Space<M> {
    media: M,
    chunk_bytes: u64,
    /// First chunk of each region, and one past the last.
    first_chunk: [u64; REGIONS + 1],
    slots_offset: u64,
    /// Pages of the table as they were read; an entry is the slot's number + 1, or 0.
    table: Vec<Option<Box<[u32]>>>,
    slots_used: u64,
    state: State,
}

/// A wrong entry of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotFault {
    /// It names a slot that was never given out.
    NeverGiven {
        /// The chunk.
        chunk: u64,
        /// The slot.
        slot: u64,
    },
    /// An earlier chunk lies in the same slot.
    Shared {
        /// The later chunk.
        chunk: u64,
        /// The slot.
        slot: u64,
    },
}

impl std::fmt::Display for SlotFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SlotFault::NeverGiven { chunk, slot } => write!(f, "chunk {chunk} is in slot {slot}, never given out"),
            SlotFault::Shared { chunk, slot } => write!(f, "chunk {chunk} is in slot {slot}, as another is"),
        }
    }
}

/// A run of an image that holds a run of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Where, or nowhere yet.
    pub at: Option<u64>,
    /// How many bytes.
    pub bytes: u64,
}

impl<M: Media> Space<M> {
    /// The space of a new image on `media`, its state written.
    pub fn create(media: M, header: &Header) -> Result<Space<M>, DeviceError> {
        let mut space = Space::over(media, header);
        space.update(|state| *state = State { epoch: 1, journal_epoch: 1, ..State::default() })?;
        Ok(space)
    }

    /// The space of an image; `place` names it in errors.
    pub fn open(media: M, header: &Header, place: &str) -> Result<Space<M>, DeviceError> {
        let mut space = Space::over(media, header);
        let mut copies = [[0; STATE_BYTES]; 2];
        for (offset, bytes) in STATE_OFFSETS.into_iter().zip(&mut copies) {
            let failed = |cause| DeviceError::medium(format!("{place}: reading the state"), cause);
            space.media.read_at(offset, bytes).map_err(failed)?;
        }
        space.state = State::newest(&copies).map_err(|reason| DeviceError::damaged(place, reason))?;
        let (length, needed) = (space.media.len(), space.slot_offset(space.state.slot_mark));
        if space.state.slot_mark > 0 && length < needed {
            let reason = format!("is cut short: {length} bytes of {needed}; restore it from a copy");
            return Err(DeviceError::damaged(place, reason));
        }
        space.slots_used = space.state.slot_mark;
        Ok(space)
    }

    fn over(media: M, header: &Header) -> Space<M> {
        let sector = header.sector_bytes as u64;
        let damage_bytes = header.disk_sectors.div_ceil(8);
        let sizes = [
            header.disk_sectors * sector,
            header.flash_sectors * sector,
            damage_bytes,
            header.journal_bytes,
            header.journal_bytes,
        ];
        let mut first_chunk = [0; REGIONS + 1];
        for (index, bytes) in sizes.iter().enumerate() {
            first_chunk[index + 1] = first_chunk[index] + bytes.div_ceil(header.chunk_bytes);
        }
        let pages = first_chunk[REGIONS].div_ceil(ENTRIES_PER_PAGE);
        let table_end = TABLE_OFFSET + pages * ENTRIES_PER_PAGE * 4;
        Space {
            media,
            chunk_bytes: header.chunk_bytes,
            first_chunk,
            slots_offset: table_end.next_multiple_of(header.chunk_bytes),
            table: vec![None; pages as usize],
            slots_used: 0,
            state: State::default(),
        }
    }

    /// The medium.
    pub fn media(&self) -> &M {
        &self.media
    }

    /// The medium, for whoever cuts or fills it.
    pub fn media_mut(&mut self) -> &mut M {
        &mut self.media
    }

    /// Gives the medium back.
    pub fn into_media(self) -> M {
        self.media
    }

    /// The durable state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Bytes of slots given out.
    pub fn allocated_bytes(&self) -> u64 {
        self.slots_used * self.chunk_bytes
    }

    /// Where `slot` begins.
    fn slot_offset(&self, slot: u64) -> u64 {
        self.slots_offset + slot * self.chunk_bytes
    }

    /// Changes the state: written to the older copy, durable before this returns.
    pub fn update(&mut self, change: impl FnOnce(&mut State)) -> Result<(), DeviceError> {
        let failed = |cause| DeviceError::medium("writing the image's state", cause);
        // What the new state speaks of must be there first.
        self.media.flush().map_err(failed)?;
        change(&mut self.state);
        self.state.generation += 1;
        let offset = STATE_OFFSETS[(self.state.generation % 2) as usize];
        self.media.write_at(offset, &self.state.bytes()).map_err(failed)?;
        self.media.flush().map_err(failed)
    }

    /// Makes all that was written durable.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        self.media.flush().map_err(|cause| DeviceError::medium("flushing the image", cause))
    }

    fn slot(&mut self, chunk: u64) -> Result<Option<u64>, DeviceError> {
        let (page, index) = ((chunk / ENTRIES_PER_PAGE) as usize, (chunk % ENTRIES_PER_PAGE) as usize);
        if self.table[page].is_none() {
            let mut bytes = vec![0; ENTRIES_PER_PAGE as usize * 4];
            let offset = TABLE_OFFSET + page as u64 * ENTRIES_PER_PAGE * 4;
            let failed = |cause| DeviceError::medium("reading the image's table", cause);
            self.media.read_at(offset, &mut bytes).map_err(failed)?;
            let entries = bytes.chunks_exact(4).map(|entry| u32::from_le_bytes(entry.try_into().expect("four bytes")));
            self.table[page] = Some(entries.collect());
        }
        let entry = self.table[page].as_ref().expect("just read")[index];
        if u64::from(entry) > self.slots_used {
            let reason =
                format!("is damaged: its table says slot {entry} of {}; restore it from a copy", self.slots_used);
            return Err(DeviceError::damaged("the image", reason));
        }
        Ok(entry.checked_sub(1).map(u64::from))
    }

    /// Gives `chunk` a slot if it has none.
    fn give(&mut self, chunk: u64) -> Result<u64, DeviceError> {
        if let Some(slot) = self.slot(chunk)? {
            return Ok(slot);
        }
        let slot = self.slots_used;
        if slot >= self.state.slot_mark {
            let mark = slot + SLOTS_PER_MARK;
            let failed = |cause| DeviceError::medium("lengthening the image", cause);
            self.media.write_at(self.slot_offset(mark) - 1, &[0]).map_err(failed)?;
            self.update(|state| state.slot_mark = mark)?;
        }
        self.slots_used += 1;
        let entry = u32::try_from(slot + 1).map_err(|_| DeviceError::Refused("the image's table is full".into()))?;
        let failed = |cause| DeviceError::medium("writing the image's table", cause);
        self.media.write_at(TABLE_OFFSET + chunk * 4, &entry.to_le_bytes()).map_err(failed)?;
        let (page, index) = ((chunk / ENTRIES_PER_PAGE) as usize, (chunk % ENTRIES_PER_PAGE) as usize);
        self.table[page].as_mut().expect("read by slot()")[index] = entry;
        Ok(slot)
    }

    /// The first `faults_max` wrong entries of the table as the medium has it. Takes a bit a slot.
    pub fn check_slots(&mut self, faults_max: usize) -> Result<Vec<SlotFault>, DeviceError> {
        let mut faults = Vec::new();
        let mut taken = vec![0u64; self.slots_used.div_ceil(64) as usize];
        let mut bytes = vec![0; ENTRIES_PER_PAGE as usize * 4];
        for page in 0..self.table.len() as u64 {
            let offset = TABLE_OFFSET + page * ENTRIES_PER_PAGE * 4;
            let failed = |cause| DeviceError::medium("reading the image's table", cause);
            self.media.read_at(offset, &mut bytes).map_err(failed)?;
            for (index, entry) in bytes.chunks_exact(4).enumerate() {
                let entry = u32::from_le_bytes(entry.try_into().expect("four bytes"));
                let Some(slot) = entry.checked_sub(1).map(u64::from) else { continue };
                let (chunk, bit) = (page * ENTRIES_PER_PAGE + index as u64, 1 << (slot % 64));
                if slot >= self.slots_used {
                    faults.push(SlotFault::NeverGiven { chunk, slot });
                } else if taken[(slot / 64) as usize] & bit != 0 {
                    faults.push(SlotFault::Shared { chunk, slot });
                } else {
                    taken[(slot / 64) as usize] |= bit;
                }
            }
        }
        faults.truncate(faults_max);
        Ok(faults)
    }

    /// Appends to `runs` where `bytes` from `offset` of `region` lie; `gives` slots to chunks without.
    pub fn runs(
        &mut self,
        region: Region,
        offset: u64,
        bytes: u64,
        gives: bool,
        runs: &mut Vec<Run>,
    ) -> Result<(), DeviceError> {
        let first = self.first_chunk[region as usize];
        assert!(
            first + (offset + bytes).div_ceil(self.chunk_bytes) <= self.first_chunk[region as usize + 1],
            "{bytes} bytes at {offset} of {region:?} reach past its end"
        );
        let begin = runs.len();
        let mut done = 0;
        while done < bytes {
            let within = (offset + done) % self.chunk_bytes;
            let part = (self.chunk_bytes - within).min(bytes - done);
            let chunk = first + (offset + done) / self.chunk_bytes;
            let slot = if gives { Some(self.give(chunk)?) } else { self.slot(chunk)? };
            let at = slot.map(|slot| self.slot_offset(slot) + within);
            match runs[begin..].last_mut() {
                Some(last) if follows(last, at) => last.bytes += part,
                _ => runs.push(Run { at, bytes: part }),
            }
            done += part;
        }
        Ok(())
    }

    /// Reads from `region`.
    pub fn read(&mut self, region: Region, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut runs = Vec::new();
        self.runs(region, offset, into.len() as u64, false, &mut runs)?;
        let mut done = 0;
        for run in runs {
            let part = &mut into[done..done + run.bytes as usize];
            match run.at {
                Some(at) => self
                    .media
                    .read_at(at, part)
                    .map_err(|cause| DeviceError::medium(format!("reading {region:?} at byte {offset}"), cause))?,
                None => part.fill(0),
            }
            done += run.bytes as usize;
        }
        Ok(())
    }

    /// Whether any of these bytes has a slot.
    pub fn is_allocated(&mut self, region: Region, offset: u64, bytes: u64) -> Result<bool, DeviceError> {
        let mut runs = Vec::new();
        self.runs(region, offset, bytes, false, &mut runs)?;
        Ok(runs.iter().any(|run| run.at.is_some()))
    }

    /// Gives chunks to `pieces` that have none, durably: whatever is written to them can be found from now on.
    pub fn ready(&mut self, pieces: &[(Region, u64, &[u8])]) -> Result<(), DeviceError> {
        let (before, mut runs) = (self.slots_used, Vec::new());
        for (region, offset, from) in pieces {
            self.runs(*region, *offset, from.len() as u64, true, &mut runs)?;
        }
        if self.slots_used > before {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes several pieces to their regions as one act. Zeros give no slot to a chunk that has none: it reads as zeros,
    /// and a band that is cleaned whole is mostly sectors that were never written.
    pub fn write_together(&mut self, pieces: &[(Region, u64, &[u8])]) -> Result<(), DeviceError> {
        let (mut needed, mut runs, mut placed) = (Vec::new(), Vec::new(), Vec::with_capacity(pieces.len()));
        for &(region, offset, from) in pieces {
            needed.clear();
            self.needed(region, offset, from, &mut needed)?;
            for &(offset, from) in &needed {
                runs.clear();
                self.runs(region, offset, from.len() as u64, true, &mut runs)?;
                let mut done = 0;
                for run in &runs {
                    let end = done + run.bytes as usize;
                    placed.push((run.at.expect("every chunk was given a slot"), &from[done..end]));
                    done = end;
                }
            }
        }
        if placed.is_empty() {
            return Ok(());
        }
        self.media.write_together(&placed).map_err(|cause| DeviceError::medium("writing the image", cause))
    }

    /// Appends to `parts` what of a piece has to be written: all but zeros for chunks without a slot.
    fn needed<'a>(
        &mut self,
        region: Region,
        offset: u64,
        from: &'a [u8],
        parts: &mut Vec<(u64, &'a [u8])>,
    ) -> Result<(), DeviceError> {
        let first = self.first_chunk[region as usize];
        let (mut begin, mut done) = (0, 0);
        while done < from.len() {
            let at = offset + done as u64;
            let end = from.len().min(done + (self.chunk_bytes - at % self.chunk_bytes) as usize);
            if self.slot(first + at / self.chunk_bytes)?.is_none() && is_zero(&from[done..end]) {
                if begin < done {
                    parts.push((offset + begin as u64, &from[begin..done]));
                }
                begin = end;
            }
            done = end;
        }
        if begin < done {
            parts.push((offset + begin as u64, &from[begin..]));
        }
        Ok(())
    }
}

/// Whether there is nothing but zeros: by 64 bytes, which takes a few instructions each.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(64).all(|part| part.iter().fold(0, |any, byte| any | byte) == 0)
}

fn follows(last: &Run, at: Option<u64>) -> bool {
    match (last.at, at) {
        (Some(last_at), Some(at)) => last_at + last.bytes == at,
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    //! Goal: what is written is read, and zeros take no room where nothing was. Method: pieces of zeros and ones beside a
    //! plain buffer; slots counted by the chunks that a one was ever written to.

    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::media::memory::Memory;

    const CHUNK: usize = 4096;
    const SECTORS: usize = 64;

    fn space() -> Space<Memory> {
        let header = Header {
            uuid: uuid::Uuid::nil(),
            label: "toy".into(),
            profile_file: String::new(),
            profile_text: String::new(),
            profile_overrides: Vec::new(),
            layer: String::new(),
            parameters: Vec::new(),
            sector_bytes: 512,
            disk_sectors: SECTORS as u64,
            flash_sectors: 0,
            chunk_bytes: CHUNK as u64,
            journal_bytes: CHUNK as u64,
        };
        Space::create(Memory::new(), &header).expect("memory takes it")
    }

    proptest! {
        #[test]
        fn zeros_take_no_slot_and_all_reads_as_written(
            writes in prop::collection::vec((0..SECTORS, prop::collection::vec(prop::bool::weighted(0.2), 1..24)), 1..12),
        ) {
            let (mut space, mut twin, mut chunks) = (space(), vec![0u8; SECTORS * 512], BTreeSet::new());
            for (sector, ones) in writes {
                let mut bytes: Vec<u8> = ones.iter().flat_map(|&is_one| [u8::from(is_one); 512]).collect();
                bytes.truncate((SECTORS - sector) * 512);
                let range = sector * 512..sector * 512 + bytes.len();
                chunks.extend(range.clone().filter(|&at| bytes[at - range.start] == 1).map(|at| at / CHUNK));
                space.write_together(&[(Region::Disk, range.start as u64, &bytes)]).expect("memory takes it");
                twin[range].copy_from_slice(&bytes);
            }
            let mut read = vec![9; twin.len()];
            space.read(Region::Disk, 0, &mut read).expect("memory reads");
            prop_assert!(read == twin);
            prop_assert_eq!(space.allocated_bytes(), (chunks.len() * CHUNK) as u64);
        }
    }
}
