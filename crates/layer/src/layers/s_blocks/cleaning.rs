//! Makes room in the rings: group destage and the defrags of both buffers (Cassuto 2010 §V.B, algorithms V.2, V.3 and
//! V.5).
//!
//! Each copy is written, then made durable, then recorded, and its record is made durable before anything may overwrite
//! the copy's source. A defrag of the cache copies a run of live sectors at a time, as long as the guard allows. The
//! paper copies block by block, which takes more seeks for the same sectors.
//!
//! Invariants: those of the layer's header; every operation is a cleaning group of its own.

use imbrex_disk::{Lba, Sectors};

use super::SBlocks;
use super::entries::Entries;
use super::record::Record;
use super::ring::Position;
use super::state::EntryPiece;
use crate::plan::reason::{Area, AreaKind, Due, Reason};
use crate::plan::{Cause, GroupKind, Plan};

/// One of the two circular buffers of a section: that of cached writes, or that of S-blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Buffer {
    Cache,
    SBlocks,
}

impl Buffer {
    /// Returns this buffer of a section, as reasons and stores name it.
    pub(super) fn area(self, section: usize) -> Area {
        Area::new(if self == Buffer::Cache { AreaKind::CacheBuffer } else { AreaKind::SBlockBuffer }, section)
    }
}

fn full(target: Area, store: Area) -> Reason {
    Reason { target, due: Due::Full, store: Some(store) }
}

impl SBlocks {
    /// Appends cleaning to `plan` until `sectors` fit at the head of the section's cache buffer. `sectors` must not
    /// exceed the payload of that buffer. Does nothing if they fit already.
    pub(super) fn make_cache_room(&mut self, section: usize, sectors: u64, plan: &mut Plan) {
        while !self.state.sections[section].cache_ring.fits(sectors) {
            let state = &self.state.sections[section];
            let needed = u64::from(state.live_sectors == state.cache_ring.used());
            for _ in 0..needed + self.extra_destages {
                if self.state.sections[section].live_sectors > 0 {
                    self.destage(section, plan);
                }
            }
            self.defrag_cache(section, plan);
        }
    }

    /// Merges an S-block, chosen by the policy, with its cached sectors, and writes it at the head of the S-block
    /// buffer (algorithm V.3). Makes room in the S-block buffer before choosing, so that the chosen S-block is not
    /// moved just before it is rewritten.
    fn destage(&mut self, section: usize, plan: &mut Plan) {
        let store = Buffer::Cache.area(section);
        self.complete_stream(section, Due::Full, Some(store), plan);
        self.make_slot(section, store, plan);
        let sblock = self.policy.choose(&self.state, section);
        let (ring, size) = (&self.state.sections[section].sblock_ring, self.state.shape.sblock_sectors);
        let (position, tail) = (ring.head(), ring.tail());
        plan.open(GroupKind::Cleaning);
        plan.because(full(Area::new(AreaKind::SBlock, sblock as usize), store));
        self.read_merged(section, sblock, 0, plan);
        self.write_ring(section, Buffer::SBlocks, position, self.state.first_lba(sblock), size, plan);
        self.record(Record::Placed { sblock, position, tail, is_direct: true }, plan);
    }

    /// Appends to `plan` the steps that fill the rest of the open slot of a section, with sectors from the old copy of
    /// its S-block and from the cache. The slot then holds the copy in use. Does nothing if no slot is open. `due` is
    /// the event that made this necessary, and `store` the buffer that it relieves, if any.
    pub(super) fn complete_stream(&mut self, section: usize, due: Due, store: Option<Area>, plan: &mut Plan) {
        let Some(open) = self.state.sections[section].open else {
            return;
        };
        let rest = self.state.shape.sblock_sectors - open.filled;
        let position = self.state.open_position(section).plus(open.filled);
        plan.open(GroupKind::Cleaning);
        let target = Area::new(AreaKind::SBlock, open.sblock as usize);
        plan.because(Reason { target, due, store });
        self.read_merged(section, open.sblock, open.filled, plan);
        let lba = self.state.first_lba(open.sblock) + open.filled;
        self.write_ring(section, Buffer::SBlocks, position, lba, rest, plan);
        self.record(Record::Completed { sblock: open.sblock }, plan);
    }

    /// Stages an S-block from offset `from` on: its own copy, then its cached and trimmed runs over that copy. Does not
    /// read the copy if those runs cover all of it.
    fn read_merged(&self, section: usize, sblock: u64, from: u64, plan: &mut Plan) {
        let size = self.state.shape.sblock_sectors;
        let cached = self.state.cached(section, sblock);
        let overlaid = || cached.within(from as u32, size as u32);
        let first = self.state.first_lba(sblock);
        if overlaid().map(|run| run.sectors as u64).sum::<u64>() < size - from {
            self.read_ring(
                section,
                Buffer::SBlocks,
                self.state.position(sblock).plus(from),
                first + from,
                size - from,
                plan,
            );
        }
        for run in overlaid() {
            let lba = first + run.offset as u64;
            if run.is_absent() {
                plan.drop_sectors(Cause::Cleaning, Lba(lba), Sectors(run.sectors as u64));
            } else {
                self.read_ring(section, Buffer::Cache, run.position, lba, run.sectors as u64, plan);
            }
        }
    }

