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
//! [`Engine::run`] runs to the end of a workload. [`Engine::step`] performs one action at a time, and none that would
//! begin after a given time; callers that serve live requests use it. The engine holds no bytes: its [`Carrier`] moves
//! them.
//!
//! Invariants:
//! 1. Requests read = completed + rejected.
//! 2. The clock never goes back; ties are broken by order of entry.
//! 3. The steady state allocates nothing.
//! 4. If the order of writes matters ([`Engine::keep_order`]), the writes of one run of sectors reach the medium in
//!    order of entry, whether through the queue, through the cache or past it.
//! 5. On a caveat disk a write takes effect when the drive accepts it: sectors that it destroys are lost then, in the
//!    cache too. Write-back destroys no sector that a later write gave contents.

mod cache;
mod entry;
mod idle;
mod options;
mod service;

use std::ops::Range;

use imbrex_disk::recording::distances::CaveatDistances;
use imbrex_disk::{Command, Lba, Operation, Sectors, SimDuration, SimTime};
use imbrex_layer::verify::{Checker, Rules};
use imbrex_layer::{Piece, Plan};
use imbrex_trace::{Request, Source, TraceError};

pub use self::options::{Fit, Options};
use crate::arrival::ArrivalClock;
use crate::carrier::{Carrier, Nothing, StepError};
use crate::controller::Controller;
use crate::drive::Drive;
use crate::inbox::Inbox;
use crate::metrics::run::RunMetrics;
use crate::observer::Observer;
use crate::operation::{Stretch, WriteBack};
use crate::queue::{Ordered, Queue, Slot, Waiting};
use crate::read_ahead::ReadAhead;
use crate::results::Integrity;
use crate::schedule::Schedule;
use crate::slow::Slow;
use crate::timing::Timing;
use crate::write_cache::WriteCache;

/// Result of a step of the engine: whether it performed an action, and if not, the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stepped {
    /// The engine performed one action, or moved its clock to the next entry; there may be more to do.
    Worked,
    /// The engine did nothing: its next action begins at this time, which lies after the limit given to
    /// [`Engine::step`].
    NotBefore(SimTime),
    /// The engine did nothing: there is nothing to do until a request arrives.
    Idle,
}

/// Result of a simulation that ran to the end of its workload.
#[derive(Debug)]
pub struct Outcome {
    /// Measurements at the host since the end of the warm-up, such as latencies and numbers of completed requests.
    pub metrics: RunMetrics,
    /// Counters of the layer's reads and writes on platters and flash, and statistics of cleaning, since the end of the
    /// warm-up.
    pub timing: Timing,
    /// Result of the check whether live data stayed intact; on a host-managed drive, the host's breaks of the drive's
    /// write rules if there were any.
    pub integrity: Integrity,
    /// Number of requests read from the workload: completed and rejected ones, those of the warm-up included.
    pub requests: u64,
    /// Whether the observer stopped the run before the end of the workload.
    pub interrupted: bool,
    /// The drive at the end of the run.
    pub drive: Drive,
}

/// A discrete-event simulation of one drive under one workload. An observer sees the requests and plans, and a carrier
/// moves the bytes, if there are any.
pub struct Engine<S: Source, O: Observer, C: Carrier = Nothing> {
    drive: Drive,
    /// DNOR and DID of a caveat disk.
    caveat: Option<CaveatDistances>,
    options: Options,
    source: S,
    observer: O,
    carrier: C,
    clock: ArrivalClock,
    queue: Queue,
    /// Number of commands in the queue that are not reads. If zero, no write can overtake one by entering the cache.
    queued_changes: usize,
    /// Number of commands in the queue that go through the volatile cache.
    queued_for_cache: usize,
    cache: WriteCache,
    read_ahead: ReadAhead,
    slow: Slow,
    /// Detailed controller, if the profile has one.
    controller: Option<Controller>,
    timing: Timing,
    metrics: RunMetrics,
    checker: Option<Checker>,
    /// The rules of a zoned drive, if no checker tests them.
    rules: Option<Rules>,
    integrity: Integrity,
    now: SimTime,
    outstanding: usize,
    peeked: Option<Request>,
    source_ended: bool,
    interrupted: bool,
    requests: u64,
    sectors_per_unit: u64,
    cleaning: CleaningClock,
    /// The idle time in which background work has run; `None` if none has run since the last command.
    idle: Option<idle::Idle>,
    plan: Plan,
    batch: Vec<Waiting>,
    /// Commands of the queue that may join the batch.
    joining: Vec<Slot>,
    commands: Vec<Command>,
    pieces: Vec<Piece>,
    /// Numbers of the oldest writes in the ranges that are being written back, and the stretches of the operation, if
    /// the observer wants operations.
    written_back: Vec<u64>,
    stretches: Vec<Stretch>,
}

