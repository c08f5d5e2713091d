//! The [`Layer`] of every interlaced disk, on top of a [`Translation`]. It serves the host, counts the sectors written
//! to each track, and moves tracks in idle time. On a drive that is never idle, it makes a phase of a move between
//! requests from time to time.
//!
//! Invariants:
//! 1. A host write touches nothing that the current move uses; otherwise its plan completes the move first.
//! 2. Writes share an operation only if they lie on one track when the operation is planned, even if they did when they
//!    were accepted for joining.
//! 3. With one backup region, no host read-modify-write happens while a move has copies in it.

use std::cell::Cell;
use std::ops::Range;

use imbrex_disk::{Command, Lba, Operation, Sectors, SimDuration};

use super::account::Account;
use super::backup::BackupLog;
use super::heat::HeatLog;
use super::home::Home;
use super::host::Host;
use super::moves::{Moves, Outcome, Taken, Transfers};
use super::options::MoveOptions;
use super::run::{NO_HEAT, TrackRun};
use super::translation::Translation;
use crate::layer::{Background, Cache, Layer, MapMemory, Piece};
use crate::plan::note::{Note, ReplayError};
use crate::plan::reason::Due;
use crate::plan::{GroupKind, Plan, StepOp};
use crate::violation::Violation;

/// The run in which a write begins. It is kept from the search for waiting writes that can join, to spare planning a
/// second look-up.
#[derive(Clone, Copy)]
struct Found {
    lba: Lba,
    run: TrackRun,
}

/// The layer of an interlaced disk. A [`Translation`] places the data and chooses the data to move; this type serves
/// the host, counts the sectors written to each track, and makes the moves in the background.
pub struct Interlaced<T: Translation> {
    host: Host,
    map: T,
    heat: HeatLog,
    moves: Moves<T::Move>,
    options: MoveOptions,
    /// Whether moves of an earlier interval are pending, which are then made between requests.
    overdue: bool,
    requests_since_phase: u32,
    selected: Vec<T::Move>,
    found: Cell<Option<Found>>,
    account: Account,
    /// Number of sectors that the next move writes, if the account did not allow it; otherwise 0.
    awaited_sectors: u64,
    /// Number of sectors that the phases of the current move have written so far.
    written_sectors: u64,
}

impl<T: Translation> Interlaced<T> {
    /// Returns a layer that places data by `map`. `host` serves the host, and has the homes of all sectors and the
    /// backup log; `options` control the background moves.
    pub fn new(host: Host, map: T, options: MoveOptions) -> Interlaced<T> {
        Interlaced {
            host,
            map,
            heat: HeatLog::new(options.interval),
            moves: Moves::default(),
            options,
            overdue: false,
            requests_since_phase: 0,
            selected: Vec::new(),
            found: Cell::new(None),
            account: Account::default(),
            awaited_sectors: 0,
            written_sectors: 0,
        }
    }

    /// Returns the part of the layer that places the data.
    pub fn map(&self) -> &T {
        &self.map
    }

    /// Returns the part of the layer that serves the host's commands.
    pub fn host(&self) -> &Host {
        &self.host
    }

    fn home(&self) -> &Home {
        &self.host.home
    }

    #[inline]
    fn write(&mut self, command: &Command, plan: &mut Plan) {
        let first = self.find(command.lba);
        if !self.map.moves() {
            return self.host.write(&self.map, command, first, plan, |_, _| {});
        }
        self.watch(command, first);
        let (heat, counts_writes) = (&mut self.heat, self.options.counts_writes);
        let count = |key, sectors| {
            if key != NO_HEAT {
                heat.count(key, if counts_writes { 1 } else { sectors });
            }
        };
        self.host.write(&self.map, command, first, plan, count);
        if self.heat.end_write() {
            self.end_interval();
        }
    }

    fn write_joined(&mut self, commands: &[Command], plan: &mut Plan) {
        self.host.write_joined(&self.map, commands, plan);
        if !self.map.moves() {
            return;
        }
        let mut over = false;
        for command in commands {
            let run = self.map.run_of(self.home(), command.lba);
            self.watch(command, run);
            let run = run.part(command.lba, command.end());
            let key = self.map.heat(&run);
            if key != NO_HEAT {
                self.heat.count(key, if self.options.counts_writes { 1 } else { run.sectors });
            }
            over |= self.heat.end_write();
        }
        if over {
            self.end_interval();
        }
    }

