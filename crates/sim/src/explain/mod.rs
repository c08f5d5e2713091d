//! The causes of latencies: the requests and the cleaning that the drive was busy with while a request waited, and the
//! writes that had made that cleaning necessary.
//!
//! ```text
//!   Operation ─► Spans: the drive's work from when to when ────┐
//!      │                                                       ├─► parts of the latency of a request
//!      └──────► Fills: the writes that filled each store ──────┘     ├─► the worst requests, in detail
//!                                                                    └─► sums by cause, device and LBA range
//! ```
//!
//! The latency of a request is counted from its arrival, so it includes the wait before the queue. With a queue of fixed
//! depth, the arrival is the workload's own time, moved by the delay of the requests before it. The latency is cut at the ends
//! of the spans, which do not overlap, so its parts sum to it exactly.
//!
//! An operation may serve several requests. Each of them then takes as its own an equal share of the time from the
//! beginning of its service to its answer, in whole nanoseconds; the request that the scheduler chose first takes the
//! remainder too. The rest counts as time behind the others.
//!
//! Invariants:
//! 1. The parts of a request sum to its latency.
//! 2. The memory is bounded. Time before the oldest span that is kept counts as [`Cause::Earlier`].
//! 3. An explainer changes nothing in the run.

pub(crate) mod fills;
pub(crate) mod follower;
mod part;
mod shares;
mod spans;
mod worst;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Range, RangeInclusive};

use imbrex_disk::{Command, Operation as HostOperation, Sectors, SimDuration, SimTime};
use imbrex_layer::Layer;

pub use self::fills::{Devices, Fill};
use self::follower::{Follower, OwnPhase, Writer};
pub use self::part::{Cause, Of, Part};
pub use self::shares::{CauseShares, Involved, Ranges, Summary};
use self::shares::{Place, Shares};
use self::spans::{KINDS, SPANS_MAX, Span, Spans};
use self::worst::{Candidate, Worst};
use crate::observer::{IoRecord, Observer};
use crate::operation::{Operation, Purpose, Stretch, Work, WriteBack};
use crate::timing::PlanPart;

/// Largest number of requests whose devices are kept: those that entered last. Our own value.
const DEVICES_KEPT: usize = 1 << 21;

/// Choice of the requests that are explained in detail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// This many requests with the longest latencies; of equal ones the first.
    Worst(usize),
    /// The requests with these numbers.
    Numbers(BTreeSet<u64>),
    /// The first requests, as many as given, whose latency in nanoseconds lies in a range.
    Latency(RangeInclusive<u64>, usize),
}

/// The options of an explainer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplainOptions {
    /// The requests that are explained in detail.
    pub chosen: Chosen,
    /// Number of sectors of the drive, from the first on, that the workload addresses. Sums by address divide them into
    /// 64 equal parts. `None` for the whole drive.
    pub addressed: Option<Sectors>,
    /// Whether the parts of each request are computed a second time, by a walk over the spans, and compared.
    pub check: bool,
    /// Number of first requests of the workload that are neither chosen nor counted.
    pub warmup_requests: u64,
}

/// A request and the parts of its latency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explained {
    /// Number of the request in the workload, counted from 0.
    pub number: u64,
    /// Device of the request, as the trace numbers its devices.
    pub device: u32,
    /// The read, write, flush or trim, with its address and length in sectors of the drive.
    pub command: Command,
    /// Simulated time from which the latency of the request is counted: its arrival, moved by the delay of the requests
    /// before it if the queue has a fixed depth.
    pub arrival: SimTime,
    /// Simulated time at which the request entered the drive's queue.
    pub entry: SimTime,
    /// Simulated time at which the service of the request began.
    pub start: SimTime,
    /// Simulated time at which the request was answered.
    pub end: SimTime,
    /// The parts of the latency: those of the request itself, then the others, the longest first. They sum to the
    /// latency.
    pub parts: Vec<Part>,
    /// The parts of the run's plans that do work which a conventional drive does not do, each with its time within the
    /// latency. A replay can take these times off.
    pub blamed: BTreeMap<PlanPart, SimDuration>,
}

impl Explained {
    /// Returns the time that the drive spent on work which a conventional drive does not do.
    pub fn unconventional(&self) -> SimDuration {
        let parts = self.parts.iter().filter(|part| part.cause.is_conventional() == Some(false));
        parts.map(|part| part.duration).sum()
    }

    /// Returns the time from the arrival of the request to its answer.
    pub fn latency(&self) -> SimDuration {
        self.end.since(self.arrival)
    }
}