/// Cleaning time so far: the time of finished stretches, and the current stretch.
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

/// Next action of the drive.
enum Job {
    /// Serves this command of the queue, and those that join it.
    Serve(Slot),
    /// Takes this write into the cache.
    Absorb(Slot),
    /// Writes dirty sectors back, for this reason.
    Destage(WriteBack),
    /// Writes the dirty sectors of this range back, because the next command must not overtake them.
    WriteBack(Range<Lba>),
}

impl<S: Source, O: Observer> Engine<S, O> {
    /// Creates an engine that will run the workload `source` on `drive`, and that simulates times only: no bytes are
    /// stored or moved.
    pub fn new(drive: Drive, options: Options, source: S, observer: O) -> Engine<S, O> {
        Engine::with_carrier(drive, options, source, observer, Nothing)
    }

    /// Executes the workload to its end, or until the observer stops it. Then writes all dirty sectors of the volatile
    /// cache back, and returns the outcome.
    ///
    /// # Errors
    ///
    /// Returns an error if the workload cannot be read.
    pub fn run(mut self) -> Result<Outcome, TraceError> {
        let layer = self.drive.layer.as_ref();
        self.rules = (self.checker.is_none() && layer.zones().is_some()).then(|| Rules::of(layer));
        Ok(self.run_to_end()?)
    }
}

/// Returns an empty queue for `drive`, with an index of places if the scheduler uses one.
fn queue_of(drive: &Drive, options: &Options) -> Queue {
    let mut queue = Queue::new(drive.host.queue as usize);
    if matches!(options.schedule, Schedule::Sptf(_)) {
        queue.keep_targets(&drive.disk);
    }
    if drive.caveat_distances().is_some() {
        queue.keep_order_in(Ordered { from: Lba(0), run: drive.layer.capacity() });
    }
    queue
}

fn cache_of(drive: &Drive, bytes: u64, ordered: Option<Ordered>) -> WriteCache {
    let mut cache = WriteCache::new(Sectors(bytes / u64::from(drive.disk.sector_bytes)));
    if let Some(ordered) = ordered {
        cache.keep_order_in(ordered);
    }
    if let Some(caveat) = drive.caveat_distances() {
        cache.spare_within(caveat);
    }
    cache
}

impl<O: Observer, C: Carrier> Engine<Inbox, O, C> {
    /// Adds a request to the end of the inbox. Returns the number that the engine and its carrier will use for the
    /// request: requests are numbered from 0 in order of submission.
    pub fn submit(&mut self, request: Request) -> u64 {
        let number = self.requests + self.source.len() as u64;
        self.source.push(request);
        number
    }
}

