//! The engine: brings requests to one drive and keeps the clock.
//!
//! One actuator serves one operation at a time, so the loop steps from one end of service to the next:
//!
//! ```text
//!          ┌──────────────► admit what may enter by now ◄───────────────┐
//!          │                        │                                   │
//!          │            anything to do? ── no ──► next entry: idle work until then (or the end)
//!          │                        │ yes
//!          └── serve a batch, destage, or absorb into the cache: now = its end
//! ```
//!
//! [`Engine::run`] goes to the end of a workload; [`Engine::step`] does one thing at a time and never begins one after a
//! given time, for whoever serves live requests. The engine holds no bytes: an observer that does is told by [`Moved`]
//! what moves where.
//!
//! Invariants:
//! 1. Requests read = completed + rejected.
//! 2. The clock never goes back; ties are broken by order of entry.
//! 3. The steady state allocates nothing.

use std::ops::Range;

use imbrex_disk::{Command, Lba, Operation, Sectors, SimDuration, SimTime};
use imbrex_layer::verify::Checker;
use imbrex_layer::{Piece, Plan};
use imbrex_trace::{Request, Source, TraceError, When};

use crate::arrival::{Arrival, ArrivalClock, Entry};
use crate::drive::Drive;
use crate::metrics::run::{HeadSample, RunMetrics};
use crate::observer::{IoRecord, Moved, Observer};
use crate::queue::{Queue, Waiting};
use crate::read_ahead::ReadAhead;
use crate::results::Integrity;
use crate::schedule::Schedule;
use crate::timing::{PlanTime, Timing};
use crate::write_cache::{Gap, WriteCache};

/// Requests between two calls of [`Observer::progress`].
const PROGRESS_EVERY: u64 = 8192;

/// What to do with a request that reaches past the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Reject and count it.
    Reject,
    /// Take addresses modulo the capacity.
    Wrap,
    /// Scale addresses by capacity / extent of the workload (given in sectors of 512 bytes).
    Scale(u64),
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How requests arrive.
    pub arrival: Arrival,
    /// Which is served next.
    pub schedule: Schedule,
    /// Volatile write cache.
    pub write_cache_bytes: u64,
    /// Read look-ahead.
    pub read_ahead_bytes: u64,
    /// What to do with what does not fit.
    pub fit: Fit,
    /// Requests served before measuring begins.
    pub warmup_requests: u64,
    /// Width of a window.
    pub window: SimDuration,
    /// Whether the integrity map is on.
    pub check: bool,
}

/// What [`Engine::step`] came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stepped {
    /// It did something; there may be more.
    Worked,
    /// The next thing to do begins at this time, which lies past the limit.
    NotBefore(SimTime),
    /// There is nothing to do until a request comes.
    Idle,
}

/// How long no request comes before an idle drive begins to write back: a stream is given the time to go on. Ours.
const DESTAGE_AFTER: SimDuration = SimDuration(1_000_000);

impl Options {
    /// For requests brought as they come: served as the drive's host side says, unmeasured in the main.
    pub fn live(drive: &Drive) -> Options {
        let host = &drive.host;
        Options {
            arrival: Arrival::Open,
            schedule: Schedule::named(&host.schedule, SimDuration(host.age_limit_ns))
                .expect("a profile names a schedule that there is"),
            write_cache_bytes: host.write_cache_bytes,
            read_ahead_bytes: host.read_ahead_bytes,
            fit: Fit::Reject,
            warmup_requests: 0,
            window: SimDuration::from_secs(1),
            check: false,
        }
    }
}

/// What a run leaves behind.
#[derive(Debug)]
pub struct Outcome {
    /// What the host saw.
    pub metrics: RunMetrics,
    /// What the medium did and what cleaning did.
    pub timing: Timing,
    /// What the integrity map found.
    pub integrity: Integrity,
    /// Requests read from the workload.
    pub requests: u64,
    /// Whether the observer ended the workload before its end.
    pub interrupted: bool,
    /// The drive as it is at the end.
    pub drive: Drive,
}

