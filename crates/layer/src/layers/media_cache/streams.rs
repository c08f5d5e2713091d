//! Streams: bands that one write covers, or commands joined to one, are written in their place and cost no cache
//! (Aghayev 2015 §6 item 2). Only a volatile cache gathers so much; what a stream has beside whole bands goes to the
//! cache like any write, and the read-modify-write that a stream ends in is the cleaning of that band.
//!
//! Where nothing of the band lives in its place, because it was never written or is all trimmed or cached, one write
//! suffices. Where something does, a write cut short would destroy it, track by track; so with `safety=power` the
//! spare has the new content first.
//!
//! Invariants:
//! 1. Before a band is written in its place, what lived there is durable elsewhere (`safety=power`).

use std::ops::Range;

use imbrex_disk::{Command, Lba, Sectors};

use super::cleaning::end_rewrite;
use super::record::Record;
use super::state::MediaCache;
use crate::plan::{Cause, Plan};

/// The most bands that commands are joined to cover.
const BANDS_MAX: u64 = 2;

impl MediaCache {
    /// Whether `candidate` goes on where `chosen` end, or ends where they begin, and all are of a stream.
    pub(super) fn joins_stream(&self, chosen: &[Command], candidate: &Command) -> bool {
        let is_large = |command: &Command| command.sectors as u64 >= self.settings.stream_sectors;
        // What was put back where a stream was cut may be short; what follows it is not.
        if !is_large(candidate) && !chosen.iter().any(is_large) {
            return false;
        }
        let first = chosen.iter().map(|command| command.lba).min().expect("a batch is not empty");
        let end = chosen.iter().map(Command::end).max().expect("a batch is not empty");
        let sectors: u64 = chosen.iter().map(|command| command.sectors as u64).sum();
        let most = BANDS_MAX * self.shape.spare.sectors();
        (end - first).0 == sectors
            && (candidate.lba == end || candidate.end() == first)
            && sectors + candidate.sectors as u64 <= most
    }

    /// Where what goes on before and after `first` as a stream can begin.
    pub(super) fn reach_of_stream(&self, first: &Command) -> Range<Lba> {
        let most = Sectors(BANDS_MAX * self.shape.spare.sectors());
        Lba(first.lba.0.saturating_sub(most.0))..first.end() + most
    }

    /// The beginning of the band that a stream ends in, if it has come from before it: once all of that band is there,
    /// it can be written in its place, where a part of it would go to the cache.
    pub(super) fn cut_of_stream(&self, first: Lba, end: Lba) -> Option<Lba> {
        if (end - first).0 < self.settings.stream_sectors || end.0 >= self.shape.bands.capacity().0 {
            return None;
        }
        let band = self.shape.bands.locate(end).region;
        Some(self.shape.bands.first_lba(band)).filter(|&cut| first < cut && cut < end)
    }

    /// Writes the whole bands among what waits, and leaves the rest waiting.
    pub(super) fn take_streams(&mut self, plan: &mut Plan) {
        let total: Sectors = self.waiting.iter().map(|(_, sectors)| *sectors).sum();
        if total < self.settings.band_sectors_min {
            return;
        }
        let first = self.waiting.iter().map(|(lba, _)| *lba).min().expect("something waits");
        let end = self.waiting.iter().map(|(lba, sectors)| *lba + *sectors).max().expect("something waits");
        if end - first != total {
            return;
        }
        self.waiting.sort_by_key(|(lba, _)| *lba);
        if self.waiting.windows(2).any(|pair| pair[0].0 + pair[0].1 != pair[1].0) {
            return;
        }
        self.waiting.clear();
        let mut next = first;
        while next < end {
            let band = self.shape.bands.locate(next).region;
            let (band_first, sectors) = self.shape.band(band);
            let part_end = (band_first + sectors).min(end);
            if part_end - next == sectors {
                self.write_band(band, plan);
            } else {
                self.waiting.push((next, part_end - next));
            }
            next = part_end;
        }
    }

    /// Writes all of `band` with the host's data.
    fn write_band(&mut self, band: usize, plan: &mut Plan) {
        let (first, sectors) = self.shape.band(band);
        let mapped: Sectors = self.map.pieces(first, sectors).map(|run| run.sectors).sum();
        let is_bare = !self.is_written(band) || mapped == sectors;
        let needs_spare = !is_bare && self.settings.power_safe;
        if needs_spare || self.cleaning.rewriting() == Some(band) {
            self.finish_cleaning(plan);
        }
        Self::open_host(plan);
        if needs_spare {
            plan.barrier();
            self.shape.spare.runs(0, sectors.0, |done, extent| {
                plan.write(Cause::Backup, extent.start, first + Sectors(done), extent.sectors);
            });
            self.give_to_spare(band, plan);
        } else if is_bare && mapped < sectors {
            plan.note(Record::Bare { band: band as u64 }.encode());
        }
        plan.barrier();
        plan.write(Cause::Host, self.shape.bands.extent(band).start, first, sectors);
        if needs_spare {
            end_rewrite(band, plan);
        } else {
            plan.barrier();
            plan.note(Record::Placed { band: band as u64 }.encode());
        }
        self.unmap_band(band);
        self.set_written(band);
    }
}
