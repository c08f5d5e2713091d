//! Streams: a band that one write covers, or several joined commands, is written in its own place and takes no cache
//! space (Aghayev 2015 §6 item 2). Only a volatile cache gathers so many writes. The parts of a stream outside whole
//! bands go to the cache like any write. The read-modify-write of the band in which a stream ends is the cleaning of
//! that band.
//!
//! One write suffices if no data lives in the band's own place, because the band was never written or is all trimmed or
//! cached. Otherwise, an interrupted write would destroy that data, track by track. So with `safety=power` the new
//! contents are first written to the spare.
//!
//! Invariants:
//! 1. Before a band is written in its own place, the live data there is durable elsewhere (`safety=power`).

use std::ops::Range;

use imbrex_disk::{Command, Lba, Sectors};

use super::cleaning::end_rewrite;
use super::record::Record;
use super::state::MediaCache;
use crate::plan::{Cause, Plan};

/// Maximum number of bands that joined commands cover.
const BANDS_MAX: u64 = 2;

impl MediaCache {
    /// Returns whether the write `candidate` may be joined with the writes `chosen` as a stream: `chosen` are
    /// contiguous, `candidate` begins where they end or ends where they begin, one of all is large (`stream_size`), and
    /// together they are not longer than two bands.
    pub(super) fn joins_stream(&self, chosen: &[Command], candidate: &Command) -> bool {
        let is_large = |command: &Command| command.sectors as u64 >= self.settings.stream_sectors;
        // The rest that is held back when a stream is cut (`stream_cut`) may be small, but the command that follows it is large.
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

    /// Returns a range of LBAs (exclusive end) in which every command begins that can be joined with `first` as a
    /// stream, before or after it. The end may lie past the capacity.
    pub(super) fn reach_of_stream(&self, first: &Command) -> Range<Lba> {
        let most = Sectors(BANDS_MAX * self.shape.spare.sectors());
        Lba(first.lba.0.saturating_sub(most.0))..first.end() + most
    }

    /// Returns the first LBA of the band in which the sequential writes from `first` up to, not including, `end` stop,
    /// if they begin before that band and end within it. When all of that band has arrived, it can be written in its
    /// own place, whereas a part of it would go to the cache. Returns `None` if the writes are shorter than
    /// `stream_size` or reach the capacity.
    pub(super) fn cut_of_stream(&self, first: Lba, end: Lba) -> Option<Lba> {
        if (end - first).0 < self.settings.stream_sectors || end.0 >= self.shape.bands.capacity().0 {
            return None;
        }
        let band = self.shape.bands.locate(end).region;
        Some(self.shape.bands.first_lba(band)).filter(|&cut| first < cut && cut < end)
    }

    /// Appends to `plan` the writes of the bands that the waiting writes cover completely, each in the band's own
    /// place, if the waiting writes are contiguous. The other sectors stay waiting.
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
            self.give_to_spare(band, 0, plan);
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