/// One drive at work on one workload.
pub struct Engine<S: Source, O: Observer> {
    drive: Drive,
    options: Options,
    source: S,
    observer: O,
    clock: ArrivalClock,
    queue: Queue,
    /// Commands in the queue that are not reads: with none, cached writes cannot overtake one.
    queued_changes: usize,
    cache: WriteCache,
    read_ahead: ReadAhead,
    timing: Timing,
    metrics: RunMetrics,
    checker: Option<Checker>,
    integrity: Integrity,
    now: SimTime,
    outstanding: usize,
    peeked: Option<Request>,
    source_ended: bool,
    interrupted: bool,
    requests: u64,
    sectors_per_unit: u64,
    cleaning: CleaningClock,
    /// When the next phase of background work may begin, once one has: between phases the drive waits no threshold.
    background_next: Option<SimTime>,
    plan: Plan,
    batch: Vec<Waiting>,
    commands: Vec<Command>,
    pieces: Vec<Piece>,
}

/// Cleaning time that has passed: a sum, and the stretch in hand.
#[derive(Clone, Copy, Default)]
struct CleaningClock {
    before: SimDuration,
    from: SimTime,
    length: SimDuration,
}

impl CleaningClock {
    fn at(&self, time: SimTime) -> SimDuration {
        self.before + time.since(self.from).min(self.length)
    }

    fn spend(&mut self, from: SimTime, length: SimDuration) {
        *self = CleaningClock { before: self.before + self.length, from, length };
    }
}

/// What the drive does next.
enum Job {
    /// Serve the command at this index of the queue (and those that join it).
    Serve(usize),
    /// Take the write at this index into the cache.
    Absorb(usize),
    /// Write dirty sectors back.
    Destage,
}

impl<S: Source, O: Observer> Engine<S, O> {
    /// An engine that will run `source` on `drive`.
    pub fn new(drive: Drive, options: Options, source: S, observer: O) -> Engine<S, O> {
        let sector_bytes = drive.disk.sector_bytes;
        let power_safe = !drive.parameters.iter().any(|(key, value)| key == "safety" && value == "paper");
        let checker = options.check.then(|| Checker::new(&drive.disk, drive.layer.as_ref(), power_safe));
        Engine {
            clock: ArrivalClock::new(options.arrival),
            queue: Queue::new(drive.host.queue as usize),
            queued_changes: 0,
            cache: WriteCache::new(Sectors(options.write_cache_bytes / sector_bytes as u64)),
            read_ahead: ReadAhead::new(Sectors(options.read_ahead_bytes / sector_bytes as u64)),
            timing: Timing::new(drive.disk.clone(), drive.layer.moves_pseudo_tracks()),
            metrics: RunMetrics::new(options.window, SimTime::ZERO, sector_bytes),
            integrity: if options.check { Integrity::ok() } else { Integrity::off() },
            checker,
            now: SimTime::ZERO,
            outstanding: 0,
            peeked: None,
            source_ended: false,
            interrupted: false,
            requests: 0,
            sectors_per_unit: sector_bytes as u64 / 512,
            cleaning: CleaningClock::default(),
            background_next: None,
            plan: Plan::new(),
            batch: Vec::new(),
            commands: Vec::new(),
            pieces: Vec::new(),
            drive,
            options,
            source,
            observer,
        }
    }

    /// Runs to the end of the workload.
    pub fn run(mut self) -> Result<Outcome, TraceError> {
        loop {
            self.admit(self.now)?;
            if let Some(job) = self.next_job() {
                self.perform(job)?;
                continue;
            }
            let entry = self.next_entry()?;
            match (self.destage_start().filter(|start| entry.is_none_or(|at| *start < at)), entry) {
                (Some(start), _) => self.destage_from(start)?,
                (None, Some(at)) => self.idle_until(at),
                (None, None) => break,
            }
        }
        let lost = self.requests - self.metrics.completed() - self.metrics.rejected.values().sum::<u64>();
        assert!(
            lost == 0 || self.options.warmup_requests > 0,
            "invariant 1: {lost} of {} requests lost",
            self.requests
        );
        Ok(Outcome {
            metrics: self.metrics,
            timing: self.timing,
            integrity: self.integrity,
            requests: self.requests,
            interrupted: self.interrupted,
            drive: self.drive,
        })
    }

