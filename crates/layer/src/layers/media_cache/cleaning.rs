//! Cleaning of a band (Aghayev 2015 algorithm 1, fig. 11), a phase at a time, so that a host command waits for one phase
//! at most.
//!
//! ```text
//!   Resting ─► Reading ─► Scanning ─► Collecting ─► Persisting ─► Rewriting ─► Noting ─► Resting
//!              the band   the journal  cached runs   to the spare  the band     the map
//!              └──────── a host command abandons it ───────────┘   └ it resumes ─┘
//! ```
//!
//! At the end of Persisting, the record `Begin` makes the spare the place of the whole band. The band's data in the
//! cache is then dead, and later host writes are newer than the spare. Until the record `End`, at the end of Rewriting,
//! reads go to the spare.
//!
//! With `idle_visits`, the first cleaning after a host command begins with a stage `Visiting`: the heads seek to the
//! inner diameter and back as often as the parameter says, each time after [`VISIT_AFTER`] without commands and other
//! work. The stage `Reading` follows once the time of the parameter `idle` is over.
//!
//! With `rmw=partial`, "the band" in the picture is the part of the band from the track of its first cached or trimmed
//! sector on, and the record is `BeginPart` (partial read-modify-write: Aghayev 2015 §4.5, reference 38). The tracks
//! before that part stay as they are, since a write damages only the tracks after its own.
//!
//! Invariants:
//! 1. The spare is overwritten only after the end of the previous rewrite is durable.
//! 2. No phase accesses more than one track, except four: one that visits reads a sector of two tracks, one that collects
//!    reads up to [`RUNS_PER_PHASE`] cached runs, one records the persisted band, and one writes `map_update_tracks`
//!    tracks of the map.

use imbrex_disk::{Lba, Pba, Sectors, SimDuration};

use super::stage::Stage;
use super::state::MediaCache;
use super::store::Store;
use crate::map::extent_map::Mapped;
use crate::plan::reason::{AreaKind, Due};
use crate::plan::{Cause, GroupKind, Kind, Medium, Plan, StepOp};

use super::record::Record;
use super::recovery::begin_record;

/// Number of cached runs read in one phase.
const RUNS_PER_PHASE: usize = 8;
/// Time before each seek to the inner diameter at the start of idle time. Two of them end within the 200 ms in which
/// Aghayev 2015 fig. 11 shows them.
pub(super) const VISIT_AFTER: SimDuration = SimDuration::from_millis(50);

impl MediaCache {
    /// Abandons the current cleaning, because a host command has arrived, unless the spare already holds the merged
    /// band or the band was rewritten. Nothing is lost: the band's data still lie in their places.
    pub(super) fn abandon(&mut self) {
        let is_kept = matches!(self.cleaning.now, Some((_, Stage::Rewriting(_) | Stage::Noting)));
        if !is_kept {
            self.cleaning.now = None;
            self.cleaning.has_begun = false;
        }
    }

    /// Appends to `plan` the rest of the current cleaning, if there is one, because it is in the way of the host's
    /// command.
    pub(super) fn finish_cleaning(&mut self, plan: &mut Plan) {
        if let Some((band, _)) = self.cleaning.now {
            self.cleaning.because(band, Due::InTheWay, AreaKind::Cache);
        }
        self.advance_to_end(plan);
    }

    fn advance_to_end(&mut self, plan: &mut Plan) {
        while let Some((band, stage)) = self.cleaning.now {
            self.advance(band, stage, plan);
        }
    }

    /// Appends to `plan` the rest of the current cleaning, if there is one, and then the whole cleaning of `band`: its
    /// cached runs are merged into the band. `full` is the store without room, which is the cache or the map.
    pub(super) fn clean(&mut self, band: usize, full: AreaKind, plan: &mut Plan) {
        if let Some((now, _)) = self.cleaning.now {
            self.cleaning.because(now, Due::Full, full);
            self.advance_to_end(plan);
        }
        self.begin(band);
        self.cleaning.because(band, Due::Full, full);
        self.advance_to_end(plan);
    }

    /// Appends the next phase of cleaning in idle time to `plan`. If no band is being cleaned, begins with the band of
    /// the sector that [`MediaCache::oldest`] returns. Returns `false` if there is nothing to clean.
    pub(super) fn clean_in_background(&mut self, plan: &mut Plan) -> bool {
        if self.cleaning.now.is_none() {
            let Some(lba) = self.oldest() else { return false };
            let band = self.shape.bands.locate(lba).region;
            let visits = self.cleaning.is_visiting(self.settings.idle_visits);
            self.begin(band);
            if visits {
                self.cleaning.now = Some((band, Stage::Visiting(0)));
            }
        }
        self.cleaning.has_begun = true;
        let (band, stage) = self.cleaning.now.expect("it was begun");
        self.cleaning.because(band, Due::Idle, AreaKind::Cache);
        self.advance(band, stage, plan);
        true
    }

