//! Background moves and their phases. No host command enters a phase; between phases hosts may come in, and a write that
//! would touch what the current move uses completes it first.
//!
//! ```text
//!            nothing overwritten: read · write · commit
//!          ┌──────────────────────────────────────────────────────────────┐
//!   Idle ──┤                                                              ├──► Idle
//!          └─ phase 1 ─► BackedUp ─ phase 2 ─┬───────────────── commit ───┤
//!             read,                 write    │                            │
//!             back up                        └─► Displaced ─ phase 3 ─────┘
//!                                       (late writes left) write · commit
//! ```
//!
//! | state | what holds | a cut here |
//! |---|---|---|
//! | Idle | no record of a move is active | nothing to do |
//! | BackedUp | every place is as before; what phase 2 endangers is backed up | what is backed up is written home again |
//! | Displaced | late data is in the backup region alone, its new place is free to be written | phase 3 is made up for |
//!
//! Invariants:
//! 1. A phase ends with all its writes durable, and after them the note that says so.
//! 2. Bottoms are written before tops: the tops beside them are rewritten last.

use std::collections::VecDeque;

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::backup::BackupLog;
use super::run::{TrackRun, write_copies};
use crate::plan::{Cause, GroupKind, Kind, Medium, Plan, StepOp};

/// When a run is read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// Read in the first phase, written in the second (or the first, if nothing is backed up).
    Normal,
    /// Read in the second phase, just before it is written: intact in its old place until then.
    ReadLate,
    /// Written in the third phase: the old contents of its new place have moved in the second.
    WrittenLate,
}

/// A run to be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The sectors, and where they lie now.
    pub from: TrackRun,
    /// The first physical sector that they are written to: their present place, if they are only to be rewritten.
    pub to: Pba,
    /// Whether that is on a bottom, so that writing there destroys its neighbours.
    pub to_bottom: bool,
    /// Whether it is backed up first.
    pub saved: bool,
    /// When it is read and written.
    pub timing: Timing,
}

/// Tracks that the current move uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lock {
    surface: u8,
    radial_start: u32,
    radial_last: u32,
}

/// Everything that is copied for one move, in the order in which it is read. Runs of one track follow each other.
#[derive(Clone, Default, Debug)]
pub struct Transfers {
    list: Vec<Transfer>,
    locks: Vec<Lock>,
    /// Written, without logical sectors, before all else that is written.
    header: Option<Extent>,
    /// Where the move takes place: its backup region is near.
    radial_track: u32,
}

impl Transfers {
    fn clear(&mut self) {
        self.list.clear();
        self.locks.clear();
        self.header = None;
    }

    /// Adds a run to be copied.
    pub fn push(&mut self, transfer: Transfer) {
        self.list.push(transfer);
    }

    /// Adds runs that stay where they are, because a write beside them destroys them.
    pub fn push_kept(&mut self, runs: &[TrackRun]) {
        let kept = |run: &TrackRun| Transfer {
            from: *run,
            to: run.pba,
            to_bottom: false,
            saved: true,
            timing: Timing::Normal,
        };
        self.list.extend(runs.iter().map(kept));
    }

    /// Locks the tracks from `radial_start` to `radial_last` of a surface.
    pub fn lock(&mut self, surface: u8, radial_start: u32, radial_last: u32) {
        self.locks.push(Lock { surface, radial_start, radial_last });
    }

    /// Writes out-of-band sectors before the rest.
    pub fn set_header(&mut self, header: Extent) {
        self.header = Some(header);
    }

    /// The move takes place around this track.
    pub fn set_radial_track(&mut self, radial_track: u32) {
        self.radial_track = radial_track;
    }

    fn saved_sectors(&self) -> u64 {
        self.list.iter().filter(|transfer| transfer.saved).map(|transfer| transfer.from.sectors as u64).sum()
    }

    fn of(&self, timing: Timing) -> impl DoubleEndedIterator<Item = &Transfer> {
        self.list.iter().filter(move |transfer| transfer.timing == timing)
    }

    fn has(&self, timing: Timing) -> bool {
        self.of(timing).next().is_some()
    }
}

/// Where a move stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Idle,
    BackedUp,
    Displaced,
}

/// What a phase leads to, for the layer's map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// More phases follow.
    Underway,
    /// Late data lies in the backup region from here on.
    Displaced(Pba),
    /// All is copied.
    Done,
}

/// The moves to be made, and the current one.
#[derive(Debug)]
pub struct Moves<M> {
    queue: VecDeque<M>,
    chosen: Option<M>,
    stage: Stage,
    transfers: Transfers,
    saved: Vec<TrackRun>,
    /// Where the late data was backed up.
    late_backup: Pba,
}

impl<M: Copy> Default for Moves<M> {
    fn default() -> Moves<M> {
        Moves {
            queue: VecDeque::new(),
            chosen: None,
            stage: Stage::Idle,
            transfers: Transfers::default(),
            saved: Vec::new(),
            late_backup: Pba(0),
        }
    }
}