    /// Does one thing, unless it would begin after `until`. A source that had ended is asked again, so that it may be an
    /// inbox.
    pub fn step(&mut self, until: SimTime) -> Result<Stepped, TraceError> {
        self.source_ended = false;
        self.admit(self.now)?;
        if let Some(job) = self.next_job() {
            if self.now > until {
                return Ok(Stepped::NotBefore(self.now));
            }
            self.perform(job)?;
            return Ok(Stepped::Worked);
        }
        let entry = self.next_entry()?;
        if let Some(start) = self.destage_start().filter(|start| entry.is_none_or(|at| *start < at)) {
            if start > until {
                return Ok(Stepped::NotBefore(start));
            }
            self.destage_from(start)?;
            return Ok(Stepped::Worked);
        }
        if let Some(background) = self.background_start().filter(|start| entry.is_none_or(|at| *start < at)) {
            if background > until {
                return Ok(Stepped::NotBefore(background));
            }
            if self.run_background(background) {
                return Ok(Stepped::Worked);
            }
        }
        match entry {
            Some(at) if at > until => Ok(Stepped::NotBefore(at)),
            Some(at) => {
                self.now = self.now.max(at);
                Ok(Stepped::Worked)
            }
            None => Ok(Stepped::Idle),
        }
    }

    /// The workload, for whoever puts requests into it.
    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// The observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The drive and the observer, for an observer that needs the layer between plans.
    pub fn drive_and_observer(&mut self) -> (&mut Drive, &mut O) {
        (&mut self.drive, &mut self.observer)
    }

    /// The clock.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// What the host has seen so far.
    pub fn metrics(&self) -> &RunMetrics {
        &self.metrics
    }

    /// What the medium has done so far.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The medium, to be set up.
    pub fn timing_mut(&mut self) -> &mut Timing {
        &mut self.timing
    }

    /// Gives the drive volatile caches of other sizes; nothing may be dirty.
    pub fn set_caches(&mut self, write_cache_bytes: u64, read_ahead_bytes: u64) {
        assert!(self.cache.used().is_zero(), "{} sectors are dirty in the cache to be replaced", self.cache.used().0);
        let sectors = |bytes: u64| Sectors(bytes / self.drive.disk.sector_bytes as u64);
        self.cache = WriteCache::new(sectors(write_cache_bytes));
        self.read_ahead = ReadAhead::new(sectors(read_ahead_bytes));
        (self.options.write_cache_bytes, self.options.read_ahead_bytes) = (write_cache_bytes, read_ahead_bytes);
    }

    /// Sectors dirty in the volatile cache.
    pub fn dirty(&self) -> Sectors {
        self.cache.used()
    }

    fn perform(&mut self, job: Job) -> Result<(), TraceError> {
        // Destaging goes on after the last request, so the idle time that counts begins anew.
        self.background_next = None;
        match job {
            Job::Serve(index) => self.serve(index),
            Job::Absorb(index) => {
                self.absorb(index);
                Ok(())
            }
            Job::Destage => self.destage(),
        }
    }

    /// The next request of the workload, not yet entered; read when first asked for.
    fn peek(&mut self) -> Result<Option<Request>, TraceError> {
        if self.peeked.is_none() && !self.source_ended {
            self.peeked = self.source.next(self.clock.place_free_since().max(self.now))?;
            self.source_ended = self.peeked.is_none();
            if self.peeked.is_some() {
                self.requests += 1;
                if self.requests.is_multiple_of(PROGRESS_EVERY) && !self.observer.progress(self.requests, self.now) {
                    // The request just read is the last.
                    self.source_ended = true;
                    self.interrupted = true;
                }
            }
        }
        Ok(self.peeked)
    }

    /// When the next request will enter, given that nothing is outstanding.
    fn next_entry(&mut self) -> Result<Option<SimTime>, TraceError> {
        let Some(request) = self.peek()? else { return Ok(None) };
        match self.clock.entry(request.when, self.outstanding == 0) {
            Entry::At(at) => Ok(Some(at)),
            Entry::AfterDrain => unreachable!("with nothing to do nothing is outstanding"),
        }
    }

