//! Background moves and their phases. No host command enters a phase, but host commands may come between phases. A host
//! write that would touch tracks of the current move completes the move first.
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
//! | state | guarantee | recovery after a cut |
//! |---|---|---|
//! | Idle | no record of a move is active | nothing to do |
//! | BackedUp | every place holds its old data; data endangered by phase 2 is backed up | the backup is written home |
//! | Displaced | late data lies only in the backup region; its new place is free to be written | phase 3 is done |
//!
//! Invariants:
//! 1. A phase ends with all its writes durable, and after them the note that records the phase.
//! 2. Bottoms are written before tops: the tops beside them are rewritten last.

use std::collections::VecDeque;

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::backup::BackupLog;
use super::run::{TrackRun, write_copies};
use crate::plan::reason::{Area, AreaKind, Due, Reason};
use crate::plan::{Cause, GroupKind, Kind, Medium, Plan, StepOp};

/// The phases of a move in which a run is read and in which it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// The run is read in the first phase of the move and written in the second, or in the first if the move backs up
    /// nothing.
    Normal,
    /// The run is read in the second phase of the move, just before it is written. It is intact in its old place until
    /// then.
    ReadLate,
    /// The run is read and backed up in the first phase of the move, and written in the third, because the second phase
    /// first moves the old contents of its new place.
    WrittenLate,
}

/// One run of a background move: its present place, and the place to which it is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The logical sectors of the run, and their present place, from which they are read.
    pub from: TrackRun,
    /// First physical sector of the new place of the run; equal to the present one if the run is only rewritten in its
    /// place.
    pub to: Pba,
    /// Whether the run is written before the runs for which this is `false`. It must be `true` if the new place is on a
    /// bottom track, because a write there destroys sectors of the neighbouring tops. Runs with
    /// [`Timing::WrittenLate`] are written last in any case.
    pub to_bottom: bool,
    /// Whether the run is copied to a backup region before the move overwrites any sector.
    pub saved: bool,
    /// The phases of the background move in which the run is read and in which it is written.
    pub timing: Timing,
}

/// Tracks that the current move uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lock {
    surface: u8,
    radial_start: u32,
    radial_last: u32,
}

/// All runs to copy for one background move, and the tracks that host writes must not touch meanwhile. Runs of one
/// track must follow each other. Each phase of the move reads its runs in the order of the list.
#[derive(Clone, Default, Debug)]
pub struct Transfers {
    list: Vec<Transfer>,
    locks: Vec<Lock>,
    /// Out-of-band sectors, without logical ones, that are written before all else.
    header: Option<Extent>,
    /// Radial position of the move: it uses the nearest backup region.
    radial_track: u32,
}

impl Transfers {
    fn clear(&mut self) {
        self.list.clear();
        self.locks.clear();
        self.header = None;
    }

    /// Appends a run to copy. Each phase of the move reads its runs in the order in which they were appended. Runs of
    /// one track must follow each other.
    pub fn push(&mut self, transfer: Transfer) {
        self.list.push(transfer);
    }

    /// Appends runs of top tracks that the move backs up and then rewrites in their present places, because the move
    /// writes a bottom track beside them and so destroys them.
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

    /// Locks the tracks from `radial_start` to `radial_last`, both included, of `surface`: a host write that would
    /// touch them completes the move first.
    pub fn lock(&mut self, surface: u8, radial_start: u32, radial_last: u32) {
        self.locks.push(Lock { surface, radial_start, radial_last });
    }

    /// Sets the physical sectors of a header: sectors without logical contents that the move writes before all runs.
    /// Replaces a header that was set before.
    pub fn set_header(&mut self, header: Extent) {
        self.header = Some(header);
    }

    /// Sets the radial position of the move, counted in tracks from 0 at the outer diameter. The copies of the move go
    /// to the nearest backup region.
    pub fn set_radial_track(&mut self, radial_track: u32) {
        self.radial_track = radial_track;
    }

    fn saved_sectors(&self) -> u64 {
        self.list.iter().filter(|transfer| transfer.saved).map(|transfer| transfer.from.sectors as u64).sum()
    }

    /// Returns the number of sectors that the move writes: backup copies, the header, and all runs.
    fn written_sectors(&self) -> u64 {
        let runs: u64 = self.list.iter().map(|transfer| transfer.from.sectors as u64).sum();
        runs + self.saved_sectors() + self.header.map_or(0, |header| header.sectors.0)
    }

    fn of(&self, timing: Timing) -> impl DoubleEndedIterator<Item = &Transfer> {
        self.list.iter().filter(move |transfer| transfer.timing == timing)
    }

    fn has(&self, timing: Timing) -> bool {
        self.of(timing).next().is_some()
    }
}

/// State of the current move; see the table in the module's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Idle,
    BackedUp,
    Displaced,
}

/// The state of a background move after one of its phases, which tells the layer to record it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// More phases follow, and the map does not change yet.
    Underway,
    /// All runs are in their new places, except those with [`Timing::WrittenLate`]. These lie only in the backup
    /// region, from this physical sector on. One more phase follows.
    Displaced(Pba),
    /// All runs are in their new places: the move has ended.
    Done,
}