    /// Returns the next cached sector whose band should be cleaned: in a journal the oldest live one, in a cache that
    /// is overwritten in place the next one to evict.
    pub(super) fn oldest(&mut self) -> Option<Lba> {
        match &mut self.store {
            Store::Journal(journal) => journal.oldest(&self.map),
            Store::InPlace(zones) => zones.next_out(),
        }
    }

    fn begin(&mut self, band: usize) {
        let (first, sectors) = self.shape.band(band);
        let from = if self.settings.is_rmw_partial { self.first_dirty_track(band) } else { 0 };
        self.cleaning.now = Some((band, self.first_stage(band, from)));
        self.cleaning.from = from;
        self.cleaning.is_open = false;
        self.cleaning.runs.clear();
        self.cleaning.runs.extend(self.map.pieces(first, sectors));
        // Sorted by place, the runs are read in one pass over the journal.
        self.cleaning.runs.sort_unstable_by_key(|run| match run.target {
            Mapped::At(pba) => (pba.0, run.lba),
            Mapped::Absent => (u64::MAX, run.lba),
        });
    }

    /// Returns the stage in which the cleaning of `band` from its sector `from` on begins. A band all of whose sectors
    /// are cached is not read.
    fn first_stage(&self, band: usize, from: u64) -> Stage {
        let (first, sectors) = self.shape.band(band);
        let mapped: Sectors = self.map.pieces(first, sectors).map(|run| run.sectors).sum();
        if mapped.0 == sectors.0 - from { Stage::Scanning(0) } else { Stage::Reading(from) }
    }

    /// Returns the sector of `band` with which the track of the first cached or trimmed sector begins.
    fn first_dirty_track(&self, band: usize) -> u64 {
        let (first, sectors) = self.shape.band(band);
        let Some(dirty) = self.map.pieces(first, sectors).next() else { return 0 };
        let start = self.shape.bands.extent(band).start;
        let track = self.disk.geometry.track_of(start + (dirty.lba - first));
        track.start.0.saturating_sub(start.0)
    }

    /// Plans one phase of the cleaning of `band`, and enters the next stage.
    fn advance(&mut self, band: usize, stage: Stage, plan: &mut Plan) {
        let next = match stage {
            Stage::Visiting(done) => {
                self.cleaning.phase(plan);
                self.visit(plan);
                let is_last = done + 1 >= self.settings.idle_visits;
                Some(if is_last { self.first_stage(band, self.cleaning.from) } else { Stage::Visiting(done + 1) })
            }
            Stage::Reading(done) => {
                self.cleaning.phase(plan);
                let done = self.home_track(band, done, StepOp::Read, plan);
                Some(if done < self.shape.bands.sectors(band).0 { Stage::Reading(done) } else { Stage::Scanning(0) })
            }
            Stage::Scanning(done) => Some(self.scan(done, plan)),
            Stage::Collecting(done) => Some(self.collect(done, plan)),
            Stage::Persisting(next) => Some(self.persist(band, next, plan)),
            Stage::Rewriting(done) => {
                self.cleaning.phase(plan);
                let done = self.home_track(band, done, StepOp::Write, plan);
                Some(if done < self.shape.bands.sectors(band).0 {
                    Stage::Rewriting(done)
                } else {
                    end_rewrite(band, plan)
                })
            }
            Stage::Noting => {
                self.cleaning.phase(plan);
                let sectors = self.settings.map_update_sectors;
                self.write_map(sectors, plan);
                None
            }
        };
        self.cleaning.now = next.map(|stage| (band, stage));
    }

    /// Reads a sector of the innermost track, and one of the outermost: the heads seek in and back.
    fn visit(&self, plan: &mut Plan) {
        let geometry = &self.disk.geometry;
        for radial_track in [geometry.radial_tracks() - 1, 0] {
            let pba = geometry.track(radial_track, 0).start;
            plan.access(StepOp::Read, Medium::Disk, Kind::OutOfBand, Cause::Cleaning, pba, Lba(0), Sectors(1));
        }
    }

    /// Reads or writes the track of `band` that begins at sector `done` of the band. Returns the sector with which the
    /// next track begins.
    fn home_track(&self, band: usize, done: u64, op: StepOp, plan: &mut Plan) -> u64 {
        let extent = self.shape.bands.extent(band);
        let at = extent.start + Sectors(done);
        let end = self.disk.geometry.track_of(at).end().min(extent.end());
        let lba = self.shape.bands.first_lba(band) + Sectors(done);
        plan.access(op, Medium::Disk, Kind::Data, Cause::Cleaning, at, lba, end - at);
        done + (end - at).0
    }