    /// Copies live sectors from the tail of the cache buffer to its head until the tail has passed a dead run (the loop
    /// of algorithm V.2). A dead run exists unless the buffer is empty.
    fn defrag_cache(&mut self, section: usize, plan: &mut Plan) {
        let mut opened = false;
        loop {
            let tail = self.state.sections[section].cache_ring.tail();
            let Some(oldest) = self.state.entry_piece(section, Entries::OLDEST, 0, tail) else {
                return;
            };
            if !oldest.live {
                self.state.release_cache(section, oldest.sectors);
                return;
            }
            if !opened {
                plan.open(GroupKind::Cleaning);
                plan.because(full(Buffer::Cache.area(section), Buffer::Cache.area(section)));
                opened = true;
            }
            self.copy_cached(section, plan);
        }
    }

    /// Copies the live sectors at the tail of the cache buffer to its head, as many as the guard allows.
    fn copy_cached(&mut self, section: usize, plan: &mut Plan) {
        let mut pieces = std::mem::take(&mut self.copied);
        self.live_at_tail(section, &mut pieces);
        for piece in &pieces {
            self.read_ring(section, Buffer::Cache, piece.position, piece.lba, piece.sectors, plan);
        }
        let ring = &self.state.sections[section].cache_ring;
        let (head, tail) = (ring.head(), ring.tail());
        let mut target = head;
        for piece in &pieces {
            self.write_ring(section, Buffer::Cache, target, piece.lba, piece.sectors, plan);
            target = target.plus(piece.sectors);
        }
        plan.barrier();
        let mut copied = 0;
        for piece in &pieces {
            let target = head.plus(copied);
            copied += piece.sectors;
            let (lba, sectors) = (Lba(piece.lba), Sectors(piece.sectors));
            self.note(Record::Cached { lba, sectors, position: target, tail: tail.plus(copied) }, plan);
        }
        plan.barrier();
        self.copied = pieces;
    }

    /// Fills `pieces` with the live pieces from the tail of the cache buffer on. Stops at a dead piece, or at the most
    /// sectors that may be copied at once.
    fn live_at_tail(&self, section: usize, pieces: &mut Vec<EntryPiece>) {
        pieces.clear();
        let mut room = self.state.shape.copy_sectors();
        let mut position = self.state.sections[section].cache_ring.tail();
        let (mut spot, mut skip) = (Entries::OLDEST, 0);
        let entries = &self.state.sections[section].entries;
        while room > 0 {
            let Some(mut piece) = self.state.entry_piece(section, spot, skip, position).filter(|piece| piece.live)
            else {
                return;
            };
            piece.sectors = piece.sectors.min(room);
            pieces.push(piece);
            room -= piece.sectors;
            skip += piece.sectors;
            position = position.plus(piece.sectors);
            if entries.get(spot).is_some_and(|entry| entry.sectors == skip) {
                (spot, skip) = (entries.behind(spot), 0);
            }
        }
    }

    /// Appends cleaning to `plan` until one more slot fits at the head of the section's S-block buffer: S-blocks are
    /// copied from the tail to the head until the tail has passed a dead slot (algorithm V.5). Does nothing if a slot
    /// fits already. `store` is the full buffer that needs the slot.
    pub(super) fn make_slot(&mut self, section: usize, store: Area, plan: &mut Plan) {
        let size = self.state.shape.sblock_sectors;
        let mut opened = false;
        while !self.state.sections[section].sblock_ring.fits(size) {
            if self.state.oldest_slot_is_live(section) {
                if !opened {
                    plan.open(GroupKind::Cleaning);
                    plan.because(full(Buffer::SBlocks.area(section), store));
                    opened = true;
                }
                self.copy_oldest_sblock(section, plan);
            } else {
                self.state.release_slot(section);
            }
        }
    }

    fn copy_oldest_sblock(&mut self, section: usize, plan: &mut Plan) {
        let size = self.state.shape.sblock_sectors;
        let state = &self.state.sections[section];
        let sblock = state.slots.front().expect("a slot is copied where one is live");
        let (tail, head) = (state.sblock_ring.tail(), state.sblock_ring.head());
        let lba = self.state.first_lba(sblock);
        self.read_ring(section, Buffer::SBlocks, tail, lba, size, plan);
        self.write_ring(section, Buffer::SBlocks, head, lba, size, plan);
        self.record(Record::Placed { sblock, position: head, tail: tail.plus(size), is_direct: false }, plan);
    }

    fn read_ring(&self, section: usize, buffer: Buffer, position: Position, lba: u64, sectors: u64, plan: &mut Plan) {
        for (offset, extent) in self.ring(section, buffer).pieces(position, sectors) {
            plan.read(Cause::Cleaning, extent.start, Lba(lba + offset), extent.sectors);
        }
    }

    fn write_ring(&self, section: usize, buffer: Buffer, position: Position, lba: u64, sectors: u64, plan: &mut Plan) {
        for (offset, extent) in self.ring(section, buffer).pieces(position, sectors) {
            plan.write(Cause::Cleaning, extent.start, Lba(lba + offset), extent.sectors);
        }
    }
}
