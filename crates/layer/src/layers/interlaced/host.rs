//! Serves the host: reads, writes of tops, and the read-modify-write of bottoms (Hajkazemi 2019 §2.1).
//!
//! ```text
//!   phase 1: read S(T−1), S(T+1) · copy both to the backup region · barrier · note where · barrier
//!   phase 2: write S(T) · rewrite S(T−1), S(T+1)
//! ```
//!
//! With `skip_dead=on`, dead neighbours are not rewritten. The layer then remembers which sectors are live: a sector is
//! live from its first write to its TRIM, and dead otherwise.
//!
//! Invariants:
//! 1. A bottom sector is written only after the live tops that the write destroys are backed up, and the record is
//!    durable.
//! 2. A dead sector is recorded as live only after its data is durable. A trimmed sector is recorded as dead, durably,
//!    before anything destroys it.

use imbrex_disk::{Command, Lba, Sectors};

use super::backup::BackupLog;
use super::home::Home;
use super::live::LiveSet;
use super::record::Record;
use super::run::{Span, TrackRun, write_copies};
use super::translation::Translation;
use crate::layer::Piece;
use crate::plan::note::{Note, ReplayError};
use crate::plan::{Cause, GroupKind, Medium, Plan};

/// The part of a layer of an interlaced disk that serves the host: it plans reads, writes (bottom tracks by
/// read-modify-write) and trims, and keeps the backup log and the set of live sectors.
pub struct Host {
    /// The home of each logical sector: its place as long as the layer has not moved it.
    pub home: Home,
    /// The backup log, which holds copies of the sectors that a power cut during a rewrite could destroy.
    pub log: BackupLog,
    /// Set of live sectors; kept only with `skip_dead=on`.
    live: Option<LiveSet>,
    /// Sectors of tops that the current write destroys; `endangered` holds the runs of data that lie there.
    faced: Vec<Span>,
    endangered: Vec<TrackRun>,
    /// Parts of one track to be written by writes that are served together.
    written: Vec<TrackRun>,
}

impl Host {
    /// Returns the part of a layer that serves the host. `home` gives the place of each logical sector that the layer
    /// has not moved; `log` is the backup log.
    ///
    /// With `skip_dead`, the part keeps a set of live sectors. The set is empty at first: a sector counts as dead until
    /// its first write. Without `skip_dead`, every sector counts as live.
    pub fn new(home: Home, log: BackupLog, skip_dead: bool) -> Host {
        let live = skip_dead.then(LiveSet::default);
        Host { home, log, live, faced: Vec::new(), endangered: Vec::new(), written: Vec::new() }
    }

    /// Returns whether trimmed sectors are remembered, so that they read as zeros. `true` if the part was created with
    /// `skip_dead`, otherwise `false`.
    pub fn keeps_trims(&self) -> bool {
        self.live.is_some()
    }

    /// Appends to `plan` the reads of the live sectors of `command`. Dead sectors are not read: they are zeros.
    #[inline]
    pub fn read<T: Translation>(&self, map: &T, command: &Command, plan: &mut Plan) {
        let mut read = |mut lba: Lba, end: Lba| {
            while lba < end {
                let run = map.run_of(&self.home, lba).part(lba, end);
                plan.read(Cause::Host, run.pba, lba, Sectors(run.sectors as u64));
                lba = run.end();
            }
        };
        match &self.live {
            None => read(command.lba, command.end()),
            Some(live) => live.cover(command.lba, command.end(), |from, to, alive| {
                if alive {
                    read(from, to);
                }
            }),
        }
    }

    /// Appends to `plan` the steps of one write command, track by track: a read-modify-write on a bottom track if the
    /// write destroys live sectors of top tracks, otherwise a plain write. `first` is the run that contains the
    /// command's first sector. Calls `count(key, sectors)` for each run written, with its heat key, which may be
    /// [`NO_HEAT`](super::NO_HEAT).
    #[inline]
    pub fn write<T: Translation>(
        &mut self,
        map: &T,
        command: &Command,
        first: TrackRun,
        plan: &mut Plan,
        mut count: impl FnMut(u32, u32),
    ) {
        let (mut lba, end, mut run) = (command.lba, command.end(), first);
        loop {
            run = run.part(lba, end);
            count(map.heat(&run), run.sectors);
            if run.harmless {
                self.log.before_writing(run.extent(), plan);
                plan.write(Cause::Host, run.pba, lba, Sectors(run.sectors as u64));
            } else {
                self.rewrite(map, &[run], plan);
            }
            // The next track's write may destroy the sectors just written, and it backs up only live sectors.
            self.born(lba, run.end(), plan);
            lba = run.end();
            if lba >= end {
                return;
            }
            run = map.run_of(&self.home, lba);
        }
    }

