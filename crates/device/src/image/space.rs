//! The space of an image: chunks and their slots, barriers and the state. Reads and writes of sectors are in
//! `transfer`, the opening in `opening`, the check in `scrub`.
//!
//! Invariants:
//! 1. A slot is prepared, and covered by the slot mark of the state, before it is assigned. So an assigned slot always
//!    has a valid header and a valid sector table, and a file that was cut short can be detected.
//! 2. When an era ends, the digests of all blocks of sector tables that were written in it become durable with the
//!    blocks.
//! 3. The era in the state only grows, and only after all earlier writes are durable.

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

/// Number of slots prepared at first; more as the image grows.
const SLOTS_AT_FIRST: u64 = 4;

/// Treatment of sectors that have no stored contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blank {
    /// Whether a sector of the platters that was never written may be damaged, so that reading it is an error (Singh
    /// 2014 §4.1).
    pub is_damaged: bool,
    /// Whether written zeros are recorded also in parts of the drive to which nothing else was written, and destroyed
    /// sectors also if they were never written. True for drives whose host is responsible for the sectors that its
    /// writes destroy.
    pub remembers_zeros: bool,
}

/// The storage of an open image: sectors with their checksums, the slots that hold them, and the state of the image.
#[derive(Debug)]
pub struct Space<M> {
    pub(super) media: Deferred<M>,
    pub(super) layout: Layout,
    pub(super) directory: Directory,
    pub(super) seal: Seal,
    pub(super) kept: Kept,
    pub(super) contents: [Salt; 2],
    /// Address-dependent parts of checksums, for contents that come with precomputed parts; per region, created when
    /// first needed.
    pub(super) places: [Option<Places>; 2],
    pub(super) journal: Salt,
    /// Seed of the checksums of record headers in the restore area.
    pub(super) restore: Salt,
    pub(super) state: State,
    pub(super) state_salt: Salt,
    pub(super) uuid: Uuid,
    pub(super) bounds: Bounds,
    pub(super) blank: Blank,
    /// Whether there are assigned slots whose owners are lost. A chunk without a slot may have been in one of them.
    pub(super) has_orphans: bool,
    /// End of the slots that were prepared since the opening. Slots below it can be assigned without another
    /// preparation.
    prepared: u64,
    /// Whether anything was written since the last barrier.
    pub(super) is_changed: bool,
    /// Latest era that is known to have begun from other sources than the state; 0 if none.
    pub(super) begun_era: u64,
    /// Messages about damage that the opening found and could work around.
    pub(super) notices: Vec<String>,
    /// Written blocks of sector tables whose digests are not written yet, as (slot, number).
    pub(super) undigested: BTreeSet<(u64, u64)>,
    /// Offset of the next copy in the restore area.
    pub(super) restore_end: u64,
    /// Buffers that are reused.
    pub(super) scratch: super::scratch::Scratch,
}

impl<M: Media> Space<M> {
    /// Creates the storage of a new image on `media`, to which the header was written before. Writes the state of the
    /// image.
    ///
    /// # Errors
    /// The medium fails.
    pub fn create(media: M, header: &Header, bounds: Bounds) -> Result<Space<M>, DeviceError> {
        let mut space = Space::over(media, header, bounds);
        space.state = State { era: 1, epoch: 1, journal_epoch: 1, ..State::default() };
        space.write_state()?;
        space.update(|_| {})?;
        Ok(space)
    }

    /// Returns a space over `media`, without reading anything from it.
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

    /// Returns the medium. Contents that wait in memory for a flush are not on it.
    pub fn media(&self) -> &M {
        self.media.below()
    }

    /// Returns the medium, for tests that cut its power or damage it. Empties the cache of sector tables, so that
    /// changes of the medium are seen.
    pub fn media_mut(&mut self) -> &mut M {
        self.kept.clear();
        self.media.below_mut()
    }

