//! Serves the host: writes to the log, streams that write whole bands, reads and TRIM.
//!
//! A write belongs to a stream if it covers a whole logical band. It also does if it begins at the first sector of a
//! logical band, and either continues where an earlier write ended or has itself already covered a band. The first
//! write of a stream looks like any other write: it is logged, and copied to a fresh band when the second write
//! follows.
//!
//! Invariants:
//! 1. Written data is durable before its record.
//! 2. The records of written data precede any cleaning.

use imbrex_disk::{Command, Lba, Sectors};

use super::FullyAssociative;
use super::record::Record;
use super::state::Part;
use crate::plan::reason::Due;
use crate::plan::{Cause, GroupKind, Plan};

/// Number of chains of sequential writes that are tracked at a time to recognize streams.
const RECENT: usize = 8;

/// Maximum number of open streams per zone. One more stream completes the oldest.
const STREAMS_PER_ZONE: usize = 4;

/// A run of sequential writes: each begins where the one before ended.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    start: u64,
    end: u64,
}

/// The latest eight chains of sequential host writes, by which streams are recognised.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentChains {
    chains: [Chain; RECENT],
    oldest: usize,
}

impl RecentChains {
    /// Records a write of LBAs from `lba` to `end`. If the write continues a chain, returns the LBA at which the chain
    /// began.
    fn note(&mut self, lba: u64, end: u64) -> Option<u64> {
        // An entry whose end is 0 is empty: no write ends there.
        if let Some(chain) = self.chains.iter_mut().find(|chain| chain.end == lba && lba != 0) {
            chain.end = end;
            return Some(chain.start);
        }
        self.chains[self.oldest] = Chain { start: lba, end };
        self.oldest = (self.oldest + 1) % RECENT;
        None
    }
}

impl FullyAssociative {
    pub(super) fn plan_write(&mut self, command: &Command, plan: &mut Plan) {
        let (mut next, end) = (command.lba.0, command.end().0);
        let chain = self.recent.note(next, end);
        while next < end {
            let part = self.state.part(next, end);
            let covers_a_band = next - command.lba.0 >= self.state.band_sectors;
            if self.direct && self.goes_direct(part, chain.or(covers_a_band.then_some(command.lba.0))) {
                self.write_direct(part, plan);
            } else {
                self.write_logged(part, plan);
            }
            next += part.sectors as u64;
        }
        self.record_appends(plan);
    }

    /// Returns whether a part of a write goes to a band of its own instead of the log, because the part belongs to a
    /// stream. `chain` is the LBA at which the chain of sequential writes began.
    fn goes_direct(&self, part: Part, chain: Option<u64>) -> bool {
        let zone = &self.state.zones[part.zone];
        if let Some(stream) = zone.stream_of(part.logical) {
            return stream.filled == part.offset;
        }
        if part.offset == 0 {
            return part.sectors == zone.band_sectors || chain.is_some();
        }
        let begins_here = chain == Some(self.state.first_lba(part.zone, part.logical));
        let logged = zone.runs[part.logical as usize].within(0, part.offset).filter(|run| !run.is_absent());
        begins_here && logged.map(|run| run.length).sum::<u32>() == part.offset
    }

    fn write_logged(&mut self, part: Part, plan: &mut Plan) {
        let (mut offset, end) = (part.offset, part.offset + part.sectors);
        while offset < end {
            if self.state.zones[part.zone].log_room() == 0 {
                self.record_appends(plan);
                self.make_free(part.zone, plan);
            }
            Self::open_host(plan);
            let zone = &self.state.zones[part.zone];
            let (band, head) = match zone.log_room() {
                0 => (self.free_band(part.zone, plan), 0),
                _ => (*zone.logs.back().expect("a log band with room is there"), zone.head),
            };
            let zone = &self.state.zones[part.zone];
            let length = (end - offset).min(zone.band_sectors - head);
            let pba = self.state.pba(part.zone, band * zone.band_sectors + head);
            let lba = self.state.first_lba(part.zone, part.logical) + offset as u64;
            plan.write(Cause::Host, pba, Lba(lba), Sectors(length as u64));
            let band = self.state.band_number(part.zone, band);
            let record = Record::Logged { lba: Lba(lba), sectors: Sectors(length as u64), band, offset: head };
            self.apply(record);
            self.appended.push(record.encode());
            offset += length;
        }
    }

    /// Writes the next part of a stream to the stream's band. The first part opens the stream and takes a free band.
    fn write_direct(&mut self, part: Part, plan: &mut Plan) {
        self.record_appends(plan);
        let open = self.state.zones[part.zone].stream_of(part.logical).map(|stream| stream.band);
        let band = open.unwrap_or_else(|| self.open_stream(part, plan));
        Self::open_host(plan);
        self.write_places(Cause::Host, part, band, plan);
        self.record_streamed(part, band, part.offset + part.sectors, plan);
    }

    /// Takes a free band for a stream, copies to it the sectors that the stream wrote before it was recognized, and
    /// returns the band.
    fn open_stream(&mut self, part: Part, plan: &mut Plan) -> u32 {
        if self.state.zones[part.zone].streams.len() == STREAMS_PER_ZONE {
            self.complete_stream(part.zone, 0, Due::Streams, plan);
        }
        self.make_free(part.zone, plan);
        if part.offset == 0 {
            Self::open_host(plan);
            return self.free_band(part.zone, plan);
        }
        plan.open(GroupKind::Migration);
        plan.because(self.reason(part.zone, part.logical, Due::NewStream));
        let band = self.free_band(part.zone, plan);
        let beginning = Part { offset: 0, sectors: part.offset, ..part };
        self.read_places(Cause::Migration, beginning, plan);
        self.write_places(Cause::Migration, beginning, band, plan);
        self.record_streamed(part, band, part.offset, plan);
        band
    }

    fn record_streamed(&mut self, part: Part, band: u32, filled: u32, plan: &mut Plan) {
        plan.barrier();
        let logical_band = self.state.logical_number(part.zone, part.logical);
        let band = self.state.band_number(part.zone, band);
        self.note(Record::Streamed { logical_band, band, filled_sectors: filled }, plan);
    }

    /// Plans a barrier, which makes the appended data durable, and then the records of the appends.
    fn record_appends(&mut self, plan: &mut Plan) {
        if self.appended.is_empty() {
            return;
        }
        plan.barrier();
        for note in self.appended.drain(..) {
            plan.note(note);
        }
    }

    pub(super) fn plan_read(&self, command: &Command, plan: &mut Plan) {
        Self::open_host(plan);
        self.state.for_each_piece(command.lba, Sectors(command.sectors as u64), |lba, sectors, pba| match pba {
            Some(pba) => plan.read(Cause::Host, pba, lba, sectors),
            None => plan.drop_sectors(Cause::Host, lba, sectors),
        });
    }

    /// Appends to `plan` the TRIM `command`: a host group with one record, and no access to the disk. Trimmed sectors
    /// take no log space.
    pub(super) fn plan_trim(&mut self, command: &Command, plan: &mut Plan) {
        Self::open_host(plan);
        self.note(Record::Trimmed { lba: command.lba, sectors: Sectors(command.sectors as u64) }, plan);
    }

    /// Opens a host group in `plan`, unless the last phase belongs to one. Steps that follow then belong to the host.
    pub(super) fn open_host(plan: &mut Plan) {
        if plan.phases.last().is_none_or(|phase| phase.kind != GroupKind::Host) {
            plan.open(GroupKind::Host);
        }
    }
}
