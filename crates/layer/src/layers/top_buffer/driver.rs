//! The layer interface over a [`BufferMap`]: appends the host's writes to bottoms to a ring, and writes them home in
//! idle time.
//!
//! ```text
//!   write to a top ───────────────────────────────► in place (tops=on: as to a bottom)
//!   write to a bottom ─┬─ the ring has room ──────► header and data at its head · barrier · notes · barrier
//!                      └ no room ─┬ full=clean ───► the bottom of the oldest run is written home first, and again
//!                                 └ full=through ─► in place: over what is buffered of it, the rest as `imr-rmw` does
//! ```
//!
//! Invariants:
//! 1. No data in use are overwritten by an append. An old copy is not overwritten or destroyed before the record of its
//!    new copy is durable: an append ends with a barrier.
//! 2. The backup record of a host read-modify-write names no run that has moved since. It is cleared before a run that
//!    it names is written again or written home.
//! 3. A host write touches no sectors that the current move uses: it completes the move first.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

use imbrex_disk::{Command, Extent, Lba, Operation, Sectors, SimDuration};

use super::map::{BufferMap, Buffered, WriteHome};
use crate::layer::{Background, Cache, Layer, MapMemory, Piece, StoreExtent};
use crate::layers::interlaced::backup::BackupLog;
use crate::layers::interlaced::home::Home;
use crate::layers::interlaced::host::Host;
use crate::layers::interlaced::moves::{Moves, Outcome, Taken};
use crate::layers::interlaced::{TrackRun, Translation};
use crate::plan::note::{Note, ReplayError};
use crate::plan::reason::{Area, AreaKind, Due};
use crate::plan::{Cause, GroupKind, Kind, Medium, Plan, StepOp};
use crate::violation::Violation;

/// Sectors of the header of an append, which precede its data and hold its records.
const HEADER_SECTORS: u32 = 1;

/// Most writes that share an append: their records fit in a header of one sector.
const JOINED_MAX: usize = 32;

/// The options of a write buffer in reserved top tracks, from the layer's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferOptions {
    /// Percentage, from 0 to 100. Buffered data of a ring (circular buffer) are written home in idle time if more than
    /// this share of the ring's sectors is in use. They are too if the map of all rings holds more than this share of
    /// its maximum number of runs.
    pub clean_above_percent: u64,
    /// Whether a host write that finds its ring or the map full first writes the oldest buffered data of the ring home,
    /// until there is room. If not, or if the write is too large for the ring, it is made in place: on a bottom track
    /// by read-modify-write.
    pub cleans_when_full: bool,
    /// Time without host requests before buffered data are written home in the background, in nanoseconds. 0 means as
    /// soon as there is no request. If the profile of the drive sets a longer idle threshold, that one applies.
    pub idle_after_ns: u64,
}

/// Part of a host write that lies on one track.
#[derive(Clone, Copy, Debug)]
struct Part {
    lba: Lba,
    sectors: u32,
    ring: u32,
}

/// The layer of an interlaced disk that buffers writes to bottom tracks (and to top tracks, if it is set to) in
/// reserved top tracks, and later writes them to their home places. Writes for which the buffer has no room are made in
/// place.
pub struct WriteBuffer {
    host: Host,
    map: BufferMap,
    moves: Moves<WriteHome>,
    options: BufferOptions,
    /// Rings to be written home in idle time; some may no longer need it.
    due: BTreeSet<u32>,
    /// The ring that the current move relieves.
    relieved: u32,
    parts: Vec<Part>,
    /// Runs that hold the sectors of the current host read.
    found: Vec<TrackRun>,
    /// Cache of [`Layer::joins`]: the first LBA of the write that it was last called for, and the ring of that write.
    joinable: Cell<Option<(Lba, u32)>>,
}