/// The result of the search for the next move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// There is a current move.
    Move,
    /// No move of the queue can be made; the queue is empty.
    Nothing,
    /// The next move would write so many sectors, more than are allowed now. It stays first in the queue.
    NotAllowed(u64),
}

/// The background moves of a layer: the queue of those to make, and the one in progress, if any, with its phase. `M` is
/// the layer's description of a move.
#[derive(Debug)]
pub struct Moves<M> {
    queue: VecDeque<M>,
    chosen: Option<M>,
    stage: Stage,
    transfers: Transfers,
    saved: Vec<TrackRun>,
    /// First physical sector of the copies of late data.
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
    /// Returns whether there is no move: none in the queue, and none in progress.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.chosen.is_none()
    }

    /// Returns the move that is in progress, or `None`.
    pub fn current(&self) -> Option<M> {
        self.chosen
    }

    /// Replaces the moves in the queue by `moves`. The move in progress stays.
    pub fn replace(&mut self, moves: &[M]) {
        self.queue.clear();
        self.queue.extend(moves);
    }

    /// Takes moves out of the queue until `prepare`, which adds the runs of a move, returns `true` for one that backs
    /// up at most `saved_sectors_max` sectors; the moves before it are dropped. That move becomes the current one if
    /// `allows` returns `true` for the number of sectors that it writes. No move may be in progress.
    pub fn take_next(
        &mut self,
        saved_sectors_max: u64,
        allows: impl Fn(u64) -> bool,
        mut prepare: impl FnMut(M, &mut Transfers) -> bool,
    ) -> Taken {
        while let Some(chosen) = self.queue.pop_front() {
            self.transfers.clear();
            if prepare(chosen, &mut self.transfers) && self.transfers.saved_sectors() <= saved_sectors_max {
                let sectors = self.transfers.written_sectors();
                if !allows(sectors) {
                    self.queue.push_front(chosen);
                    return Taken::NotAllowed(sectors);
                }
                self.chosen = Some(chosen);
                return Taken::Move;
            }
        }
        Taken::Nothing
    }

    /// Returns the number of sectors that all phases of the current move write together, backup copies and header
    /// included.
    pub fn written_sectors(&self) -> u64 {
        self.transfers.written_sectors()
    }

    /// Returns whether the current move has locked any of the tracks from `radial_start` to `radial_last`, both
    /// included, of `surface`. Returns `false` if there is no current move.
    pub fn locks(&self, surface: u8, radial_start: u32, radial_last: u32) -> bool {
        self.chosen.is_some()
            && self.transfers.locks.iter().any(|lock| {
                lock.surface == surface && lock.radial_start <= radial_last && radial_start <= lock.radial_last
            })
    }

    /// Appends the next phase of the current move to `plan`: its reads, writes, and the records and barriers of its
    /// backup. Returns the state of the move after that phase, which the caller has to record. There must be a current
    /// move.
    ///
    /// `due` is the event that made the phase necessary now, and `store` the part of the drive that the move relieves,
    /// if any.
    pub fn phase(&mut self, log: &mut BackupLog, due: Due, store: Option<Area>, plan: &mut Plan) -> Outcome {
        if self.stage == Stage::Idle {
            plan.open(GroupKind::Migration);
        } else {
            plan.next_phase(GroupKind::Migration);
        }
        plan.because(Reason { target: Area::new(AreaKind::Track, self.transfers.radial_track as usize), due, store });
        match self.stage {
            Stage::Idle => self.first_phase(log, plan),
            Stage::BackedUp => self.second_phase(plan),
            Stage::Displaced => self.third_phase(plan),
        }
    }

    /// Ends the current move, after its last phase was recorded: no move is in progress then. Does not free the backup
    /// region of the move.
    pub fn finish(&mut self) {
        self.chosen = None;
        self.stage = Stage::Idle;
    }

    fn first_phase(&mut self, log: &mut BackupLog, plan: &mut Plan) -> Outcome {
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
        self.transfers.of(Timing::ReadLate).for_each(|transfer| read(transfer, plan));
        self.write_normal(plan);
        if self.transfers.has(Timing::WrittenLate) {
            self.stage = Stage::Displaced;
            return Outcome::Displaced(self.late_backup);
        }
        Outcome::Done
    }

    fn third_phase(&mut self, plan: &mut Plan) -> Outcome {
        self.transfers.of(Timing::WrittenLate).for_each(|transfer| write(transfer, plan));
        plan.barrier();
        Outcome::Done
    }

    /// Plans the writes of all runs but late ones: first bottoms, then tops, track by track in the reverse order of
    /// reading, so that the head ends near where it began.
    fn write_normal(&self, plan: &mut Plan) {
        if let Some(header) = self.transfers.header {
            let (op, medium, kind) = (StepOp::Write, Medium::Disk, Kind::OutOfBand);
            plan.access(op, medium, kind, Cause::Migration, header.start, Lba(0), header.sectors);
        }
        let now = |transfer: &&Transfer| transfer.timing != Timing::WrittenLate;
        let list = &self.transfers.list;
        let mut bottoms: Vec<&Transfer> = list.iter().filter(now).filter(|transfer| transfer.to_bottom).collect();
        // Runs from many places that go to one track are written in one pass.
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