    /// Appends to `plan` the steps of several write commands as one operation. All commands must lie in one run, that
    /// is, on one track. They may overlap. There must be at least one. The writes are not counted as heat.
    pub fn write_joined<T: Translation>(&mut self, map: &T, commands: &[Command], plan: &mut Plan) {
        let run = map.run_of(&self.home, commands[0].lba);
        let mut written = std::mem::take(&mut self.written);
        written.clear();
        written.extend(commands.iter().map(|command| run.part(command.lba, command.end())));
        written.sort_unstable_by_key(|part| part.lba);
        written.dedup_by(|next, last| {
            let joins = next.lba <= last.end();
            if joins {
                *last = run.part(last.lba, last.end().max(next.end()));
            }
            joins
        });
        if run.harmless {
            written.iter().for_each(|part| self.log.before_writing(part.extent(), plan));
            write_parts(&written, plan);
        } else {
            self.rewrite(map, &written, plan);
        }
        for part in &written {
            self.born(part.lba, part.end(), plan);
        }
        self.written = written;
    }

    /// Marks the sectors of the TRIM `command` as dead, and appends a journal record and a barrier to `plan` if any of
    /// them was live. Before that, appends the steps that clear the backup of the host's latest rewrite, if it may hold
    /// copies of these sectors. Does nothing if trimmed sectors are not remembered.
    pub fn trim<T: Translation>(&mut self, map: &T, command: &Command, plan: &mut Plan) {
        let Some(live) = &mut self.live else { return };
        let (mut lba, end) = (command.lba, command.end());
        while lba < end {
            let run = map.run_of(&self.home, lba).part(lba, end);
            self.log.before_writing(run.extent(), plan);
            lba = run.end();
        }
        if live.remove(command.lba, end) {
            plan.note(Record::Dead { start_lba: command.lba, end_lba: end }.encode());
            plan.barrier();
        }
    }

    /// Records the sectors from `start` up to `end`, whose write is planned, as live, if any of them was dead.
    #[inline]
    fn born(&mut self, start: Lba, end: Lba, plan: &mut Plan) {
        let Some(live) = &mut self.live else { return };
        if live.insert(start, end) {
            plan.barrier();
            plan.note(Record::Live { start_lba: start, end_lba: end }.encode());
        }
    }

    /// Plans a write of parts of one bottom track, by read-modify-write if it destroys live sectors.
    #[inline]
    fn rewrite<T: Translation>(&mut self, map: &T, written: &[TrackRun], plan: &mut Plan) {
        self.find_endangered(map, written);
        if self.endangered.is_empty() {
            return write_parts(written, plan);
        }
        let radial_track = written[0].radial_track;
        let sectors = self.endangered.iter().map(|run| run.sectors as u64).sum();
        let backup = self.log.place_host(radial_track, sectors, plan);
        for run in &self.endangered {
            plan.read(Cause::Cleaning, run.pba, run.lba, Sectors(run.sectors as u64));
        }
        write_copies(&self.endangered, backup, plan);
        self.log.record_host(radial_track, backup, &self.endangered, plan);
        plan.next_phase(GroupKind::Host);
        write_parts(written, plan);
        for run in &self.endangered {
            plan.write(Cause::Cleaning, run.pba, run.lba, Sectors(run.sectors as u64));
        }
    }

    /// Collects the live data that a write of parts of one bottom track destroys.
    #[inline]
    fn find_endangered<T: Translation>(&mut self, map: &T, written: &[TrackRun]) {
        self.faced.clear();
        self.home.push_faced(written, &mut self.faced);
        if written.len() > 1 {
            merge(&mut self.faced);
        }
        self.endangered.clear();
        for span in &self.faced {
            push_runs_at(map, &self.home, span, &mut self.endangered);
        }
        if let Some(live) = &self.live {
            let mut alive = Vec::new();
            for run in &self.endangered {
                live.cover(run.lba, run.end(), |from, to, is_live| {
                    if is_live {
                        alive.push(run.part(from, to));
                    }
                });
            }
            self.endangered = alive;
        }
    }

    /// Appends to `pieces` the present places of the `sectors` from `lba` on, in order of LBA; one piece lies on one
    /// track. Dead sectors (never written, or trimmed) have a piece without a place, if the set of live sectors is
    /// kept.
    pub fn lookup<T: Translation>(&self, map: &T, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        let mut look_up = |mut lba: Lba, end: Lba| {
            while lba < end {
                let run = map.run_of(&self.home, lba).part(lba, end);
                pieces.push(Piece { lba, sectors: Sectors(run.sectors as u64), at: Some((Medium::Disk, run.pba)) });
                lba = run.end();
            }
        };
        let Some(live) = &self.live else { return look_up(lba, lba + sectors) };
        let mut parts = Vec::new();
        live.cover(lba, lba + sectors, |from, to, alive| parts.push((from, to, alive)));
        for (from, to, alive) in parts {
            match alive {
                true => self.lookup_live(map, from, to, pieces),
                false => pieces.push(Piece { lba: from, sectors: to - from, at: None }),
            }
        }
    }