/// Everything that an explainer found.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The chosen requests: the worst one first, or in order of their numbers.
    pub requests: Vec<Explained>,
    /// The causes of all requests together.
    pub summary: Summary,
}

/// A phase of the layer's own work, and the number of its operation.
#[derive(Clone, Copy, Debug)]
struct OwnWork {
    operation: u64,
    work: OwnPhase,
}

/// A request that an operation served, or whose data it wrote back.
#[derive(Clone, Copy, Debug)]
struct Served {
    request: u64,
    device: u32,
    range: u16,
}

/// An operation whose spans are kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// The reason of a write-back; `None` for other operations.
    due: Option<WriteBack>,
    /// Number of the first of its requests among all served ones, and how many there are.
    first: u64,
    count: u32,
}

/// An observer that finds the causes of the latencies of one run.
#[derive(Debug)]
pub struct Explainer {
    options: ExplainOptions,
    spans: Spans,
    follower: Follower,
    operations: VecDeque<Kept>,
    first_operation: u64,
    served: VecDeque<Served>,
    first_served: u64,
    own_work: VecDeque<OwnWork>,
    /// Devices of the requests from `first_device` on, if any was not 0.
    devices: VecDeque<u32>,
    first_device: u64,
    worst: Worst,
    shares: Shares,
}

impl Explainer {
    /// Creates an explainer for a run on a drive with this layer.
    pub fn new(layer: &dyn Layer, options: ExplainOptions) -> Explainer {
        Explainer::with_spans(layer, options, SPANS_MAX)
    }

    /// Creates an explainer that keeps at most `longest` spans, so that tests reach the bound.
    fn with_spans(layer: &dyn Layer, options: ExplainOptions, longest: usize) -> Explainer {
        let addressed = options.addressed.map_or(layer.capacity(), |addressed| addressed.min(layer.capacity()));
        let follower = Follower::new(layer, addressed.0);
        Explainer {
            spans: Spans::new(longest),
            operations: VecDeque::new(),
            first_operation: 0,
            served: VecDeque::new(),
            first_served: 0,
            own_work: VecDeque::new(),
            devices: VecDeque::new(),
            first_device: 0,
            worst: Worst::new(options.chosen.clone()),
            shares: Shares::new(Sectors(follower.range_sectors())),
            follower,
            options,
        }
    }

    /// Forgets the requests chosen and counted so far, and neither chooses nor counts those with a number below `number`. The
    /// work that the drive did, and the writes that filled its stores, stay known.
    pub fn count_from(&mut self, number: u64) {
        self.options.warmup_requests = number;
        self.worst = Worst::new(self.options.chosen.clone());
        self.shares = Shares::new(Sectors(self.follower.range_sectors()));
    }

    fn take_entry(&mut self, number: u64, device: u32) {
        let known = self.first_device + self.devices.len() as u64;
        // Devices are kept from the first request on whose device is not 0.
        if self.devices.is_empty() && device == 0 {
            self.first_device = number + 1;
            return;
        }
        // Requests that were rejected have no device.
        for _ in known..number {
            self.devices.push_back(0);
        }
        self.devices.push_back(device);
        while self.devices.len() > DEVICES_KEPT {
            self.devices.pop_front();
            self.first_device += 1;
        }
    }

    fn device_of(&self, request: u64) -> u32 {
        let index = request.checked_sub(self.first_device);
        index.and_then(|index| self.devices.get(index as usize)).copied().unwrap_or(0)
    }

    fn take_operation(&mut self, operation: &Operation<'_>) {
        let number = self.first_operation + self.operations.len() as u64;
        let first = self.first_served + self.served.len() as u64;
        let requests: &mut dyn Iterator<Item = u64> = match operation.purpose {
            Purpose::Serve(batch) => &mut batch.iter().map(|waiting| waiting.sequence),
            Purpose::WriteBack(_, oldest) => &mut oldest.iter().copied(),
            Purpose::Background => &mut std::iter::empty(),
        };
        for (request, command) in requests.zip(operation.commands) {
            let range = self.follower.range_of(command.lba) as u16;
            self.served.push_back(Served { request, device: self.device_of(request), range });
        }
        let count = (self.first_served + self.served.len() as u64 - first) as u32;
        let due = if let Purpose::WriteBack(due, _) = operation.purpose { Some(due) } else { None };
        self.operations.push_back(Kept { due, first, count });
        let (served, own_work) = (&self.served, &mut self.own_work);
        let writers = (first - self.first_served) as usize;
        let writer_of = |index: usize| {
            let by = served.get(writers + index)?;
            Some(Writer { request: by.request, device: by.device })
        };
        self.follower.take(operation, writer_of, |work, _| own_work.push_back(OwnWork { operation: number, work }));
        let mut from = operation.begin.0;
        // An operation that takes no time has an empty span, so that it is dropped with the spans around it.
        let none = Stretch { until: operation.begin, phase: 0, work: Work::Access };
        let stretches = if operation.stretches.is_empty() { &[none] } else { operation.stretches };
        for stretch in stretches {
            if self.spans.is_full() {
                self.drop_half();
            }
            let (until, phase) = (stretch.until.0, stretch.phase);
            let kind = kind_of(due.is_some(), stretch.work);
            self.spans.push(Span { from, until, operation: number, phase, kind });
            from = until;
        }
    }