impl WriteBuffer {
    /// Returns a layer that buffers writes as `map` describes; the buffer must be empty. `host` plans reads and writes
    /// in place, and has the homes of all sectors and the backup log.
    pub fn new(host: Host, map: BufferMap, options: BufferOptions) -> WriteBuffer {
        let (moves, due, joinable) = (Moves::default(), BTreeSet::new(), Cell::new(None));
        WriteBuffer { host, map, moves, options, due, relieved: 0, parts: Vec::new(), found: Vec::new(), joinable }
    }

    fn home(&self) -> &Home {
        &self.host.home
    }

    /// Returns the ring for data whose home is at `lba`, or `None` if such data are not buffered.
    fn ring_of(&self, lba: Lba) -> Option<u32> {
        let pba = self.home().pba(lba);
        let is_top = || Home::is_top(self.home().locate(pba).radial_track);
        (self.map.holds_tops || !is_top()).then(|| self.map.rings.ring_of(pba))
    }

    /// Returns whether `command` would touch sectors that the current move has read or will write. `sectors` is the
    /// total of all commands that are served together.
    #[cold]
    fn disturbs_move(&self, command: &Command, sectors: u64) -> bool {
        if command.operation != Operation::Write {
            return false;
        }
        let mut lba = command.lba;
        while lba < command.end() {
            let run = Home::track_run(&self.home().locate(self.home().pba(lba)), lba).part(lba, command.end());
            let reach = u32::from(!run.harmless);
            let (first, last) = (run.radial_track.saturating_sub(reach), run.radial_track + reach);
            if self.moves.locks(run.surface, first, last) {
                return true;
            }
            let is_buffered = self.map.holds_tops || !run.harmless;
            if is_buffered && (self.disturbs_ring(&run, sectors) || self.host.log.regions() == 1) {
                return true;
            }
            lba = run.end();
        }
        false
    }

    /// Returns whether the current move uses tracks that hold buffered parts of a run, or tracks to which `sectors`
    /// will be appended. The move has already backed up the tops that it destroys, so sectors appended there now would
    /// be lost.
    fn disturbs_ring(&self, at_home: &TrackRun, sectors: u64) -> bool {
        let is_locked = |run: TrackRun| self.moves.locks(run.surface, run.radial_track, run.radial_track);
        if self.map.within(at_home.lba.0, at_home.end().0).any(|run| is_locked(self.map.place(&run))) {
            return true;
        }
        let ring = self.map.rings.ring_of(at_home.pba);
        let mut position = self.map.rings.head(ring);
        let end = position + (sectors + HEADER_SECTORS as u64).min(self.map.rings.sectors(ring));
        while position < end {
            let run = self.map.rings.run(ring, position, 1, at_home.lba);
            if is_locked(run) {
                return true;
            }
            position += (run.track_sectors - run.sector) as u64;
        }
        false
    }

    /// Plans a phase of writing home, which the event `due` made necessary now. Returns whether there was one.
    fn phase(&mut self, due: Due, plan: &mut Plan) -> bool {
        if self.moves.current().is_none() && !self.begin_due() {
            return false;
        }
        let chosen = self.moves.current().expect("begun above");
        let outcome = self.moves.phase(&mut self.host.log, due, Some(Self::store_of(self.relieved)), plan);
        // Runs that are written home change their place, so no record of a host rewrite may name them any more
        // (invariant 2).
        for run in self.map.within(chosen.start, chosen.end) {
            self.host.log.before_writing(self.map.place(&run).extent(), plan);
        }
        if outcome == Outcome::Done {
            self.map.commit(&self.host.home, chosen, plan);
            plan.barrier();
            self.host.log.end_move();
            self.moves.finish();
        }
        true
    }

    /// Begins a move of the oldest run of the first ring that is due. Returns whether a move was begun.
    fn begin_due(&mut self) -> bool {
        while let Some(&ring) = self.due.first() {
            if self.is_due(ring) && self.begin_oldest(ring) {
                return true;
            }
            self.due.remove(&ring);
        }
        false
    }