    /// Lets in every request that may enter by `until`.
    fn admit(&mut self, until: SimTime) -> Result<(), TraceError> {
        let depth = self.options.arrival.depth();
        while self.outstanding < depth {
            let Some(request) = self.peek()? else { return Ok(()) };
            self.clock.free_a_place(self.outstanding);
            let Entry::At(at) = self.clock.entry(request.when, self.outstanding == 0) else { return Ok(()) };
            if at > until {
                return Ok(());
            }
            self.peeked = None;
            self.clock.entered(request.when, at);
            self.enter(&request, at);
        }
        Ok(())
    }

    fn enter(&mut self, request: &Request, at: SimTime) {
        self.background_next = None;
        let sequence = self.requests - 1;
        let command = match self.fitted(request.command) {
            Ok(command) => command,
            Err(reason) => return self.metrics.reject(reason),
        };
        self.metrics.issues.see(at.0);
        let cleaning_before = self.cleaning.at(at);
        let mut waiting =
            Waiting { command, arrival: arrival(request), entry: at, sequence, cleaning_before, target: None };
        if self.cache.is_on() && self.answer_from_cache(&waiting) {
            return;
        }
        if self.options.schedule.needs_targets() {
            waiting.target = self.target(&command);
        }
        self.queued_changes += usize::from(command.operation != Operation::Read);
        self.outstanding += 1;
        self.queue.push(waiting);
    }