    fn completed(&mut self, record: &IoRecord) {
        let from = record.due;
        let times = from.0..record.start.0;
        let own = record.start.0..record.end.0;
        let mut causes = [0; Cause::COUNT];
        let waited = self.spans.wait(&times);
        let unknown = self.spans.known_from().clamp(times.start, times.end.max(times.start)) - times.start;
        let busy: u64 = waited.iter().sum();
        for (kind, time) in waited.into_iter().enumerate() {
            causes[others_cause(kind) as usize] += time;
        }
        causes[Cause::Earlier as usize] = unknown;
        causes[Cause::Idle as usize] = (times.end.max(times.start) - times.start) - busy - unknown;
        let operation = (!record.from_cache).then(|| self.first_operation + self.operations.len() as u64 - 1);
        let own_wait = self.add_own(&mut causes, record.sequence, operation, &own);
        let number = record.sequence;
        if self.options.check {
            let device = self.device_of(number);
            self.check(&Candidate { record: *record, device, arrival: from, operation, found: None }, &causes);
        }
        if number < self.options.warmup_requests {
            return;
        }
        let latency = own.end - times.start;
        let range =
            (record.command.operation != HostOperation::Flush).then(|| self.follower.range_of(record.command.lba));
        let device = self.device_of(number);
        self.shares.add(latency, &causes, Place { range, device }, busy + own_wait);
        if self.worst.wants(number, latency) {
            self.worst.add(Candidate { record: *record, device, arrival: from, operation, found: None });
        }
    }

    /// Adds the parts of a request's own service, during `own`, to `causes`. Returns the time for which the request waited
    /// for the layer's own work meanwhile.
    fn add_own(
        &mut self,
        causes: &mut [u64; Cause::COUNT],
        request: u64,
        operation: Option<u64>,
        own: &Range<u64>,
    ) -> u64 {
        let whole = own.end - own.start;
        let Some(operation) = operation else {
            causes[Cause::OwnCache as usize] += whole;
            return 0;
        };
        let (times, waited) = self.spans.last_operation(operation, own, |kind| own_cause(kind).is_none());
        let share = self.share_of(operation, request);
        let spent: u64 = times.iter().sum();
        for (kind, mut time) in times.into_iter().enumerate() {
            // Time without an access, such as that of the bus, counts as access.
            if kind == Work::Access as usize {
                time += whole - spent;
            }
            match own_cause(kind) {
                Some(cause) => {
                    let mine = share.of(time);
                    causes[cause as usize] += mine;
                    causes[others_cause(kind) as usize] += time - mine;
                }
                None => causes[others_cause(kind) as usize] += time,
            }
        }
        waited
    }

    fn kept(&self, operation: u64) -> Option<Kept> {
        self.operations.get(operation.checked_sub(self.first_operation)? as usize).copied()
    }

