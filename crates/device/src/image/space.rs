//! The space of an image: chunks and their slots, barriers and the state. What is read and written in it is in `transfer`,
//! what an opening makes of it in `opening`, what a check looks at in `scrub`.
//!
//! Invariants:
//! 1. A slot is prepared before it is given, and the state's mark covers it: so a slot that was given always has a whole
//!    header and a whole sector table, and a file that was cut short shows it.
//! 2. When an era ends, the digests of the blocks of sector tables that were written in it become durable with them.
//! 3. The era in the state only grows, and only after all that was written before is durable.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::bounds::Bounds;
use super::checksum::{Places, Salt, What};
use super::directory::Directory;
use super::header::Header;
use super::layout::{COPIES, DIGESTS_PER_BLOCK, ENTRY_BYTES, Layout, Region};
use super::sectors::{ABSENT, Block, Kept, Seal};
use super::state::State;
use crate::error::DeviceError;
use crate::media::Media;
use crate::media::deferred::Deferred;

/// Slots prepared at first; more as the image grows.
const SLOTS_AT_FIRST: u64 = 4;

/// How a drive wants sectors to be treated that hold nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blank {
    /// A sector of the platters that was never written is maybe damaged: reading it is an error (Singh 2014 §4.1).
    pub is_damaged: bool,
    /// Zeros are remembered as written even where nothing else is stored nearby, and blank sectors that are destroyed as
    /// destroyed: for drives whose host answers for what it destroys.
    pub remembers_zeros: bool,
}

/// The space.
#[derive(Debug)]
pub struct Space<M> {
    pub(super) media: Deferred<M>,
    pub(super) layout: Layout,
    pub(super) directory: Directory,
    pub(super) seal: Seal,
    pub(super) kept: Kept,
    pub(super) contents: [Salt; 2],
    /// What places have in the sums of contents that were summed before: made when first needed.
    pub(super) places: [Option<Places>; 2],
    pub(super) journal: Salt,
    /// Of the headers of the restore area.
    pub(super) restore: Salt,
    pub(super) state: State,
    pub(super) state_salt: Salt,
    pub(super) uuid: Uuid,
    pub(super) bounds: Bounds,
    pub(super) blank: Blank,
    /// Whether slots were given whose owners are lost: what lies in no slot may have been in one of them.
    pub(super) has_orphans: bool,
    /// Slots up to here are prepared and were not used since.
    prepared: u64,
    /// Whether anything was written since the last barrier.
    pub(super) is_changed: bool,
    /// The latest era that is known to have begun from elsewhere than the state; 0 if none is.
    pub(super) begun_era: u64,
    /// What the opening found amiss and could do without.
    pub(super) notices: Vec<String>,
    /// Blocks of sector tables that were written and whose digests were not, by slot and number.
    pub(super) undigested: BTreeSet<(u64, u64)>,
    /// Where the next copy goes in the restore area.
    pub(super) restore_end: u64,
    /// Buffers that are used again.
    pub(super) scratch: super::scratch::Scratch,
}

impl<M: Media> Space<M> {
    /// The space of a new image on `media`, its state written to both places.
    pub fn create(media: M, header: &Header, bounds: Bounds) -> Result<Space<M>, DeviceError> {
        let mut space = Space::over(media, header, bounds);
        space.state = State { era: 1, epoch: 1, journal_epoch: 1, ..State::default() };
        space.write_state()?;
        space.update(|_| {})?;
        Ok(space)
    }

    /// One that nothing is known of yet.
    pub(super) fn over(media: M, header: &Header, bounds: Bounds) -> Space<M> {
        let layout = header.layout();
        let salt = |what| Salt::new(header.uuid, what);
        Space {
            media: Deferred::new(media, bounds.held_bytes),
            directory: Directory::new(header.uuid, layout.chunks()),
            layout,
            seal: Seal::new(header.uuid),
            kept: Kept::new(bounds.table_blocks),
            contents: [salt(What::Disk), salt(What::Flash)],
            places: [None, None],
            journal: salt(What::Journal),
            restore: salt(What::Restore),
            state: State::default(),
            state_salt: salt(What::State),
            uuid: header.uuid,
            bounds,
            blank: Blank::default(),
            has_orphans: false,
            prepared: 0,
            is_changed: false,
            notices: Vec::new(),
            begun_era: 0,
            undigested: BTreeSet::new(),
            restore_end: 0,
            scratch: super::scratch::Scratch::default(),
        }
    }

    /// The medium.
    pub fn media(&self) -> &M {
        self.media.below()
    }