    /// Counts a write in the account of moves. `run` is the run in which the write begins.
    #[inline]
    fn watch(&mut self, command: &Command, mut run: TrackRun) {
        if self.options.watch == 0 {
            return;
        }
        let mut lba = command.lba;
        loop {
            let part = run.part(lba, command.end());
            let home = self.home().locate(self.home().pba(lba));
            self.account.host(part.sectors.into(), !Home::is_top(home.radial_track), !part.harmless);
            lba = part.end();
            if lba >= command.end() {
                break;
            }
            run = self.map.run_of(self.home(), lba);
        }
    }

    /// Returns whether the account may let a move begin. The first move that it did not allow waits for its credit.
    fn may_move(&self) -> bool {
        self.account.allows(self.awaited_sectors, self.options.watch)
    }

    /// Ends an interval of counting and chooses the next moves. Moves of the last interval that have not begun are
    /// dropped, since the new counts are better.
    #[cold]
    fn end_interval(&mut self) {
        self.heat.sort();
        self.selected.clear();
        self.map.select(&self.host.home, &self.heat, &mut self.selected);
        self.heat.restart(self.options.decays);
        self.overdue = !self.moves.is_empty();
        self.moves.replace(&self.selected);
        self.awaited_sectors = 0;
    }

    /// Plans a phase of a move, which the event `due` made necessary now, and returns whether there was one.
    fn phase(&mut self, due: Due, plan: &mut Plan) -> bool {
        if self.moves.current().is_none() && !self.may_move() {
            self.overdue = false;
            return false;
        }
        let steps_before = plan.steps.len();
        let is_made = self.make_phase(due, plan);
        let written = plan.steps[steps_before..].iter().filter(|step| step.op == StepOp::Write);
        let sectors = written.map(|step| u64::from(step.sectors)).sum();
        self.account.moved(sectors);
        self.written_sectors += sectors;
        let has_ended = is_made && self.moves.current().is_none();
        debug_assert!(!has_ended || self.written_sectors == self.moves.written_sectors(), "a move writes what it said");
        is_made
    }

    fn make_phase(&mut self, due: Due, plan: &mut Plan) -> bool {
        self.found.set(None);
        let (map, home) = (&self.map, &self.host.home);
        let is_begun = self.moves.current().is_some();
        let saved_sectors_max = self.host.log.region_sectors();
        if !is_begun {
            let allows = |sectors| self.account.allows(sectors, self.options.watch);
            let prepare = |chosen, transfers: &mut Transfers| map.prepare(home, chosen, transfers);
            let taken = self.moves.take_next(saved_sectors_max, allows, prepare);
            self.awaited_sectors = if let Taken::NotAllowed(sectors) = taken { sectors } else { 0 };
            self.written_sectors = 0;
            if taken != Taken::Move {
                self.overdue = false;
                return false;
            }
        }
        let chosen = self.moves.current().expect("taken above");
        match self.moves.phase(&mut self.host.log, due, None, plan) {
            Outcome::Underway => {}
            Outcome::Displaced(backup) => {
                self.map.displace(&self.host.home, chosen, backup, plan);
                plan.barrier();
            }
            Outcome::Done => {
                self.map.commit(&self.host.home, chosen, plan);
                plan.barrier();
                self.host.log.end_move();
                self.moves.finish();
            }
        }
        true
    }

    fn complete_move(&mut self, plan: &mut Plan) {
        while self.moves.current().is_some() {
            self.phase(Due::InTheWay, plan);
        }
    }

    /// Returns whether `command` would touch tracks that the current move has read or backed up.
    #[cold]
    fn disturbs_move(&self, command: &Command) -> bool {
        if !matches!(command.operation, Operation::Write | Operation::Trim) {
            return false;
        }
        let mut lba = command.lba;
        while lba < command.end() {
            let run = self.map.run_of(self.home(), lba);
            let is_bottom = !run.harmless;
            let reach = u32::from(is_bottom);
            let (first, last) = (run.radial_track.saturating_sub(reach), run.radial_track + reach);
            if self.moves.locks(run.surface, first, last) || (is_bottom && self.host.log.regions() == 1) {
                return true;
            }
            lba = run.end();
        }
        false
    }