    /// Lends blocks of memory to the medium until the next call ([`Media::lend`]): if the data of a write lies in such
    /// a block, the medium may keep the block instead of a copy.
    pub fn lend(&mut self, blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {
        self.media.lend(blocks);
    }

    /// Removes and returns a lent block that the medium has stopped using since the latest call of [`Space::lend`], or
    /// `None` if there is none ([`Media::reclaim`]).
    pub fn reclaim(&mut self) -> Option<Vec<u8>> {
        self.media.reclaim()
    }

    /// Consumes the space and returns the medium, without a flush. Contents that wait in memory for a flush are lost.
    pub fn into_media(self) -> M {
        self.media.into_below()
    }

    /// Returns the offsets of all parts of the image.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the state of the image as of the latest barrier or update.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the limits on memory and on the size of batches with which the image was opened.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Sets the treatment of sectors that have no stored contents.
    pub fn set_blank(&mut self, blank: Blank) {
        self.blank = blank;
    }

    /// Returns messages about damage that was found when the image was opened and did not prevent the opening.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns the total size in bytes of the slots that hold chunks, including their metadata.
    pub fn allocated_bytes(&self) -> u64 {
        self.directory.given * self.layout.slot_bytes()
    }

    /// Returns the region and the physical sector whose contents lie at byte `at` of the image. Returns `None` if the
    /// byte belongs to metadata, to a journal or to an unassigned slot.
    pub fn sector_at(&self, at: u64) -> Option<(Region, u64)> {
        let (slot, within) = self.layout.slot_at(at)?;
        let (region, offset) = self.layout.region_of(self.directory.chunk(slot)?)?;
        region.has_sectors().then_some((region, (offset + within) / self.layout.sector_bytes))
    }

    /// Returns the offset in `region`, in bytes, of the end of its last chunk that has a slot; 0 if none has.
    pub fn allocated_end(&self, region: Region) -> u64 {
        let chunks = self.layout.chunks_of(region);
        let last = self.directory.chunks_with_slot(chunks.clone()).last();
        last.map_or(0, |last| (last + 1 - chunks.start) * self.layout.chunk_bytes)
    }

    /// Notes that era `era` had begun, whatever the state says: all writes of earlier eras were durable.
    pub(super) fn note_begun(&mut self, era: u64) {
        self.begun_era = self.begun_era.max(era);
    }

    /// Makes all writes so far durable, and records in the state that the journal has `journal_records` records. If
    /// anything was written since the last barrier, also writes the new state, which the next barrier makes durable.
    ///
    /// # Errors
    /// The medium fails.
    pub fn barrier(&mut self, journal_records: u64) -> Result<(), DeviceError> {
        self.state.journal_records = journal_records;
        self.end_era()
    }

    /// Makes all writes so far durable. Begins a new era if anything was written.
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

    /// Makes all writes so far survive a crash of the host, even if a flush of the medium does not.
    pub(crate) fn sync(&mut self) -> Result<(), DeviceError> {
        self.media.sync().map_err(|cause| DeviceError::medium("syncing the image", cause))
    }

    /// Changes the state of the image with `change`, and increments the number of its era (the period between two
    /// barriers). All earlier writes are durable before the new state is written, and the new state is durable on
    /// return.
    ///
    /// # Errors
    /// The medium fails.
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

    /// Returns the slot of `chunk`; assigns one if it has none.
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

    /// Writes the directory entry and the slot header, which say that `slot` holds `chunk`.
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
        // The slot mark will cover these entries, so leftovers in them must be cleared.
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

    /// Returns the header, the digests and the sector table of `slot` before it is assigned.
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

    /// Fills `into` with the bytes of the journal region `region` from byte `offset` on. Bytes in chunks without a slot
    /// read as zeros.
    ///
    /// # Errors
    /// The medium fails.
    ///
    /// # Panics
    /// If the bytes reach past the end of the region.
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

    /// Writes pieces, as (region, offset in bytes, data), to journal regions, in one call of [`Media::write_together`].
    /// Chunks without a slot get one first.
    ///
    /// # Errors
    /// The medium fails, or the image has no more slots.
    ///
    /// # Panics
    /// If a piece reaches past the end of its region.
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

    /// Returns the chunk of byte `offset` of `region`, the offset in that chunk, and how many of the next `bytes` bytes
    /// lie in it.
    pub(super) fn part(&self, region: Region, offset: u64, bytes: u64) -> (u64, u64, u64) {
        let within = offset % self.layout.chunk_bytes;
        (self.layout.chunk(region, offset), within, bytes.min(self.layout.chunk_bytes - within))
    }
}