    /// Begins a move that writes home the oldest run of a ring, together with others of the same track. Returns whether
    /// a move was begun.
    fn begin_oldest(&mut self, ring: u32) -> bool {
        let Some(oldest) = self.map.oldest(ring) else { return false };
        let Some(chosen) = self.map.write_home_with(self.home(), &oldest) else { return false };
        self.relieved = ring;
        self.moves.replace(&[chosen]);
        let (map, home, saved_max) = (&self.map, &self.host.home, self.host.log.region_sectors());
        self.moves.take_next(saved_max, |_| true, |chosen, transfers| map.prepare(home, chosen, transfers))
            == Taken::Move
    }

    fn complete_move(&mut self, due: Due, plan: &mut Plan) {
        while self.moves.current().is_some() {
            self.phase(due, plan);
        }
    }

    fn store_of(ring: u32) -> Area {
        Area::new(AreaKind::Ring, ring as usize)
    }

    fn is_due(&self, ring: u32) -> bool {
        let percent = self.options.clean_above_percent;
        let is_full = self.map.used(ring) * 100 > self.map.rings.sectors(ring) * percent;
        self.map.used(ring) > 0 && (is_full || self.map.is_fuller_than(percent))
    }

    /// Collects in `parts` the parts of writes that are to be buffered, and plans the others in place.
    fn write_tops(&mut self, commands: &[Command], plan: &mut Plan) {
        self.parts.clear();
        for command in commands {
            let mut lba = command.lba;
            while lba < command.end() {
                let pba = self.host.home.pba(lba);
                let run = Home::track_run(&self.host.home.locate(pba), lba).part(lba, command.end());
                if run.harmless && !self.map.holds_tops {
                    self.host.log.before_writing(run.extent(), plan);
                    plan.write(Cause::Host, run.pba, lba, Sectors(run.sectors as u64));
                } else {
                    self.parts.push(Part { lba, sectors: run.sectors, ring: self.map.rings.ring_of(pba) });
                }
                lba = run.end();
            }
        }
    }

    /// Returns whether a ring has room for `sectors` more, in `runs` runs.
    fn has_room(&self, ring: u32, sectors: u64, runs: u64) -> bool {
        let needed = self.map.used(ring) + sectors + HEADER_SECTORS as u64;
        // Each run may become two pieces, and may cut an older one in two.
        needed <= self.map.rings.sectors(ring) && 3 * runs < self.map.runs_left()
    }

    fn sectors_and_runs(parts: &[Part]) -> (u64, u64) {
        (parts.iter().map(|part| part.sectors as u64).sum(), parts.len() as u64)
    }

    /// Makes room for the writes among `commands`, as far as possible.
    fn make_room(&mut self, commands: &[Command], plan: &mut Plan) {
        let mut wanted: Vec<(u32, u64, u64)> = Vec::new();
        for command in commands.iter().filter(|command| command.operation == Operation::Write) {
            let mut lba = command.lba;
            while lba < command.end() {
                let run = Home::track_run(&self.home().locate(self.home().pba(lba)), lba).part(lba, command.end());
                if let Some(ring) = self.ring_of(lba) {
                    match wanted.last_mut() {
                        Some(last) if last.0 == ring => (last.1, last.2) = (last.1 + run.sectors as u64, last.2 + 1),
                        _ => wanted.push((ring, run.sectors as u64, 1)),
                    }
                }
                lba = run.end();
            }
        }
        for (ring, sectors, runs) in wanted {
            while sectors < self.map.rings.sectors(ring) && !self.has_room(ring, sectors, runs) {
                self.complete_move(Due::Full, plan);
                if !self.has_room(ring, sectors, runs) && !self.begin_oldest(ring) {
                    break;
                }
                self.complete_move(Due::Full, plan);
            }
        }
    }