    /// Returns whether joined writes still lie on one track: completing the move that they disturbed may have separated
    /// them.
    fn still_join(&self, joined: &[Command]) -> bool {
        let run = self.find(joined[0].lba);
        joined.iter().all(|command| run.lba <= command.lba && command.end() <= run.end())
    }

    /// Returns the run that contains `lba` by the present map.
    #[inline]
    fn find(&self, lba: Lba) -> TrackRun {
        match self.found.get() {
            Some(found) if found.lba == lba => found.run,
            _ => {
                let run = self.map.run_of(self.home(), lba);
                self.found.set(Some(Found { lba, run }));
                run
            }
        }
    }
}

impl<T: Translation> Layer for Interlaced<T> {
    fn name(&self) -> &'static str {
        self.map.name()
    }

    fn capacity(&self) -> Sectors {
        self.home().capacity()
    }

    fn is_power_safe(&self) -> bool {
        self.map.is_power_safe()
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        if self.moves.current().is_some() && commands.iter().any(|command| self.disturbs_move(command)) {
            self.complete_move(plan);
        }
        plan.open(GroupKind::Host);
        match commands {
            [command] => match command.operation {
                Operation::Read => self.host.read(&self.map, command, plan),
                Operation::Write => self.write(command, plan),
                Operation::Trim => self.host.trim(&self.map, command, plan),
                Operation::Flush => plan.barrier(),
            },
            joined if self.still_join(joined) => self.write_joined(joined, plan),
            parted => parted.iter().for_each(|command| self.write(command, plan)),
        }
        if self.overdue {
            self.requests_since_phase += commands.len() as u32;
            if self.requests_since_phase >= self.options.background_every {
                self.requests_since_phase = 0;
                self.phase(Due::NeverIdle, plan);
            }
        }
        self.found.set(None);
    }

    #[inline]
    fn joins(&self, chosen: &[Command], candidate: &Command) -> bool {
        let joinable = self.joinable(&chosen[0]);
        candidate.operation == Operation::Write && joinable.start <= candidate.lba && candidate.end() <= joinable.end
    }

    /// Returns the LBAs of the run in which a write lies: other waiting writes within the run can be served with the
    /// write.
    #[inline]
    fn joinable(&self, first: &Command) -> Range<Lba> {
        if first.operation != Operation::Write || !self.map.joins_writes() {
            return Lba(0)..Lba(0);
        }
        let run = self.find(first.lba);
        if first.end() > run.end() {
            return Lba(0)..Lba(0);
        }
        run.lba..run.end()
    }

    fn moves_pseudo_tracks(&self) -> bool {
        self.map.moves_pseudo_tracks()
    }

    fn background(&self) -> Option<Background> {
        let idle_after = SimDuration(self.options.idle_after_ns);
        self.map.moves().then_some(Background { idle_after, rest: SimDuration::ZERO })
    }

    fn idle(&mut self, plan: &mut Plan) -> bool {
        self.phase(Due::Idle, plan)
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        self.host.lookup(&self.map, lba, sectors, pieces);
    }

    fn keeps_trims(&self) -> bool {
        self.host.keeps_trims()
    }

    fn self_check(&self) -> Result<(), Violation> {
        if !self.host.is_sound() {
            let detail = "runs of live sectors overlap or touch".into();
            return Err(Violation { layer: self.name(), invariant: 1, detail });
        }
        self.map.self_check(self.home())
    }

    fn memory(&self) -> MapMemory {
        MapMemory {
            formula_bytes: self.map.formula_bytes(self.home().tracks()),
            measured_bytes: self.map.measured_bytes() + self.host.measured_bytes() + self.heat.measured_bytes(),
        }
    }

    fn caches(&self, each: &mut dyn FnMut(Cache)) {
        self.map.caches(self.home(), each);
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        self.map.checkpoint(notes);
        self.host.checkpoint(notes);
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        self.found.set(None);
        if BackupLog::takes(note) {
            return self.host.replay(note);
        }
        if self.map.replay(&self.host.home, note)? {
            self.host.log.end_move();
        }
        Ok(())
    }

    fn repair(&mut self, plan: &mut Plan) {
        if self.map.finish_displaced(&self.host.home, plan) {
            self.host.log.end_move();
        }
        self.host.repair(&self.map, plan);
    }
}