impl<M: Copy> Moves<M> {
    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.chosen.is_none()
    }

    /// The current move.
    pub fn current(&self) -> Option<M> {
        self.chosen
    }

    /// Replaces the moves not yet begun.
    pub fn replace(&mut self, moves: &[M]) {
        self.queue.clear();
        self.queue.extend(moves);
    }

    /// Takes the next move that `prepare` finds sensible, and that backs up no more than `saved_sectors_max`; says whether
    /// there is one.
    pub fn take_next(&mut self, saved_sectors_max: u64, mut prepare: impl FnMut(M, &mut Transfers) -> bool) -> bool {
        while let Some(chosen) = self.queue.pop_front() {
            self.transfers.clear();
            if prepare(chosen, &mut self.transfers) && self.transfers.saved_sectors() <= saved_sectors_max {
                self.chosen = Some(chosen);
                return true;
            }
        }
        false
    }

    /// Whether the current move has something to do with the tracks from `radial_start` to `radial_last`.
    pub fn locks(&self, surface: u8, radial_start: u32, radial_last: u32) -> bool {
        self.chosen.is_some()
            && self.transfers.locks.iter().any(|lock| {
                lock.surface == surface && lock.radial_start <= radial_last && radial_start <= lock.radial_last
            })
    }

    /// Plans the next phase of the current move.
    pub fn phase(&mut self, log: &mut BackupLog, plan: &mut Plan) -> Outcome {
        match self.stage {
            Stage::Idle => self.first_phase(log, plan),
            Stage::BackedUp => self.second_phase(plan),
            Stage::Displaced => self.third_phase(plan),
        }
    }

    /// The current move is done, or a note says so.
    pub fn finish(&mut self) {
        self.chosen = None;
        self.stage = Stage::Idle;
    }

    fn first_phase(&mut self, log: &mut BackupLog, plan: &mut Plan) -> Outcome {
        plan.open(GroupKind::Migration);
        for transfer in &self.transfers.list {
            log.before_writing(Extent::new(transfer.to, Sectors(transfer.from.sectors as u64)), plan);
        }
        for transfer in self.transfers.list.iter().filter(|transfer| transfer.timing != Timing::ReadLate) {
            read(transfer, plan);
        }
        self.saved.clear();
        self.saved.extend(self.transfers.list.iter().filter(|transfer| transfer.saved).map(|transfer| transfer.from));
        if self.saved.is_empty() {
            self.write_normal(plan);
            return Outcome::Done;
        }
        let backup = log.place_move(self.transfers.radial_track, self.transfers.saved_sectors(), plan);
        let area = log.area_of_move().expect("it was placed there");
        self.transfers.lock(area.surface, area.radial_start, area.radial_last);
        write_copies(&self.saved, backup, plan);
        log.record_move(backup, &self.saved, plan);
        let before_late = self.transfers.list.iter().filter(|transfer| transfer.saved);
        let before_late = before_late.take_while(|transfer| transfer.timing != Timing::WrittenLate);
        self.late_backup = backup + before_late.map(|transfer| Sectors(transfer.from.sectors as u64)).sum::<Sectors>();
        self.stage = Stage::BackedUp;
        Outcome::Underway
    }

    fn second_phase(&mut self, plan: &mut Plan) -> Outcome {
        plan.next_phase(GroupKind::Migration);
        self.transfers.of(Timing::ReadLate).for_each(|transfer| read(transfer, plan));
        self.write_normal(plan);
        if self.transfers.has(Timing::WrittenLate) {
            self.stage = Stage::Displaced;
            return Outcome::Displaced(self.late_backup);
        }
        Outcome::Done
    }

    fn third_phase(&mut self, plan: &mut Plan) -> Outcome {
        plan.next_phase(GroupKind::Migration);
        self.transfers.of(Timing::WrittenLate).for_each(|transfer| write(transfer, plan));
        plan.barrier();
        Outcome::Done
    }

    /// Bottoms first, then the tops, track by track in the reverse order of reading: the head ends where it began.
    fn write_normal(&self, plan: &mut Plan) {
        if let Some(header) = self.transfers.header {
            let (op, medium, kind) = (StepOp::Write, Medium::Disk, Kind::OutOfBand);
            plan.access(op, medium, kind, Cause::Migration, header.start, Lba(0), header.sectors);
        }
        let now = |transfer: &&Transfer| transfer.timing != Timing::WrittenLate;
        let list = &self.transfers.list;
        let mut bottoms: Vec<&Transfer> = list.iter().filter(now).filter(|transfer| transfer.to_bottom).collect();
        // What comes from many places goes to its track in one turn.
        bottoms.sort_by_key(|transfer| transfer.to);
        bottoms.into_iter().for_each(|transfer| write(transfer, plan));
        let follow = |a: &Transfer, b: &Transfer| a.to + Sectors(a.from.sectors as u64) == b.to;
        let tracks: Vec<&[Transfer]> = list.chunk_by(follow).collect();
        for track in tracks.into_iter().rev() {
            let tops = track.iter().filter(now).filter(|transfer| !transfer.to_bottom);
            tops.for_each(|transfer| write(transfer, plan));
        }
        plan.barrier();
    }
}

fn read(transfer: &Transfer, plan: &mut Plan) {
    let run = &transfer.from;
    plan.read(Cause::Migration, run.pba, run.lba, Sectors(run.sectors as u64));
}

fn write(transfer: &Transfer, plan: &mut Plan) {
    let run = &transfer.from;
    plan.write(Cause::Migration, transfer.to, run.lba, Sectors(run.sectors as u64));
}