impl<S: Source, O: Observer, C: Carrier> Engine<S, O, C> {
    /// Creates an engine that will run the workload `source` on `drive`. The engine decides on times and places;
    /// `carrier` moves the bytes. Simulated time begins at 0.
    pub fn with_carrier(drive: Drive, options: Options, source: S, observer: O, carrier: C) -> Engine<S, O, C> {
        let sector_bytes = drive.disk.sector_bytes;
        let caveat = drive.caveat_distances();
        let is_power_safe = drive.layer.is_power_safe();
        let mut timing = Timing::new(drive.disk.clone(), drive.layer.moves_pseudo_tracks());
        if observer.wants_operations() {
            timing.keep_segments();
        }
        let checker = options.check.then(|| Checker::new(&drive.disk, drive.layer.as_ref(), is_power_safe));
        Engine {
            clock: ArrivalClock::new(options.arrival),
            queue: queue_of(&drive, &options),
            queued_changes: 0,
            queued_for_cache: 0,
            cache: cache_of(&drive, options.write_cache_bytes, None),
            read_ahead: ReadAhead::new(Sectors(options.read_ahead_bytes / sector_bytes as u64)),
            slow: Slow::default(),
            controller: drive.host.controller.as_ref().map(Controller::new),
            timing,
            metrics: RunMetrics::new(options.window, SimTime::ZERO, sector_bytes, options.arrival.depth() as u64),
            integrity: if options.check { Integrity::ok() } else { Integrity::off() },
            checker,
            rules: None,
            now: SimTime::ZERO,
            outstanding: 0,
            peeked: None,
            source_ended: false,
            interrupted: false,
            requests: 0,
            sectors_per_unit: sector_bytes as u64 / 512,
            cleaning: CleaningClock::default(),
            idle: None,
            plan: Plan::new(),
            batch: Vec::new(),
            joining: Vec::new(),
            commands: Vec::new(),
            pieces: Vec::new(),
            written_back: Vec::new(),
            stretches: Vec::new(),
            caveat,
            drive,
            options,
            source,
            observer,
            carrier,
        }
    }

    fn run_to_end(mut self) -> Result<Outcome, StepError<C::Error>> {
        loop {
            self.admit(self.now)?;
            if let Some(job) = self.next_job() {
                self.perform(job)?;
                continue;
            }
            let entry = self.next_entry()?;
            match (self.destage_start().filter(|start| entry.is_none_or(|at| *start < at)), entry) {
                (Some(start), _) => self.destage_from(start)?,
                (None, Some(at)) => self.idle_until(at)?,
                (None, None) => break,
            }
        }
        let lost = self.requests - self.metrics.completed() - self.metrics.rejected.values().sum::<u64>();
        assert!(
            lost == 0 || self.options.warmup_requests > 0,
            "invariant 1: {lost} of {} requests lost",
            self.requests
        );
        let breaks = self.checker.as_ref().and_then(Checker::rule_breaks);
        let breaks = breaks.or_else(|| self.rules.as_ref().and_then(Rules::breaks));
        Ok(Outcome {
            integrity: breaks.map_or(self.integrity, |breaks| Integrity::of_breaks(breaks, self.options.check)),
            metrics: self.metrics,
            timing: self.timing,
            requests: self.requests,
            interrupted: self.interrupted,
            drive: self.drive,
        })
    }

