//! The map of all sectors, and the changes that journal records make to it.
//!
//! The map changes only in [`State::apply`], by a record. Planning makes a record and applies it; recovery applies the
//! same records, read from the journal. So a replayed map equals the planned one by construction. The records are
//! described in [`super::record`].
//!
//! Invariants (numbered as in the layer's header): 1 to 6.

use imbrex_disk::{Lba, Sectors};

use super::cached::{Cached, CachedRun, CachedRuns};
use super::entries::{Entries, Entry, Spot};
use super::live::LiveSectors;
use super::placement::RingStarts;
use super::queue::DEAD;
use super::record::Record;
use super::ring::{Position, Ring};
use super::shape::Shape;
use super::slots::Slots;
use crate::layer::PrefetchHint;
use crate::map::prefetch::{prefetch, prefetch_all};
use crate::map::sparse::Sparse;

/// The newest slot of an S-block buffer, while a stream of host writes fills it: the number of its S-block, and the
/// number of sectors written so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenSlot {
    pub sblock: u64,
    pub filled: u64,
}

/// The state of one section: its two circular buffers, one of S-blocks and one that caches writes, with their contents.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// The circular buffer of the section that holds its S-blocks: its place, head and tail.
    pub sblock_ring: Ring,
    /// For each slot of the S-block buffer from the tail on, the S-block that was written to it.
    pub slots: Slots,
    /// Number of slots ever released, modulo 2³²: the number of the slot at the tail.
    oldest_slot: u32,
    /// The circular buffer of the section that caches host writes: its place, head and tail.
    pub cache_ring: Ring,
    /// The log of the writes to the cache buffer of the section, from the tail on: the LBAs and lengths.
    pub entries: Entries,
    /// Number of live sectors in the cache buffer of the section: those that hold the newest contents of their LBA.
    pub live_sectors: u64,
    /// Bitmap of the live sectors in the cache buffer of the section: those that hold the newest contents of their LBA.
    pub live: LiveSectors,
    /// The newest slot of the S-block buffer, if a stream of host writes is filling it; `None` if the section has no
    /// such stream.
    pub open: Option<OpenSlot>,
}

/// A run of sectors of the cache buffer that are all live or all dead: its first LBA, its length, its position and
/// whether it is live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EntryPiece {
    pub lba: u64,
    pub sectors: u64,
    pub position: Position,
    pub live: bool,
}

/// The map of an `s-blocks` drive: the place of each S-block, the cached and trimmed runs, and the state of all
/// sections.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub shape: Shape,
    /// Number of the slot that holds the copy of each S-block, modulo 2³². Slots are numbered in the order in which
    /// they were ever written. An S-block without a copy has the number before the oldest slot.
    slots: Sparse<u32>,
    /// Sectors of the S-blocks that are cached or trimmed.
    cached: CachedRuns,
    pub sections: Vec<Section>,
}

impl State {
    /// Returns the map of a new drive, whose rings begin at `starts`: all S-blocks lie in order of LBA from the start
    /// of their buffers, and the caches are empty.
    pub(super) fn new(shape: Shape, starts: &[RingStarts]) -> State {
        let cached = CachedRuns::new(&shape);
        let section = |(number, starts): (u64, &RingStarts)| {
            let (mut sblock_ring, cache_ring) = starts.rings(&shape);
            sblock_ring.claim(shape.section_sectors()).expect("the native S-blocks fit their buffer");
            let first = number * shape.native_sblocks;
            let slots = Slots::native(first..first + shape.native_sblocks);
            let entries = Entries::new(number * shape.section_sectors(), shape.section_sectors());
            let live = LiveSectors::new(cached.kept());
            Section { sblock_ring, slots, oldest_slot: 0, cache_ring, entries, live_sectors: 0, live, open: None }
        };
        let sections = (0..shape.sections).zip(starts).map(section).collect();
        State { slots: Sparse::new(shape.sblocks() as usize), cached, sections, shape }
    }

    /// Returns the position, in the S-block buffer of its section, at which the copy in use of an S-block begins.
    #[inline]
    pub(super) fn position(&self, sblock: u64) -> Position {
        let section = &self.sections[self.section_of_sblock(sblock)];
        let slots = self.slot(sblock).wrapping_sub(section.oldest_slot);
        Position(section.sblock_ring.tail().0.wrapping_add(u64::from(slots) * self.shape.sblock_sectors))
    }

    /// Returns whether the copy in use of an S-block lies in the slot `index` of `section`, counted from the oldest
    /// slot as 0.
    #[inline]
    pub(super) fn is_in_slot(&self, sblock: u64, section: usize, index: usize) -> bool {
        self.slot(sblock) == self.sections[section].oldest_slot.wrapping_add(index as u32)
    }

