//! Serves the host: writes to the cache buffer (Cassuto 2010 §V.B, algorithm V.1), reads (V.6), TRIM, and writes that
//! go directly to an S-block (§V.E).
//!
//! Invariants: those of the layer's header, and
//! 1. A written run is durable before its record, and the record before the plan ends.

use imbrex_disk::{Command, Lba, Sectors};

use super::cleaning::Buffer;
use super::record::Record;
use super::ring::Position;
use super::{Direct, SBlocks};
use crate::plan::reason::Due;
use crate::plan::{Cause, GroupKind, Plan};

/// Number of streams that are tracked at a time.
const STREAMS: usize = 8;

/// The end LBAs of the latest host writes, at most eight. A write that begins at one of these LBAs continues a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentEnds {
    ends: [u64; STREAMS],
    oldest: usize,
}

impl RecentEnds {
    /// Remembers the end of a host write of the LBAs from `lba` up to, not including, `end`. Returns whether the write
    /// begins where one of the remembered writes ended; that write is then forgotten.
    pub(super) fn note(&mut self, lba: u64, end: u64) -> bool {
        // An end of 0 is an empty entry: no write ends there.
        let known = self.ends.iter().position(|&known| known == lba && known != 0);
        self.ends[known.unwrap_or(self.oldest)] = end;
        if known.is_none() {
            self.oldest = (self.oldest + 1) % STREAMS;
        }
        known.is_some()
    }
}

impl SBlocks {
    /// Appends to `plan` the steps of the host write `command` (algorithm V.1). S-blocks that a stream covers are
    /// written directly to the S-block buffer (§V.E), the rest to the cache buffer.
    pub(super) fn plan_write(&mut self, command: &Command, plan: &mut Plan) {
        let (mut next, end) = (command.lba.0, command.end().0);
        let continues = self.recent.note(next, end);
        let mut waiting = next; // what lies before `next` from here on goes to the cache
        while next < end {
            let size = self.state.shape.sblock_sectors;
            let (sblock, offset) = (next / size, next % size);
            let part = (size - offset).min(end - next);
            if self.goes_direct(sblock, offset, part, continues) {
                self.write_cached(waiting, next, plan);
                self.write_direct(sblock, offset, part, plan);
                waiting = next + part;
            }
            next += part;
        }
        self.write_cached(waiting, end, plan);
    }

    fn goes_direct(&self, sblock: u64, offset: u64, sectors: u64, continues: bool) -> bool {
        let whole = sectors == self.state.shape.sblock_sectors;
        match self.direct {
            Direct::Off => false,
            Direct::Whole => whole,
            Direct::Stream if offset == 0 => whole || continues,
            Direct::Stream => {
                let open = self.state.sections[self.state.section_of_sblock(sblock)].open;
                open.is_some_and(|open| open.sblock == sblock && open.filled == offset)
            }
        }
    }

    /// Writes the LBAs `lba..end` to the caches of their sections, in parts that an empty cache buffer holds.
    fn write_cached(&mut self, lba: u64, end: u64, plan: &mut Plan) {
        let mut next = lba;
        while next < end {
            let section = self.state.section_of(next);
            let section_end = (section as u64 + 1) * self.state.shape.section_sectors();
            let part = (end.min(section_end) - next).min(self.state.shape.cache_sectors);
            self.make_cache_room(section, part, plan);
            let ring = &self.state.sections[section].cache_ring;
            let (position, tail) = (ring.head(), ring.tail());
            self.write_host(section, Buffer::Cache, position, next, part, plan);
            self.record(Record::Cached { lba: Lba(next), sectors: Sectors(part), position, tail }, plan);
            next += part;
        }
    }

    /// Writes a part of an S-block directly to the newest slot of its buffer. The first part, at offset 0, opens the
    /// slot.
    fn write_direct(&mut self, sblock: u64, offset: u64, sectors: u64, plan: &mut Plan) {
        let section = self.state.section_of_sblock(sblock);
        if offset == 0 {
            self.complete_stream(section, Due::Streams, None, plan);
            self.make_slot(section, Buffer::SBlocks.area(section), plan);
        }
        let ring = &self.state.sections[section].sblock_ring;
        let slot = if offset == 0 { ring.head() } else { self.state.open_position(section) };
        let tail = ring.tail();
        let lba = self.state.first_lba(sblock) + offset;
        self.write_host(section, Buffer::SBlocks, slot.plus(offset), lba, sectors, plan);
        self.record(Record::Streamed { sblock, position: slot, filled_sectors: offset + sectors, tail }, plan);
    }

    fn write_host(&self, section: usize, buffer: Buffer, at: Position, lba: u64, sectors: u64, plan: &mut Plan) {
        plan.open(GroupKind::Host);
        for (offset, extent) in self.ring(section, buffer).pieces(at, sectors) {
            plan.write(Cause::Host, extent.start, Lba(lba + offset), extent.sectors);
        }
    }

    /// Appends to `plan` the steps of the host read `command` (algorithm V.6): each sector comes from the cache or from
    /// the copy of its S-block.
    pub(super) fn plan_read(&self, command: &Command, plan: &mut Plan) {
        plan.open(GroupKind::Host);
        self.for_each_place(command.lba, Sectors(command.sectors as u64), |lba, sectors, place| {
            if let Some(pba) = place {
                plan.read(Cause::Host, pba, lba, sectors);
            }
        });
    }

    /// Appends to `plan` the TRIM `command`: a journal record, and no access to the disk, because trimmed runs take no
    /// cache space.
    pub(super) fn plan_trim(&mut self, command: &Command, plan: &mut Plan) {
        plan.open(GroupKind::Host);
        self.record(Record::Trimmed { lba: command.lba, sectors: Sectors(command.sectors as u64) }, plan);
    }
}