    /// Performs the next action, unless it would begin after `until`. An action is a service, a write into or out of
    /// the volatile cache, a phase of background work, or a move of the clock to the next entry of a request. Returns
    /// [`Stepped::Worked`] after an action, [`Stepped::NotBefore`] with the time of an action after `until`, and
    /// [`Stepped::Idle`] if there is nothing to do. A source that had ended is read again.
    ///
    /// # Errors
    ///
    /// Returns an error if the workload cannot be read, or the carrier fails in a write-back of the cache or in
    /// background work.
    pub fn step(&mut self, until: SimTime) -> Result<Stepped, StepError<C::Error>> {
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
            if self.run_background(background)? {
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

    /// Returns a mutable reference to the observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Returns the drive that the engine simulates.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Returns mutable references to the drive and the observer at once, for example to change the layer and report
    /// that between two steps.
    pub fn drive_and_observer(&mut self) -> (&mut Drive, &mut O) {
        (&mut self.drive, &mut self.observer)
    }

    /// Returns the carrier that moves the bytes.
    pub fn carrier(&self) -> &C {
        &self.carrier
    }

    /// Returns a mutable reference to the carrier that moves the bytes, for changes between two steps.
    pub fn carrier_mut(&mut self) -> &mut C {
        &mut self.carrier
    }

    /// Returns mutable references to the drive and the carrier that moves its bytes, for changes between two steps.
    pub fn drive_and_carrier(&mut self) -> (&mut Drive, &mut C) {
        (&mut self.drive, &mut self.carrier)
    }

    /// Ends the run at once, as a power cut would, and returns the carrier. Waiting requests and dirty sectors of the
    /// volatile cache are dropped.
    pub fn into_carrier(self) -> C {
        self.carrier
    }

    /// Keeps writes within one run of `ordered` in order from now on. A run is one of equal parts of the address space,
    /// such as a zone. The writes reach the medium in order of entry, through the queue, through the volatile cache or
    /// past it.
    pub fn keep_order(&mut self, ordered: Ordered) {
        self.queue.keep_order_in(ordered);
        self.cache.keep_order_in(ordered);
    }

    /// Returns the simulated time up to which the engine has worked; 0 is the start of the run.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Returns the measurements at the host so far, such as latencies, since the end of the warm-up.
    pub fn metrics(&self) -> &RunMetrics {
        &self.metrics
    }

    /// Returns the timing of plans on the platters and flash. It holds the head's position and the counters of reads,
    /// writes and cleaning since the end of the warm-up.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Returns a mutable reference to the timing of plans on the platters and flash, for example to record the path of
    /// the head.
    pub fn timing_mut(&mut self) -> &mut Timing {
        &mut self.timing
    }

    /// Returns a mutable reference to the drive's slow sectors: ranges of LBAs in which every read and write takes
    /// additional time. A new drive has none.
    pub fn slow_mut(&mut self) -> &mut Slow {
        &mut self.slow
    }

    /// Replaces the drive's volatile write cache and its read look-ahead buffer by empty ones of the given sizes; 0
    /// turns one off. Sizes are rounded down to whole sectors.
    ///
    /// # Panics
    ///
    /// Panics if the write cache has dirty sectors.
    pub fn set_caches(&mut self, write_cache_bytes: u64, read_ahead_bytes: u64) {
        assert!(self.cache.used().is_zero(), "{} sectors are dirty in the cache to be replaced", self.cache.used().0);
        let sectors = |bytes: u64| Sectors(bytes / self.drive.disk.sector_bytes as u64);
        self.cache = cache_of(&self.drive, write_cache_bytes, self.queue.ordered());
        self.read_ahead = ReadAhead::new(sectors(read_ahead_bytes));
        (self.options.write_cache_bytes, self.options.read_ahead_bytes) = (write_cache_bytes, read_ahead_bytes);
        self.queued_for_cache = self.queue.iter().filter(|waiting| self.is_cacheable(&waiting.command)).count();
    }

    /// Returns the number of dirty sectors in the volatile write cache: acknowledged, but not yet on the medium.
    pub fn dirty(&self) -> Sectors {
        self.cache.used()
    }

    fn perform(&mut self, job: Job) -> Result<(), StepError<C::Error>> {
        // Destaging continues after the last request, so the idle time that counts begins anew.
        self.idle = None;
        match job {
            Job::Serve(slot) => self.serve(slot),
            Job::Absorb(slot) => {
                self.absorb(slot);
                Ok(())
            }
            Job::Destage(due) => self.destage(due),
            Job::WriteBack(sectors) => self.write_back(&sectors, self.now),
        }
    }

    fn next_job(&mut self) -> Option<Job> {
        let chosen = match self.queue.in_drive_len() {
            0 | 1 => self.queue.oldest(),
            // All commands wait for space in the cache and enter it in order, wherever the head is.
            _ if self.queued_for_cache == self.queue.len() && !self.options.schedule.is_stateful() => {
                self.queue.oldest()
            }
            _ => self.options.schedule.choose(&self.queue, self.timing.actuator(), self.now),
        };
        let Some(slot) = chosen else { return self.cache.is_filling().then_some(Job::Destage(WriteBack::Room)) };
        let slot = self.in_order_of_entry(slot);
        let chosen = self.queue.get(slot);
        let command = &chosen.command;
        match command.operation {
            Operation::Flush if self.cache.has_older_than(chosen.sequence) => Some(Job::Destage(WriteBack::Flush)),
            _ if self.is_cacheable(command) => {
                let has_room = self.cache.has_room(command, self.now);
                Some(if has_room { Job::Absorb(slot) } else { Job::Destage(WriteBack::Room) })
            }
            _ => Some(self.dirty_before(command).map_or(Job::Serve(slot), Job::WriteBack)),
        }
    }
}