    #[inline]
    fn slot(&self, sblock: u64) -> u32 {
        self.slots.get(sblock as usize).copied().unwrap_or_else(|| self.shape.first_slot(sblock))
    }

    fn set_slot(&mut self, sblock: u64, slot: u32) {
        let shape = &self.shape;
        *self.slots.change(sblock as usize, |sblock| shape.first_slot(sblock as u64)) = slot;
    }

    /// Returns the cached and trimmed runs of an S-block of `section`.
    #[inline]
    pub(super) fn cached(&self, section: usize, sblock: u64) -> Cached<'_> {
        self.cached.of(sblock, self.sections[section].cache_ring.tail())
    }

    /// Records that the copy of an S-block lies in the newest slot of its section.
    fn place_in_newest_slot(&mut self, sblock: u64) {
        let section = &self.sections[self.section_of_sblock(sblock)];
        let newest = section.oldest_slot.wrapping_add(section.slots.len() as u32 - 1);
        self.set_slot(sblock, newest);
    }

    /// Returns the bytes of heap memory that the slot numbers and the cached runs take now.
    pub(super) fn sblocks_bytes(&self) -> u64 {
        self.slots.measured_bytes() + self.cached.measured_bytes()
    }

    /// Makes the processor prefetch memory that a command at `lba` will read. Does nothing if `lba` lies past the
    /// capacity.
    pub(super) fn foresee(&self, lba: u64, coming: PrefetchHint) {
        let sblock = lba / self.shape.sblock_sectors;
        if sblock >= self.shape.sblocks() {
            return;
        }
        self.cached.foresee(sblock, coming);
        let section = &self.sections[self.section_of_sblock(sblock)];
        match coming {
            PrefetchHint::Later => prefetch_all(std::slice::from_ref(section)),
            PrefetchHint::Next => section.entries.end().into_iter().for_each(prefetch),
        }
    }

    /// Returns the number of the section that contains `lba`.
    pub(super) fn section_of(&self, lba: u64) -> usize {
        (lba / self.shape.section_sectors()) as usize
    }

    /// Returns the number of the section to which an S-block belongs.
    pub(super) fn section_of_sblock(&self, sblock: u64) -> usize {
        (sblock / self.shape.native_sblocks) as usize
    }

    /// Returns the first LBA of an S-block.
    pub(super) fn first_lba(&self, sblock: u64) -> u64 {
        sblock * self.shape.sblock_sectors
    }

    /// Returns the position at which the slot begins that a stream is filling: the newest slot of the section's S-block
    /// buffer.
    pub(super) fn open_position(&self, section: usize) -> Position {
        Position(self.sections[section].sblock_ring.head().0 - self.shape.sblock_sectors)
    }

    /// Returns whether the oldest slot of a section's S-block buffer holds the copy in use of its S-block. Returns
    /// `false` if there are no slots.
    pub(super) fn oldest_slot_is_live(&self, section: usize) -> bool {
        let holds = |sblock: u64| sblock != DEAD && self.is_in_slot(sblock, section, 0);
        self.sections[section].slots.front().is_some_and(holds)
    }

    /// Splits the `sectors` from `lba` on at the bounds of S-blocks. Calls `visit(sblock, offset, sectors)` with each
    /// part in order; `offset` is its first sector, counted within the S-block.
    pub(super) fn split(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(u64, u32, u32)) {
        let (mut next, end) = (lba.0, lba.0 + sectors.0);
        while next < end {
            let (sblock, offset) = (next / self.shape.sblock_sectors, next % self.shape.sblock_sectors);
            let part = (self.shape.sblock_sectors - offset).min(end - next);
            visit(sblock, offset as u32, part as u32);
            next += part;
        }
    }

    /// Returns the piece of the cache buffer of `section` that begins `skip` sectors into the entry at `spot`, at
    /// `position`. The piece is as long as it is all live or all dead, within its entry and its S-block. Returns `None`
    /// if there is no such entry.
    pub(super) fn entry_piece(&self, section: usize, spot: Spot, skip: u64, position: Position) -> Option<EntryPiece> {
        let entry = self.sections[section].entries.get(spot)?;
        let rest = entry.sectors - skip;
        if entry.lba == DEAD {
            return Some(EntryPiece { lba: DEAD, sectors: rest, position, live: false });
        }
        let lba = entry.lba + skip;
        let most = rest.min(self.shape.sblock_sectors - lba % self.shape.sblock_sectors);
        let (live, sectors) = self.sections[section].live.run_at(position, most);
        Some(EntryPiece { lba, sectors, position, live })
    }

    /// Frees `sectors` at the tail of a section's cache buffer, and removes their entries.
    pub(super) fn release_cache(&mut self, section: usize, sectors: u64) {
        let section = &mut self.sections[section];
        section.cache_ring.release(sectors);
        section.entries.release(sectors);
    }

    /// Frees the oldest slot at the tail of a section's S-block buffer.
    ///
    /// # Panics
    ///
    /// If there are no slots.
    pub(super) fn release_slot(&mut self, section: usize) {
        let section = &mut self.sections[section];
        section.sblock_ring.release(self.shape.sblock_sectors);
        section.slots.pop_front().expect("slots cover the buffer: invariant 5");
        section.oldest_slot = section.oldest_slot.wrapping_add(1);
    }

    /// Changes the map as the journal record `record` says.
    ///
    /// # Errors
    ///
    /// The record has impossible values or cannot follow the records before it. The error is a text with the reason.
    pub(super) fn apply(&mut self, record: Record) -> Result<(), &'static str> {
        match record {
            Record::Cached { lba, sectors, position, tail } => self.apply_cached(lba.0, sectors.0, position, tail),
            Record::Trimmed { lba, sectors } => self.apply_trimmed(lba.0, sectors.0),
            Record::Placed { sblock, position, tail, is_direct } => {
                self.apply_placed(sblock, position, tail, is_direct)
            }
            Record::Streamed { sblock, position, filled_sectors, tail } => {
                self.apply_streamed(sblock, position, filled_sectors, tail)
            }
            Record::Completed { sblock } => self.apply_completed(sblock),
            Record::Restart { section, sblock_tail, cache_tail } => {
                self.apply_restart(section, sblock_tail, cache_tail)
            }
            Record::Heads { section, sblock_head, cache_head } => self.apply_heads(section, sblock_head, cache_head),
        }
    }

    fn apply_cached(&mut self, lba: u64, sectors: u64, position: Position, tail: Position) -> Result<(), &'static str> {
        self.check_range(lba, sectors)?;
        let number = self.section_of(lba);
        if number != self.section_of(lba + sectors - 1) {
            return Err("the run crosses sections");
        }
        let ring = &self.sections[number].cache_ring;
        let passed = tail.0.saturating_sub(ring.tail().0);
        if passed > ring.used() {
            return Err("the tail lies past the head");
        }
        self.release_cache(number, passed);
        self.fill_cache(number, position)?;
        let section = &mut self.sections[number];
        section.cache_ring.claim(sectors)?;
        section.entries.push(Entry { lba, sectors });
        let first = lba;
        self.overlay(Lba(lba), Sectors(sectors), |at| position.plus(at - first));
        Ok(())
    }

    fn apply_trimmed(&mut self, lba: u64, sectors: u64) -> Result<(), &'static str> {
        self.check_range(lba, sectors)?;
        self.overlay(Lba(lba), Sectors(sectors), |_| Position::NOWHERE);
        Ok(())
    }

    fn check_range(&self, lba: u64, sectors: u64) -> Result<(), &'static str> {
        let end = lba.checked_add(sectors).ok_or("the run lies past the capacity")?;
        if sectors == 0 || sectors > u32::MAX as u64 || end > self.shape.capacity().0 {
            return Err("the run is empty or lies past the capacity");
        }
        Ok(())
    }

    /// Maps a run of LBAs to new positions in the cache, in place of the older cached runs. `place` returns the
    /// position of each part from the part's first LBA; [`Position::NOWHERE`] trims.
    fn overlay(&mut self, lba: Lba, sectors: Sectors, place: impl Fn(u64) -> Position) {
        let size = self.shape.sblock_sectors;
        let (mut next, end) = (lba.0, lba.0 + sectors.0);
        while next < end {
            let (sblock, offset) = (next / size, next % size);
            let part = (size - offset).min(end - next);
            let section = self.section_of_sblock(sblock);
            let run = CachedRun { offset: offset as u32, sectors: part as u32, position: place(next) };
            let Section { live, live_sectors, .. } = &mut self.sections[section];
            self.cached.overlay(sblock, run, |place, sectors| {
                live.clear(place, sectors);
                *live_sectors -= u64::from(sectors);
            });
            if !run.is_absent() {
                live.set(run.position, part);
                *live_sectors += part;
            }
            next += part;
        }
    }

    fn uncache(&mut self, sblock: u64, from: u64, to: u64) {
        let section = self.section_of_sblock(sblock);
        let Section { live, live_sectors, .. } = &mut self.sections[section];
        self.cached.remove(sblock, from as u32, to as u32, |place, sectors| {
            live.clear(place, sectors);
            *live_sectors -= u64::from(sectors);
        });
    }

    fn apply_placed(&mut self, sblock: u64, at: Position, tail: Position, merged: bool) -> Result<(), &'static str> {
        self.claim_slot(sblock, at, tail)?;
        self.place_in_newest_slot(sblock);
        if merged {
            self.uncache(sblock, 0, self.shape.sblock_sectors);
        }
        Ok(())
    }

    fn apply_streamed(&mut self, sblock: u64, at: Position, filled: u64, tail: Position) -> Result<(), &'static str> {
        if sblock >= self.shape.sblocks() || filled == 0 || filled > self.shape.sblock_sectors {
            return Err("there is no such S-block or part of one");
        }
        let section = self.section_of_sblock(sblock);
        let from = match self.sections[section].open {
            Some(open) if open.sblock == sblock && self.open_position(section) == at && open.filled < filled => {
                open.filled
            }
            Some(_) => return Err("another S-block is being filled"),
            None => {
                self.claim_slot(sblock, at, tail)?;
                0
            }
        };
        self.uncache(sblock, from, filled);
        self.sections[section].open = Some(OpenSlot { sblock, filled });
        if filled == self.shape.sblock_sectors {
            self.place_in_newest_slot(sblock);
            self.sections[section].open = None;
        }
        Ok(())
    }

    fn apply_completed(&mut self, sblock: u64) -> Result<(), &'static str> {
        if sblock >= self.shape.sblocks() {
            return Err("there is no such S-block");
        }
        let section = self.section_of_sblock(sblock);
        let open = self.sections[section].open.filter(|open| open.sblock == sblock).ok_or("the S-block is not open")?;
        self.place_in_newest_slot(sblock);
        self.uncache(sblock, open.filled, self.shape.sblock_sectors);
        self.sections[section].open = None;
        Ok(())
    }

    /// Claims the slot at position `at`, which is the head of the S-block buffer, or (in a checkpoint) lies past it
    /// with dead slots between. Moves the tail first: the slots that it passes make the room. They are dead slots, or
    /// the source of the copy that the record describes.
    fn claim_slot(&mut self, sblock: u64, at: Position, tail: Position) -> Result<(), &'static str> {
        if sblock >= self.shape.sblocks() {
            return Err("there is no such S-block");
        }
        let section = self.section_of_sblock(sblock);
        if self.sections[section].open.is_some() {
            return Err("a stream is filling the newest slot");
        }
        self.release_slots_before(section, tail)?;
        self.fill_slots(section, at)?;
        let section = &mut self.sections[section];
        section.sblock_ring.claim(self.shape.sblock_sectors)?;
        section.slots.push_back(sblock);
        Ok(())
    }

    fn fill_slots(&mut self, section: usize, to: Position) -> Result<(), &'static str> {
        let size = self.shape.sblock_sectors;
        let section = &mut self.sections[section];
        let gap = to.0.checked_sub(section.sblock_ring.head().0).ok_or("the slot lies before the head")?;
        if gap % size != 0 || gap > section.sblock_ring.payload() {
            return Err("the slot lies beyond the buffer");
        }
        section.sblock_ring.claim(gap)?;
        section.slots.extend((0..gap / size).map(|_| DEAD));
        Ok(())
    }

    fn fill_cache(&mut self, section: usize, to: Position) -> Result<(), &'static str> {
        let section = &mut self.sections[section];
        let gap = to.0.checked_sub(section.cache_ring.head().0).ok_or("the run lies before the head")?;
        if gap > section.cache_ring.payload() {
            return Err("the run lies beyond the buffer");
        }
        if gap > 0 {
            section.cache_ring.claim(gap)?;
            section.entries.push(Entry { lba: DEAD, sectors: gap });
        }
        Ok(())
    }

    fn release_slots_before(&mut self, section: usize, tail: Position) -> Result<(), &'static str> {
        while self.sections[section].sblock_ring.tail() < tail {
            if self.sections[section].slots.is_empty() {
                return Err("the tail lies past the head");
            }
            self.release_slot(section);
        }
        Ok(())
    }

    fn apply_restart(&mut self, number: u64, sblock_tail: Position, cache_tail: Position) -> Result<(), &'static str> {
        let section = self.sections.get_mut(number as usize).ok_or("there is no such section")?;
        if !sblock_tail.0.is_multiple_of(self.shape.sblock_sectors) {
            return Err("the tail lies within a slot");
        }
        section.slots.clear();
        section.oldest_slot = (sblock_tail.0 / self.shape.sblock_sectors) as u32;
        section.entries.clear();
        section.sblock_ring.restart(sblock_tail);
        section.cache_ring.restart(cache_tail);
        section.open = None;
        let nowhere = section.oldest_slot.wrapping_sub(1);
        let first = number * self.shape.native_sblocks;
        for sblock in first..first + self.shape.native_sblocks {
            self.set_slot(sblock, nowhere);
            self.uncache(sblock, 0, self.shape.sblock_sectors);
        }
        Ok(())
    }

    fn apply_heads(&mut self, number: u64, sblock_head: Position, cache_head: Position) -> Result<(), &'static str> {
        if number >= self.shape.sections {
            return Err("there is no such section");
        }
        self.fill_slots(number as usize, sblock_head)?;
        self.fill_cache(number as usize, cache_head)
    }
}