    /// Plans the collected parts: consecutive parts of one ring are appended together, or written in place if the ring
    /// has no room.
    fn write_bottoms(&mut self, plan: &mut Plan) {
        let parts = std::mem::take(&mut self.parts);
        for parts in parts.chunk_by(|a, b| a.ring == b.ring) {
            let (sectors, runs) = WriteBuffer::sectors_and_runs(parts);
            if self.has_room(parts[0].ring, sectors, runs) {
                self.append(parts, plan);
            } else {
                for part in parts {
                    let command = Command::write(part.lba.0, part.sectors);
                    let first = self.map.run_of(&self.host.home, command.lba);
                    self.host.write(&self.map, &command, first, plan, |_, _| {});
                }
            }
        }
        self.parts = parts;
    }

    fn append(&mut self, parts: &[Part], plan: &mut Plan) {
        let ring = parts[0].ring;
        for part in parts {
            // After a power cut, a backup record of the old places would restore the old data there (invariant 2).
            let at_home = self.host.home.pba(part.lba);
            self.host.log.before_writing(Extent::new(at_home, Sectors(part.sectors as u64)), plan);
            for run in self.map.within(part.lba.0, part.lba.0 + part.sectors as u64) {
                self.host.log.before_writing(self.map.place(&run).extent(), plan);
            }
        }
        let mut position = self.map.rings.head(ring);
        let header = self.map.rings.slice(ring, position, HEADER_SECTORS);
        let header_run = self.map.rings.run(ring, position, header.sectors, Lba(0));
        self.host.log.before_writing(header_run.extent(), plan);
        let (op, medium, kind) = (StepOp::Write, Medium::Disk, Kind::OutOfBand);
        plan.access(op, medium, kind, Cause::Host, header.pba, Lba(0), Sectors(header.sectors as u64));
        position += header.sectors as u64;
        let first = position;
        self.place(
            parts,
            ring,
            first,
            |run, map, host, plan| {
                let place = map.place(run);
                host.log.before_writing(place.extent(), plan);
                plan.write(Cause::Host, place.pba, place.lba, Sectors(run.sectors as u64));
            },
            plan,
        );
        plan.barrier();
        self.place(
            parts,
            ring,
            first,
            |run, map, _, plan| {
                map.insert(*run);
                plan.note(map.buffered_note(run));
            },
            plan,
        );
        // From here on the old copies may be overwritten, or destroyed by writes to neighbouring tracks (invariant 1).
        plan.barrier();
        if self.is_due(ring) {
            self.due.insert(ring);
        }
    }

    /// Calls `act` with each run that the parts form in the ring from `position` on.
    fn place(
        &mut self,
        parts: &[Part],
        ring: u32,
        mut position: u64,
        act: impl Fn(&Buffered, &mut BufferMap, &mut Host, &mut Plan),
        plan: &mut Plan,
    ) {
        for part in parts {
            let (mut lba, end) = (part.lba.0, part.lba.0 + part.sectors as u64);
            while lba < end {
                let slice = self.map.rings.slice(ring, position, (end - lba) as u32);
                let run = Buffered { lba, sectors: slice.sectors, ring, position };
                act(&run, &mut self.map, &mut self.host, plan);
                position += slice.sectors as u64;
                lba += slice.sectors as u64;
            }
        }
    }
}

