//! Cleaning: merges of logical bands with their logged sectors, and completion of streams that broke off.
//!
//! Every merge is a cleaning group of its own, so at most one band is staged. In idle time, each call makes one merge.
//!
//! Invariants:
//! 1. The last `reserve` free bands are used only by merges.
//! 2. A band is written again only after the record that freed it is durable.

use imbrex_disk::{Lba, Sectors};

use super::FullyAssociative;
use super::record::Record;
use super::state::Part;
use crate::plan::reason::{Area, AreaKind, Due, Reason};
use crate::plan::{Cause, GroupKind, Plan};

impl FullyAssociative {
    /// Appends cleaning to `plan` until `zone` has more free bands than the reserve. Completes open streams, each of
    /// which frees a band. If none is open, merges logical bands until the oldest log band has no live sectors. Does
    /// nothing if enough bands are free.
    pub(super) fn make_free(&mut self, zone: usize, plan: &mut Plan) {
        while self.state.zones[zone].free.len() <= self.reserve {
            if !self.state.zones[zone].streams.is_empty() {
                self.complete_stream(zone, 0, Due::Full, plan);
                continue;
            }
            let oldest = self.state.zones[zone].logs[0];
            while self.state.zones[zone].logs.front() == Some(&oldest) {
                self.merge_next(zone, Due::Full, plan);
            }
        }
    }

    /// Appends one step of idle-time cleaning to `plan`: one merge or one completed stream, in the zone with the fewest
    /// free bands among those that have too few by the parameter `idle_free`. Returns `false` if there is no such zone.
    pub(super) fn clean_idly(&mut self, plan: &mut Plan) -> bool {
        let zones = self.state.zones.iter().enumerate();
        let wanting = zones.filter(|(_, zone)| {
            let provisioned = zone.free.len() + zone.logs.len() + zone.streams.len();
            zone.free.len() < (provisioned as f64 * self.idle_free).ceil() as usize
        });
        let Some((zone, _)) = wanting.min_by_key(|(_, zone)| zone.free.len()) else {
            return false;
        };
        if self.state.zones[zone].logs.is_empty() {
            self.complete_stream(zone, 0, Due::Idle, plan);
        } else {
            self.merge_next(zone, Due::Idle, plan);
        }
        true
    }

    /// Merges the first logical band that has live sectors in the oldest log band. If a stream is open for that logical
    /// band, completes the stream instead.
    fn merge_next(&mut self, zone: usize, due: Due, plan: &mut Plan) {
        let logical = self.state.zones[zone].find_merge();
        let stream = self.state.zones[zone].streams.iter().position(|stream| stream.logical == logical);
        match stream {
            Some(index) => self.complete_stream(zone, index, due, plan),
            None => self.merge(zone, logical, due, plan),
        }
    }

    /// Reads a logical band and its logged sectors, and writes both to a free band, which becomes the home of the
    /// logical band.
    fn merge(&mut self, zone: usize, logical: u32, due: Due, plan: &mut Plan) {
        plan.open(GroupKind::Cleaning);
        plan.because(self.reason(zone, logical, due));
        let band = self.free_band(zone, plan);
        let whole = Part { zone, logical, offset: 0, sectors: self.state.zones[zone].band_sectors };
        self.read_places(Cause::Cleaning, whole, plan);
        self.write_places(Cause::Cleaning, whole, band, plan);
        plan.barrier();
        let (logical_band, band) = (self.state.logical_number(zone, logical), self.state.band_number(zone, band));
        self.note(Record::Placed { logical_band, band }, plan);
    }

    /// Appends to `plan` the steps that fill the rest of a stream's band with data from the old home and the log. The
    /// band then becomes the home of the logical band. `index` is the index of the stream among the open streams of
    /// `zone`.
    pub(super) fn complete_stream(&mut self, zone: usize, index: usize, due: Due, plan: &mut Plan) {
        let stream = self.state.zones[zone].streams[index];
        let sectors = self.state.zones[zone].band_sectors - stream.filled;
        let rest = Part { zone, logical: stream.logical, offset: stream.filled, sectors };
        plan.open(GroupKind::Cleaning);
        plan.because(self.reason(zone, stream.logical, due));
        self.read_places(Cause::Cleaning, rest, plan);
        self.write_places(Cause::Cleaning, rest, stream.band, plan);
        plan.barrier();
        let logical_band = self.state.logical_number(zone, stream.logical);
        self.note(Record::Completed { logical_band }, plan);
    }

    /// Returns the reason of work on the logical band `logical` of `zone`. The work relieves the zone, unless it begins a
    /// stream, which takes a band.
    pub(super) fn reason(&self, zone: usize, logical: u32, due: Due) -> Reason {
        let target = Area::new(AreaKind::Region, self.state.logical_number(zone, logical) as usize);
        Reason { target, due, store: (due != Due::NewStream).then(|| Area::new(AreaKind::Zone, zone)) }
    }

    /// Returns the number of the free band that is to be taken next; it stays free until a record takes it. If a band
    /// became free since the last barrier, first appends a barrier to `plan`, so that the record that freed it is
    /// durable.
    pub(super) fn free_band(&mut self, zone: usize, plan: &mut Plan) -> u32 {
        if std::mem::take(&mut self.state.freed) {
            plan.barrier();
        }
        *self.state.zones[zone].free.front().expect("invariant 1: a band is free, or in reserve for a merge")
    }

    /// Appends to `plan` the reads that stage the newest contents of a part of a logical band: first from its home,
    /// unless logged or trimmed runs hide the whole part, then the logged and trimmed runs.
    pub(super) fn read_places(&self, cause: Cause, part: Part, plan: &mut Plan) {
        let zone = &self.state.zones[part.zone];
        let first = self.state.first_lba(part.zone, part.logical);
        let lba = |offset: u32| Lba(first + offset as u64);
        let end = part.offset + part.sectors;
        let runs = || zone.runs[part.logical as usize].within(part.offset, end);
        if runs().map(|run| run.length).sum::<u32>() < part.sectors {
            let home = self.state.pba(part.zone, zone.homes[part.logical as usize] * zone.band_sectors + part.offset);
            plan.read(cause, home, lba(part.offset), Sectors(part.sectors as u64));
        }
        for run in runs() {
            let sectors = Sectors(run.length as u64);
            if run.is_absent() {
                plan.drop_sectors(cause, lba(run.offset), sectors);
            } else {
                plan.read(cause, self.state.pba(part.zone, run.place), lba(run.offset), sectors);
            }
        }
    }

    /// Appends to `plan` a write of the staged data of `part` to the physical band `band`, at an offset equal to that
    /// in the logical band.
    pub(super) fn write_places(&self, cause: Cause, part: Part, band: u32, plan: &mut Plan) {
        let pba = self.state.pba(part.zone, band * self.state.zones[part.zone].band_sectors + part.offset);
        let lba = self.state.first_lba(part.zone, part.logical) + part.offset as u64;
        plan.write(cause, pba, Lba(lba), Sectors(part.sectors as u64));
    }
}