    fn served_by(&self, operation: u64) -> impl Iterator<Item = Served> + '_ {
        let kept = self.kept(operation);
        let range = kept.map_or(0..0, |kept| {
            let first = (kept.first - self.first_served) as usize;
            first..first + kept.count as usize
        });
        self.served.range(range).copied()
    }

    fn share_of(&self, operation: u64, request: u64) -> Share {
        if self.kept(operation).is_some_and(|kept| kept.count == 1) {
            return Share { is_first: true, of: 1 };
        }
        let position = self.served_by(operation).position(|served| served.request == request).unwrap_or(0);
        Share { is_first: position == 0, of: self.kept(operation).map_or(1, |kept| u64::from(kept.count.max(1))) }
    }

    /// Drops the older half of the spans, after the parts of the requests that are chosen so far were found.
    fn drop_half(&mut self) {
        self.find_parts();
        let mut shares = std::mem::take(&mut self.shares);
        let mut spans = std::mem::replace(&mut self.spans, Spans::new(SPANS_MAX));
        let oldest = spans.drop_half(|span, time| self.account(&mut shares, span, time));
        (self.spans, self.shares) = (spans, shares);
        while self.first_operation < oldest && self.operations.len() > 1 {
            self.operations.pop_front();
            self.first_operation += 1;
        }
        let first_needed = self.operations.front().map_or(self.first_served, |kept| kept.first);
        while self.first_served < first_needed && self.served.pop_front().is_some() {
            self.first_served += 1;
        }
        while self.own_work.front().is_some_and(|work| work.operation < self.first_operation) {
            self.own_work.pop_front();
        }
    }

    /// Counts the time that requests waited during `span` to those that caused it.
    fn account(&self, shares: &mut Shares, span: &Span, waited: u64) {
        if waited == 0 {
            return;
        }
        if let Some(work) = self.work_of(span) {
            return shares.blame_fill(work.fill.and_then(|fill| self.follower.fills().get(fill)), waited);
        }
        let count = u64::from(self.kept(span.operation).map_or(0, |kept| kept.count));
        for (index, served) in self.served_by(span.operation).enumerate() {
            let share = Share { is_first: index == 0, of: count };
            shares.blame(usize::from(served.range), served.device, share.of(waited));
        }
    }

    /// Returns the phase of the layer's own work that a span belongs to, or `None` if it serves the host.
    fn work_of(&self, span: &Span) -> Option<&OwnPhase> {
        let key = (span.operation, span.phase);
        let key_of = |own: &OwnWork| (own.operation, own.work.phase);
        let index = self.own_work.partition_point(|own| key_of(own) < key);
        self.own_work.get(index).filter(|own| key_of(own) == key).map(|own| &own.work)
    }

    /// Finds the parts of all chosen requests whose parts were not found yet.
    fn find_parts(&mut self) {
        let mut worst = std::mem::take(&mut self.worst);
        worst.for_each_open(|candidate| candidate.found = Some(self.parts_of(candidate)));
        self.worst = worst;
    }

    /// Returns the latencies, in nanoseconds, between which that at `quantile` (0 to 1) lies. They differ by at most
    /// 0.1 %, and at least one request has a latency between them, if any completed.
    pub fn latencies_at(&self, quantile: f64) -> RangeInclusive<u64> {
        self.shares.latencies_at(quantile)
    }

    /// Ends the run, and returns the explanation.
    pub fn finish(mut self) -> Explanation {
        self.find_parts();
        let mut shares = std::mem::take(&mut self.shares);
        let mut spans = std::mem::replace(&mut self.spans, Spans::new(SPANS_MAX));
        spans.drop_all(|span, time| self.account(&mut shares, span, time));
        Explanation { requests: self.worst.into_explained(), summary: shares.summary() }
    }
}

impl Observer for Explainer {
    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        self.completed(record);
    }

    fn wants_operations(&self) -> bool {
        true
    }

    fn entered(&mut self, sequence: u64, device: u32, _command: &Command) {
        self.take_entry(sequence, device);
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        self.take_operation(operation);
    }
}

/// The share of a request in an operation that serves `of` requests.
#[derive(Clone, Copy)]
struct Share {
    is_first: bool,
    of: u64,
}

impl Share {
    fn of(self, time: u64) -> u64 {
        time / self.of.max(1) + if self.is_first { time % self.of.max(1) } else { 0 }
    }
}

/// Returns the kind of a span: the work, and whether it is that of a write-back.
fn kind_of(is_write_back: bool, work: Work) -> u8 {
    match work {
        Work::Access | Work::Rewriting | Work::Bookkeeping if is_write_back => Work::COUNT as u8 + work as u8,
        _ => work as u8,
    }
}

/// Returns the cause for a request that waits during a span of this kind.
fn others_cause(kind: usize) -> Cause {
    const CAUSES: [Cause; KINDS] = [
        Cause::Requests,
        Cause::Rewriting,
        Cause::Bookkeeping,
        Cause::Cleaning,
        Cause::Migration,
        Cause::Recovery,
        Cause::WriteBack,
        Cause::WriteBackRewriting,
        Cause::WriteBackBookkeeping,
    ];
    CAUSES[kind]
}

/// Returns the cause for the request that is served during a span of this kind; `None` if it is the layer's own work.
fn own_cause(kind: usize) -> Option<Cause> {
    [Cause::OwnAccess, Cause::OwnRewriting, Cause::OwnBookkeeping].get(kind).copied()
}

#[cfg(test)]
mod tests;