impl Layer for WriteBuffer {
    fn name(&self) -> &'static str {
        self.map.name()
    }

    fn capacity(&self) -> Sectors {
        self.home().capacity()
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        self.joinable.set(None);
        if self.moves.current().is_some() {
            let sectors = commands.iter().map(|command| command.sectors as u64).sum();
            if commands.iter().any(|command| self.disturbs_move(command, sectors)) {
                self.complete_move(Due::InTheWay, plan);
            }
        }
        let is_write = commands[0].operation == Operation::Write;
        if is_write && self.options.cleans_when_full {
            self.make_room(commands, plan);
        }
        plan.open(GroupKind::Host);
        match commands[0].operation {
            Operation::Read => self.read(&commands[0], plan),
            Operation::Write => {
                self.write_tops(commands, plan);
                self.write_bottoms(plan);
            }
            Operation::Trim => self.host.trim(&self.map, &commands[0], plan),
            Operation::Flush => plan.barrier(),
        }
    }

    /// Returns whether `candidate` and the chosen writes go to the same ring. Writes to tops can join only if tops are
    /// buffered.
    fn joins(&self, chosen: &[Command], candidate: &Command) -> bool {
        let first = &chosen[0];
        if candidate.operation != Operation::Write || first.operation != Operation::Write || chosen.len() >= JOINED_MAX
        {
            return false;
        }
        let ring = match self.joinable.get() {
            Some((lba, ring)) if lba == first.lba => Some(ring),
            _ => self.ring_of_all(first),
        };
        let Some(ring) = ring else { return false };
        self.joinable.set(Some((first.lba, ring)));
        self.ring_of_all(candidate) == Some(ring) && !chosen.iter().any(|earlier| earlier.overlaps(candidate))
    }

    fn joinable(&self, first: &Command) -> Range<Lba> {
        match first.operation {
            Operation::Write => Lba(0)..Lba(u64::MAX),
            _ => Lba(0)..Lba(0),
        }
    }

    fn background(&self) -> Option<Background> {
        Some(Background { idle_after: SimDuration(self.options.idle_after_ns), rest: SimDuration::ZERO })
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
        match self.map.broken_invariant(self.home()) {
            None => Ok(()),
            Some((invariant, detail)) => Err(Violation { layer: self.name(), invariant, detail }),
        }
    }

    fn memory(&self) -> MapMemory {
        MapMemory {
            formula_bytes: self.map.formula_bytes(self.home().tracks()),
            measured_bytes: self.map.measured_bytes() + self.host.measured_bytes(),
        }
    }

    fn stores(&self, each: &mut dyn FnMut(StoreExtent)) {
        for ring in 0..self.map.rings.count() {
            self.map.rings.caches(ring, 0, &mut |Cache { medium, start, end, .. }| {
                each(StoreExtent { area: Self::store_of(ring), medium, start, end });
            });
        }
    }

    fn caches(&self, each: &mut dyn FnMut(Cache)) {
        for ring in 0..self.map.rings.count() {
            self.map.rings.caches(ring, self.map.used(ring), each);
        }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        self.map.checkpoint(notes);
        self.host.checkpoint(notes);
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        if BackupLog::takes(note) {
            return self.host.replay(note);
        }
        if self.map.replay(&self.host.home, note)? {
            self.host.log.end_move();
        }
        Ok(())
    }

    fn repair(&mut self, plan: &mut Plan) {
        self.host.repair(&self.map, plan);
        for ring in 0..self.map.rings.count() {
            if self.is_due(ring) {
                self.due.insert(ring);
            }
        }
    }
}

impl WriteBuffer {
    /// Reads the sectors of a command, at home or buffered, in the order of their PBAs: the head moves to the log only
    /// once.
    fn read(&mut self, command: &Command, plan: &mut Plan) {
        self.found.clear();
        let mut lba = command.lba;
        while lba < command.end() {
            let run = self.map.run_of(&self.host.home, lba).part(lba, command.end());
            lba = run.end();
            self.found.push(run);
        }
        self.found.sort_unstable_by_key(|run| run.pba);
        for run in &self.found {
            plan.read(Cause::Host, run.pba, run.lba, Sectors(run.sectors as u64));
        }
    }

    /// Returns the ring of a write if its first and last sector are buffered in the same ring, and if the write is
    /// shorter than the ring.
    fn ring_of_all(&self, command: &Command) -> Option<u32> {
        let last = self.ring_of(Lba(command.end().0 - 1))?;
        let is_short = (command.sectors as u64) < self.map.rings.sectors(last);
        (is_short && self.ring_of(command.lba) == Some(last)).then_some(last)
    }
}