    /// The medium, for whoever cuts or damages it. What was kept of it in memory is forgotten.
    pub fn media_mut(&mut self) -> &mut M {
        self.kept.clear();
        self.media.below_mut()
    }

    /// Until the next call, what is written may lie in these blocks: the medium may keep them.
    pub fn lend(&mut self, blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {
        self.media.lend(blocks);
    }

    /// A block that the medium has left since this loan began.
    pub fn reclaim(&mut self) -> Option<Vec<u8>> {
        self.media.reclaim()
    }

    /// Gives the medium back.
    pub fn into_media(self) -> M {
        self.media.into_below()
    }

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The bounds it works in.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// How the drive wants blank sectors to be treated.
    pub fn set_blank(&mut self, blank: Blank) {
        self.blank = blank;
    }

    /// What the opening found amiss and could do without, in words.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Bytes of slots given out.
    pub fn allocated_bytes(&self) -> u64 {
        self.directory.given * self.layout.slot_bytes()
    }

    /// The region and the sector whose contents lie at byte `at` of the image.
    pub fn sector_at(&self, at: u64) -> Option<(Region, u64)> {
        let (slot, within) = self.layout.slot_at(at)?;
        let (region, offset) = self.layout.region_of(self.directory.chunk(slot)?)?;
        region.has_sectors().then_some((region, (offset + within) / self.layout.sector_bytes))
    }

    /// Bytes of `region` up to the end of its last chunk that has a slot.
    pub fn allocated_end(&self, region: Region) -> u64 {
        let chunks = self.layout.chunks_of(region);
        let last = self.directory.chunks_with_slot(chunks.clone()).last();
        last.map_or(0, |last| (last + 1 - chunks.start) * self.layout.chunk_bytes)
    }

    /// Era `era` had begun, whatever the state says: all that was written in an earlier one was durable.
    pub(super) fn note_begun(&mut self, era: u64) {
        self.begun_era = self.begun_era.max(era);
    }

    /// Makes all that was written durable; `journal_records` is how many records there are now.
    pub fn barrier(&mut self, journal_records: u64) -> Result<(), DeviceError> {
        self.state.journal_records = journal_records;
        self.end_era()
    }

    /// Makes all that was written durable, and begins a new era.
    pub(super) fn end_era(&mut self) -> Result<(), DeviceError> {
        self.write_digests()?;
        self.flush()?;
        self.restore_end = 0;
        if self.is_changed {
            self.state.era += 1;
            self.write_state()?;
            self.is_changed = false;
        }
        Ok(())
    }

    /// Flushes the medium.
    pub(crate) fn flush(&mut self) -> Result<(), DeviceError> {
        self.media.flush().map_err(|cause| DeviceError::medium("flushing the image", cause))
    }

    /// Makes all that was written outlive the host, however far a flush reaches.
    pub(crate) fn sync(&mut self) -> Result<(), DeviceError> {
        self.media.sync().map_err(|cause| DeviceError::medium("syncing the image", cause))
    }

    /// Changes the state, durably before this returns; all that was written before is durable before it.
    pub fn update(&mut self, change: impl FnOnce(&mut State)) -> Result<(), DeviceError> {
        self.write_digests()?;
        self.flush()?;
        self.restore_end = 0;
        self.state.era += 1;
        change(&mut self.state);
        self.write_state()?;
        self.is_changed = false;
        self.flush()
    }

    fn write_state(&mut self) -> Result<(), DeviceError> {
        self.state.generation += 1;
        self.state.slots_given = self.directory.given;
        let bytes = self.state.bytes(self.state_salt);
        let place = self.state.place();
        let copies = [0, 1, 2].map(|copy| (self.layout.state(copy, place), &bytes[..]));
        debug_assert_eq!(copies.len() as u64, COPIES);
        self.media.write_together(&copies).map_err(|cause| DeviceError::medium("writing the image's state", cause))
    }

    /// The slot of `chunk`; one is given to it if it has none.
    pub(super) fn give(&mut self, chunk: u64) -> Result<u64, DeviceError> {
        if let Some(slot) = self.directory.slot(chunk) {
            return Ok(slot);
        }
        let slot = self.directory.end();
        if slot >= self.prepared {
            self.prepare(slot)?;
        }
        assert!(slot < self.state.slot_mark, "invariant 1: slot {slot} lies past the mark {}", self.state.slot_mark);
        let was_free = self.directory.set(slot, chunk);
        assert!(was_free, "chunk {chunk} had no slot a moment ago");
        self.write_owner(slot, chunk)?;
        if self.has_orphans {
            self.give_up_chunk(chunk)?;
        }
        Ok(slot)
    }

    /// Writes down, in both places, that `slot` holds `chunk`.
    pub(super) fn write_owner(&mut self, slot: u64, chunk: u64) -> Result<(), DeviceError> {
        let (entry, header) = (self.directory.entry(slot, chunk), self.directory.header(slot, Some(chunk)));
        self.is_changed = true;
        let pieces = [(self.layout.entry(slot), &entry[..]), (self.layout.slot(slot), &header[..])];
        self.media.write_together(&pieces).map_err(|cause| DeviceError::medium("writing the image's directory", cause))
    }

    /// Prepares slots from `first` on, durably.
    fn prepare(&mut self, first: u64) -> Result<(), DeviceError> {
        let count = (self.directory.given + SLOTS_AT_FIRST).clamp(1, self.bounds.slots_prepared.max(1));
        if first + count > u64::from(u32::MAX) {
            return Err(DeviceError::Refused("the image has as many slots as there can be".into()));
        }
        let failed = |cause| DeviceError::medium("lengthening the image", cause);
        self.media.write_at(self.layout.slot(first + count) - 1, &[0]).map_err(failed)?;
        // Their entries mean something from now on: whatever stood there must not.
        let entries = vec![0; (count * ENTRY_BYTES) as usize];
        self.media.write_at(self.layout.entry(first), &entries).map_err(failed)?;
        for slot in first..first + count {
            let head = self.prepared_head(slot);
            self.media.write_at(self.layout.slot(slot), &head).map_err(failed)?;
        }
        self.kept.clear();
        self.update(|state| state.slot_mark = state.slot_mark.max(first + count))?;
        self.prepared = first + count;
        Ok(())
    }

    /// The header, the digests and the sector table of `slot` before it is given.
    pub(super) fn prepared_head(&self, slot: u64) -> Vec<u8> {
        let (table_blocks, mut blank) = (self.layout.table_blocks, Block::filled(ABSENT));
        let mut head = Vec::with_capacity(self.layout.slot_head_bytes());
        head.extend_from_slice(&self.directory.header(slot, None));
        for index in 0..self.layout.digest_blocks {
            let mut digests = Block::of_digests();
            let first = index * DIGESTS_PER_BLOCK;
            for number in first..table_blocks.min(first + DIGESTS_PER_BLOCK) {
                digests.set_digest(number - first, self.seal.digest(slot, number, &blank));
            }
            head.extend_from_slice(&self.seal.close(slot, table_blocks + index, None, &mut digests));
        }
        head.resize(self.layout.table_offset(), 0);
        for number in 0..table_blocks {
            head.extend_from_slice(&self.seal.close(slot, number, None, &mut blank));
        }
        debug_assert_eq!(head.len(), self.layout.slot_head_bytes());
        head
    }

    /// Reads from a region whose contents bear their own checksums. What was never written reads as zeros.
    pub fn read_raw(&mut self, region: Region, offset: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        debug_assert!(!region.has_sectors(), "{region:?} has a sector table");
        let mut done = 0;
        while done < into.len() {
            let (chunk, within, part) = self.part(region, offset + done as u64, (into.len() - done) as u64);
            let part = &mut into[done..done + part as usize];
            match self.directory.slot(chunk) {
                Some(slot) => {
                    let failed = |cause| DeviceError::medium(format!("reading {region:?}"), cause);
                    self.media.read_at(self.layout.content(slot, within), part).map_err(failed)?;
                }
                None => part.fill(0),
            }
            done += part.len();
        }
        Ok(())
    }

    /// Writes pieces of regions whose contents bear their own checksums, as one act.
    pub fn write_raw(&mut self, pieces: &[(Region, u64, &[u8])]) -> Result<(), DeviceError> {
        let mut placed: Vec<(u64, &[u8])> = Vec::with_capacity(pieces.len());
        for &(region, offset, from) in pieces {
            debug_assert!(!region.has_sectors(), "{region:?} has a sector table");
            let mut done = 0;
            while done < from.len() {
                let (chunk, within, part) = self.part(region, offset + done as u64, (from.len() - done) as u64);
                let slot = self.give(chunk)?;
                placed.push((self.layout.content(slot, within), &from[done..done + part as usize]));
                done += part as usize;
            }
        }
        self.is_changed = true;
        self.media.write_together(&placed).map_err(|cause| DeviceError::medium("writing the image's journal", cause))
    }

    /// The chunk of byte `offset` of `region`, where in it that lies, and how many of `bytes` from there it holds.
    pub(super) fn part(&self, region: Region, offset: u64, bytes: u64) -> (u64, u64, u64) {
        let within = offset % self.layout.chunk_bytes;
        (self.layout.chunk(region, offset), within, bytes.min(self.layout.chunk_bytes - within))
    }
}