    /// Reads the next part of the journal, to account for the time that finding the band's cached runs takes (Aghayev
    /// 2015 fig. 11: two milliseconds per block). Returns the next stage.
    fn scan(&mut self, done: u64, plan: &mut Plan) -> Stage {
        let cached = self.cleaning.runs.iter().filter(|run| run.target != Mapped::Absent).count() as u64;
        let Store::Journal(journal) = &self.store else { return self.collect(0, plan) };
        let all = (cached * self.settings.collect_sectors).min(journal.tracks.sectors());
        if done >= all {
            return self.collect(0, plan);
        }
        let offset = (journal.offset(journal.tail) + done) % journal.tracks.sectors();
        let track = journal.tracks.index_at(offset);
        let left = journal.tracks.offset(track + 1) - offset;
        let extent = journal.tracks.run(offset, left.min(all - done));
        self.cleaning.phase(plan);
        plan.access(StepOp::Read, Medium::Disk, Kind::OutOfBand, Cause::Cleaning, extent.start, Lba(0), extent.sectors);
        Stage::Scanning(done + extent.sectors.0)
    }

    /// Reads the next few cached runs over the staged data of the band, and returns the next stage.
    fn collect(&mut self, done: usize, plan: &mut Plan) -> Stage {
        self.cleaning.phase(plan);
        let end = (done + RUNS_PER_PHASE).min(self.cleaning.runs.len());
        for run in &self.cleaning.runs[done..end] {
            match run.target {
                Mapped::At(pba) => plan.read(Cause::Cleaning, pba, run.lba, run.sectors),
                Mapped::Absent => plan.drop_sectors(Cause::Cleaning, run.lba, run.sectors),
            }
        }
        if end < self.cleaning.runs.len() { Stage::Collecting(end) } else { Stage::Persisting(self.cleaning.from) }
    }

    /// Writes the next track of the merged band to the spare, and returns the next stage. After the last track, the
    /// spare becomes the place of the band.
    fn persist(&mut self, band: usize, next: u64, plan: &mut Plan) -> Stage {
        self.cleaning.phase(plan);
        let from = self.cleaning.from;
        let done = next - from;
        if done == 0 {
            plan.barrier();
        }
        let (first, sectors) = self.shape.band(band);
        let spare = &self.shape.spare;
        let left = spare.offset(spare.index_at(done) + 1) - done;
        let extent = spare.run(done, left.min(sectors.0 - next));
        plan.write(Cause::Backup, extent.start, first + Sectors(next), extent.sectors);
        let next = next + extent.sectors.0;
        if next < sectors.0 {
            return Stage::Persisting(next);
        }
        self.give_to_spare(band, from, plan);
        Stage::Rewriting(from)
    }

    /// Records that the spare holds `band` from its sector `from` on, and is the place of these data from now on.
    /// Appends barriers and the journal record to `plan`, and removes the band's cached runs from the map.
    pub(super) fn give_to_spare(&mut self, band: usize, from: u64, plan: &mut Plan) {
        plan.barrier();
        plan.note(begin_record(band, from).encode());
        plan.barrier();
        self.unmap_band(band);
        self.set_written(band);
    }

    /// Appends to `plan` a write of `sectors` of the mapping table, at the table's place on the disk. It has no
    /// contents, and only accounts for the time that the write takes.
    pub(super) fn write_map(&self, sectors: u64, plan: &mut Plan) {
        self.shape.map.runs(0, sectors, |_, extent| {
            plan.access(StepOp::Write, Medium::Disk, Kind::Map, Cause::Journal, extent.start, Lba(0), extent.sectors);
        });
    }

    /// Appends to `plan` the end of a rewrite that a power cut interrupted: writes the part of a band that the spare
    /// holds to its own place. Does nothing if the spare holds none.
    pub(super) fn finish_rewrite(&mut self, plan: &mut Plan) {
        let Some(band) = self.cleaning.rewriting() else { return };
        let (first, sectors) = self.shape.band(band);
        let from = Sectors(self.cleaning.from);
        let home: Pba = self.shape.bands.extent(band).start;
        plan.open(GroupKind::Recovery);
        self.shape.spare.runs(0, (sectors - from).0, |done, extent| {
            plan.read(Cause::Recovery, extent.start, first + from + Sectors(done), extent.sectors);
        });
        plan.write(Cause::Recovery, home + from, first + from, sectors - from);
        end_rewrite(band, plan);
        self.cleaning.now = None;
    }
}

/// Appends to `plan` the journal record that `band` lies in its own place again, and returns the next stage of
/// cleaning.
pub(super) fn end_rewrite(band: usize, plan: &mut Plan) -> Stage {
    plan.barrier();
    plan.note(Record::End { band: band as u64 }.encode());
    Stage::Noting
}