    /// The command in the drive's sectors, within its capacity, or why not.
    fn fitted(&self, command: Command) -> Result<Command, &'static str> {
        if command.operation == Operation::Flush {
            return Ok(command);
        }
        if command.sectors == 0 {
            return Err("zero length");
        }
        let unit = self.sectors_per_unit;
        let (mut start, mut end) = (command.lba.0 / unit, command.end().0.div_ceil(unit));
        let capacity = self.drive.layer.capacity().0;
        let length = end - start;
        match self.options.fit {
            Fit::Reject => {}
            Fit::Wrap if end > capacity => start = (start % capacity).min(capacity.saturating_sub(length)),
            Fit::Scale(extent) if extent > capacity * unit => {
                let scaled = (start as u128 * (capacity * unit) as u128 / extent as u128) as u64;
                start = scaled.min(capacity.saturating_sub(length));
            }
            Fit::Wrap | Fit::Scale(_) => {}
        }
        end = start + length;
        if end > capacity {
            return Err("beyond the end of the drive");
        }
        Ok(Command { lba: Lba(start), sectors: length as u32, ..command })
    }

    /// Serves from the volatile cache what can be: a write that fits, a read of dirty sectors. Says whether it did.
    fn answer_from_cache(&mut self, waiting: &Waiting) -> bool {
        let command = &waiting.command;
        let overhead = match command.operation {
            Operation::Read if self.cache.holds(command) => {
                if self.observer.wants_moves() {
                    self.observer.moved(Moved::ReadFromCache { sequence: waiting.sequence, command });
                }
                SimDuration(self.drive.host.overhead_ns)
            }
            Operation::Write
                if !command.fua && self.cache.has_room(command, waiting.entry) && !self.overtakes(command) =>
            {
                self.cache.insert(command, waiting.sequence);
                self.tell_absorbed(waiting);
                SimDuration(self.drive.host.write_cache_acknowledge_ns)
            }
            _ => return false,
        };
        self.metrics.parts.overhead += overhead.0;
        let end = waiting.entry + overhead;
        self.clock.hold(end, self.outstanding);
        self.complete(waiting, waiting.entry, end, &PlanTime::default(), waiting.cleaning_before);
        true
    }

    fn tell_absorbed(&mut self, waiting: &Waiting) {
        if self.observer.wants_moves() {
            self.observer.moved(Moved::Absorbed { sequence: waiting.sequence, command: &waiting.command });
        }
    }

    /// Whether `command` would enter the cache before a change that overlaps it, or before a write that waits for room
    /// there: a stream would come to have holes, and could not be destaged whole.
    fn overtakes(&self, command: &Command) -> bool {
        let is_overtaken = |earlier: &Command| {
            earlier.operation != Operation::Read && (earlier.overlaps(command) || self.is_cacheable(earlier))
        };
        self.queued_changes > 0 && self.queue.iter().any(|earlier| is_overtaken(&earlier.command))
    }

    fn target(&mut self, command: &Command) -> Option<imbrex_disk::Place> {
        if command.sectors == 0 {
            return None;
        }
        self.pieces.clear();
        self.drive.layer.lookup(command.lba, Sectors(1), &mut self.pieces);
        let (medium, pba) = self.pieces.first()?.at?;
        (medium == imbrex_layer::Medium::Disk).then(|| self.drive.disk.geometry.locate(pba))
    }

    fn next_job(&mut self) -> Option<Job> {
        if self.queue.is_empty() {
            return self.cache.is_filling().then_some(Job::Destage);
        }
        let index = match self.queue.in_drive_len() {
            1 => 0,
            _ => self.options.schedule.choose(&self.queue, self.timing.actuator(), self.now),
        };
        let index = self.in_order_of_entry(index);
        let chosen = self.queue.get(index);
        let command = &chosen.command;
        match command.operation {
            Operation::Flush if self.cache.has_older_than(chosen.sequence) => Some(Job::Destage),
            _ if self.is_cacheable(command) => {
                Some(if self.cache.has_room(command, self.now) { Job::Absorb(index) } else { Job::Destage })
            }
            _ => Some(Job::Serve(index)),
        }
    }

    /// Whether `command` goes through the volatile cache.
    fn is_cacheable(&self, command: &Command) -> bool {
        command.operation == Operation::Write && !command.fua && self.cache.could_hold(command)
    }

    /// What to serve where the scheduler chose `index`: the head's place says nothing about writes that only wait to
    /// enter the cache, so the oldest of them comes first, and before it what it must not overtake.
    fn in_order_of_entry(&self, index: usize) -> usize {
        if !self.is_cacheable(&self.queue.get(index).command) {
            return index;
        }
        let oldest = self.queue.iter().take(index).position(|earlier| self.is_cacheable(&earlier.command));
        oldest.map_or(index, |oldest| self.queue.hazard(oldest))
    }

    fn take(&mut self, index: usize) -> Waiting {
        let waiting = self.queue.take(index);
        self.queued_changes -= usize::from(waiting.command.operation != Operation::Read);
        waiting
    }

    /// Serves the command at `index`, with those that the layer lets join.
    fn serve(&mut self, index: usize) -> Result<(), TraceError> {
        self.batch.clear();
        self.commands.clear();
        let chosen = self.take(index);
        self.commands.push(chosen.command);
        self.batch.push(chosen);
        let joinable = self.drive.layer.joinable(&self.commands[0]);
        if !joinable.is_empty() {
            self.gather(&joinable);
        }
        if self.cache.is_on() {
            for command in self.commands.iter().filter(|command| command.operation != Operation::Read) {
                self.cache.discard(command);
                if self.observer.wants_moves() {
                    self.observer.moved(Moved::Discarded { command });
                }
            }
        }
        let ready = self.batch.iter().map(|waiting| waiting.entry).max().expect("a batch is not empty")
            + SimDuration(self.drive.host.overhead_ns);
        let begin = self.now.max(self.batch[0].entry);
        let start = self.now.max(ready);
        self.metrics.parts.overhead += start.since(begin).0;
        self.make_plan();
        if self.observer.wants_moves() {
            self.observer.moved(Moved::Served { batch: &self.batch, plan: &self.plan });
        }
        // A read that the drive had already begun by itself is timed from then, and answered no sooner than now.
        let from = self.read_ahead.begun(&self.commands, &self.plan).map_or(start, |begun| begun.min(start));
        let time = self.carry_out_for_host(from);
        let end = (from + time.host).max(start);
        self.admit(end)?;
        self.complete_batch(begin, end, &time);
        self.now = (from + time.whole).max(end);
        Ok(())
    }

    /// Moves into the batch what waits in the sectors `joinable` and may be served in the same operation.
    fn gather(&mut self, joinable: &Range<Lba>) {
        // Counted once: a place that frees in the drive while the operation is put together comes too late for it.
        let (mut index, mut end) = (0, self.queue.in_drive_len().min(self.drive.host.queue as usize - 1));
        while let Some(found) = self.queue.first_within(index..end, joinable) {
            index = found;
            let candidate = self.queue.get(index).command;
            if self.drive.layer.joins(&self.commands, &candidate) && self.queue.hazard(index) == index {
                let waiting = self.take(index);
                self.commands.push(candidate);
                self.batch.push(waiting);
                end -= 1;
            } else {
                index += 1;
            }
        }
    }

    fn make_plan(&mut self) {
        self.plan.clear();
        self.drive.layer.plan(&self.commands, &mut self.plan);
    }

    /// Carries out the plan in hand from `start` on, and counts the parts of its service.
    fn carry_out_for_host(&mut self, start: SimTime) -> PlanTime {
        let time = self.carry_out(start);
        self.metrics.parts.seek += time.seek.0;
        self.metrics.parts.rotation += time.rotation.0;
        self.metrics.parts.transfer += time.transfer.0;
        time
    }

    /// Times and checks the plan in hand.
    fn carry_out(&mut self, start: SimTime) -> PlanTime {
        let time = self.timing.run(&self.plan, start);
        self.read_ahead.carried_out(&self.commands, &self.plan, start + time.whole);
        self.metrics.parts.cleaning += time.cleaning.0;
        self.cleaning.spend(start, time.cleaning);
        let radial_track = self.timing.actuator().radial_track();
        self.metrics.head.see(HeadSample { at_ns: (start + time.whole).0, radial_track });
        if let Some(checker) = &mut self.checker {
            if let Err(error) = checker.check(&self.plan, &self.commands, self.drive.layer.as_ref()) {
                self.integrity = Integrity::Violation { violation: error.to_string(), request: self.requests };
                self.checker = None;
            }
        }
        if self.observer.wants_plans() {
            self.observer.plan(start, &self.commands, &self.plan);
        }
        time
    }

    fn complete_batch(&mut self, start: SimTime, end: SimTime, time: &PlanTime) {
        let cleaning_so_far = self.cleaning.before + time.cleaning_before_host;
        let batch = std::mem::take(&mut self.batch);
        for waiting in &batch {
            self.complete(waiting, start.max(waiting.entry), end, time, cleaning_so_far);
        }
        self.leave(batch.len(), end);
        self.batch = batch;
    }

    /// `count` requests have left the queue at `end`.
    fn leave(&mut self, count: usize, end: SimTime) {
        if self.outstanding >= self.options.arrival.depth() {
            self.clock.place_freed(end);
        }
        self.outstanding -= count;
        if self.outstanding == 0 {
            self.clock.drained(end);
        }
    }

    fn complete(&mut self, waiting: &Waiting, start: SimTime, end: SimTime, time: &PlanTime, cleaning: SimDuration) {
        let command = &waiting.command;
        self.metrics.complete(command.operation, command.sectors, waiting.entry, start, end);
        self.timing.cleaning.stall(cleaning.saturating_sub(waiting.cleaning_before));
        if self.observer.wants_ios() {
            self.observer.io(&IoRecord {
                sequence: waiting.sequence,
                command: *command,
                arrival: waiting.arrival,
                entry: waiting.entry,
                start,
                end,
                time: *time,
                radial_track: self.timing.actuator().radial_track(),
            });
        }
        if waiting.sequence + 1 == self.options.warmup_requests {
            self.end_warmup(end);
        }
    }

    fn end_warmup(&mut self, at: SimTime) {
        self.metrics = RunMetrics::new(self.options.window, at, self.drive.disk.sector_bytes);
        self.timing.counters = Default::default();
        self.timing.cleaning = Default::default();
    }

    /// Takes the write at `index` into the cache: there is room now.
    fn absorb(&mut self, index: usize) {
        let waiting = self.take(index);
        self.cache.insert(&waiting.command, waiting.sequence);
        self.tell_absorbed(&waiting);
        let start = self.now.max(waiting.entry);
        let end = start.max(waiting.entry + SimDuration(self.drive.host.write_cache_acknowledge_ns));
        self.complete(&waiting, start, end, &PlanTime::default(), self.cleaning.at(end));
        self.leave(1, end);
    }

    /// Writes back the next dirty range, with those that the layer lets join.
    fn destage(&mut self) -> Result<(), TraceError> {
        let first = match self.options.schedule {
            Schedule::Fifo => self.cache.take_oldest(),
            Schedule::Elevator(_) | Schedule::Sptf(_) => self.cache.take_next(),
        };
        self.commands.clear();
        let (first, gap) = first.expect("destaging is a job only while something is dirty");
        self.commands.push(first);
        if !self.drive.layer.joinable(&first).is_empty() {
            self.gather_dirty(gap);
            self.put_back_rest();
        }
        let start = self.now;
        self.make_plan();
        if self.observer.wants_moves() {
            self.observer.moved(Moved::Destaged { commands: &self.commands, plan: &self.plan });
        }
        let time = self.carry_out_for_host(start);
        self.now = start + time.whole;
        let sectors = self.commands.iter().map(|command| command.sectors as u64).sum();
        self.cache.leave(Sectors(sectors), start, self.now);
        self.admit(self.now)
    }

    /// Moves into the batch the dirty neighbours that may be written in the same operation.
    fn gather_dirty(&mut self, mut gap: Gap) {
        let (layer, commands, cache) = (self.drive.layer.as_ref(), &mut self.commands, &mut self.cache);
        while let Some(next) = cache.take_after(&mut gap, |next| layer.joins(commands, next)) {
            commands.push(next);
        }
        while let Some(previous) = cache.take_before(&mut gap, |previous| layer.joins(commands, previous)) {
            commands.push(previous);
        }
    }

    /// Puts back into the cache the end of a stream that the layer would rather write with what may follow. It counts as
    /// old, so that a flush waits for it.
    fn put_back_rest(&mut self) {
        let first = self.commands.iter().map(|command| command.lba).min().expect("a destage has a command");
        let end = self.commands.iter().map(Command::end).max().expect("a destage has a command");
        let sectors: u64 = self.commands.iter().map(|command| command.sectors as u64).sum();
        if (end - first).0 != sectors {
            return;
        }
        let Some(cut) = self.drive.layer.stream_cut(first, end) else { return };
        assert!(first < cut && cut < end, "a stream from {first} to {end} is cut at {cut}");
        let cache = &mut self.cache;
        self.commands.retain_mut(|command| {
            if command.end() > cut {
                let kept = command.lba.max(cut);
                cache.insert(&Command::write(kept.0, (command.end() - kept).0 as u32), 0);
                command.sectors = (kept - command.lba).0 as u32;
            }
            command.sectors > 0
        });
    }

    /// Nothing to do until `at`: background work, once the layer's threshold has passed.
    fn idle_until(&mut self, at: SimTime) {
        while let Some(start) = self.background_start() {
            if start >= at || !self.run_background(start) {
                break;
            }
        }
        self.now = self.now.max(at);
    }

    /// When dirty sectors would be written back if no request came.
    fn destage_start(&self) -> Option<SimTime> {
        (!self.cache.is_empty()).then(|| self.now.max(self.clock.last_entry() + DESTAGE_AFTER))
    }

    fn destage_from(&mut self, start: SimTime) -> Result<(), TraceError> {
        self.now = start;
        self.perform(Job::Destage)
    }

    /// When the next phase of background work would begin if no request came.
    fn background_start(&self) -> Option<SimTime> {
        if !self.cache.is_empty() {
            return None;
        }
        let background = self.drive.layer.background()?;
        let threshold = background.idle_after.max(SimDuration(self.drive.host.idle_threshold_ns));
        Some(self.background_next.unwrap_or(self.now + threshold))
    }

    /// Does one phase of background work from `start` on; says whether there was any.
    fn run_background(&mut self, start: SimTime) -> bool {
        self.plan.clear();
        self.commands.clear();
        if !self.drive.layer.idle(&mut self.plan) {
            return false;
        }
        if self.observer.wants_moves() {
            self.observer.moved(Moved::Background { plan: &self.plan });
        }
        self.now = start + self.carry_out(start).whole;
        self.background_next = Some(self.now);
        true
    }
}

fn arrival(request: &Request) -> Option<SimTime> {
    match request.when {
        When::At(at) => Some(at),
        When::Free(_) | When::Drained(_) => None,
    }
}