    fn lookup_live<T: Translation>(&self, map: &T, mut lba: Lba, end: Lba, pieces: &mut Vec<Piece>) {
        while lba < end {
            let run = map.run_of(&self.home, lba).part(lba, end);
            pieces.push(Piece { lba, sectors: Sectors(run.sectors as u64), at: Some((Medium::Disk, run.pba)) });
            lba = run.end();
        }
    }

    /// Appends to `notes` the journal records that restore the set of live sectors and the active backups.
    pub fn checkpoint(&self, notes: &mut Vec<Note>) {
        let live = self.live.iter().flat_map(LiveSet::iter);
        notes.extend(live.map(|(start, end)| Record::Live { start_lba: start, end_lba: end }.encode()));
        self.log.checkpoint(notes);
    }

    /// Replays a journal record of the backup log or of the set of live sectors.
    ///
    /// # Errors
    ///
    /// The record is none of these or has impossible values, or it is one of live or dead sectors and no set of live
    /// sectors is kept.
    pub fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        let (record, capacity) = (Record::decode(note)?, self.home.capacity());
        let taken = match (record, &mut self.live) {
            (Record::Live { start_lba, end_lba } | Record::Dead { start_lba, end_lba }, Some(live)) => {
                if start_lba >= end_lba || end_lba.0 > capacity.0 {
                    return Err(note.refuse("the run is empty or past the capacity"));
                }
                let change = if matches!(record, Record::Live { .. }) { LiveSet::insert } else { LiveSet::remove };
                change(live, start_lba, end_lba);
                Ok(())
            }
            _ => self.log.replay(record, capacity),
        };
        taken.map_err(|reason| note.refuse(reason))
    }

    /// Appends to `plan` the repair after a power cut: writes the backed-up sectors to their places by `map`, bottom
    /// tracks before top tracks, and clears the records. Appends nothing if no backup is active.
    pub fn repair<T: Translation>(&mut self, map: &T, plan: &mut Plan) {
        let mut repaired = false;
        for parts in self.log.active_parts().into_iter().filter(|parts| !parts.is_empty()) {
            repaired = true;
            plan.open(GroupKind::Recovery);
            for part in parts {
                plan.read(Cause::Recovery, part.backup, part.lba, Sectors(part.sectors as u64));
            }
            // Bottoms go first, because writing them destroys the tops.
            for harmless in [false, true] {
                for part in parts {
                    let (mut lba, end) = (part.lba, part.lba + Sectors(part.sectors as u64));
                    while lba < end {
                        let run = map.run_of(&self.home, lba).part(lba, end);
                        if run.harmless == harmless {
                            plan.write(Cause::Recovery, run.pba, lba, Sectors(run.sectors as u64));
                        }
                        lba = run.end();
                    }
                }
            }
        }
        if repaired {
            self.log.clear_repaired(plan);
        }
    }

    /// Returns whether the runs of live sectors are non-empty, disjoint, and not adjacent. Returns `true` if no set of
    /// live sectors is kept.
    pub fn is_sound(&self) -> bool {
        self.live.as_ref().is_none_or(LiveSet::is_sound)
    }

    /// Returns the bytes of heap memory that the homes, the backup log and the set of live sectors take now.
    pub fn measured_bytes(&self) -> u64 {
        let live = self.live.as_ref().map_or(0, LiveSet::measured_bytes);
        live + self.home.measured_bytes() + self.log.measured_bytes()
    }
}

#[inline]
fn write_parts(written: &[TrackRun], plan: &mut Plan) {
    for run in written {
        plan.write(Cause::Host, run.pba, run.lba, Sectors(run.sectors as u64));
    }
}

/// Appends to `runs` the runs of logical sectors that lie in `span` by `map`, clipped to `span`, in order of their
/// place.
#[inline]
pub fn push_runs_at<T: Translation>(map: &T, home: &Home, span: &Span, runs: &mut Vec<TrackRun>) {
    let mut sector = span.first;
    while sector < span.end {
        let Some(run) = map.run_at(home, &span.track, sector).filter(|run| run.sector < span.end) else { return };
        let from = sector.max(run.sector);
        let start = run.lba + Sectors((from - run.sector) as u64);
        let part = run.part(start, start + Sectors((span.end - from) as u64));
        sector = from + part.sectors;
        runs.push(part);
    }
}

/// Sorts `spans` by physical sector, and joins those that overlap on one track. Spans that only touch stay separate.
pub fn merge(spans: &mut Vec<Span>) {
    spans.sort_unstable_by_key(|span| span.extent());
    spans.dedup_by(|next, last| {
        let overlaps = next.track == last.track && next.first < last.end;
        if overlaps {
            last.end = last.end.max(next.end);
        }
        overlaps
    });
}
