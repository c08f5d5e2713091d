//! The parts of one request's latency, each with the requests or the cleaning that took the time.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use imbrex_disk::SimDuration;
use imbrex_layer::Reason;

use super::fills::Fill;
use super::spans::Span;
use super::worst::Candidate;
use super::{Explained, Explainer, others_cause, own_cause};
use crate::operation::WriteBack;
use crate::timing::PlanPart;

/// Largest number of parts of a request that name a piece of cleaning of their own. Our own value.
const OWN_WORK_PARTS_MAX: usize = 10_000;

/// The cause of a part of a latency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The drive accesses the request's own sectors, overhead included.
    OwnAccess,
    /// The drive reads, copies or rewrites other sectors because the request's own write destroys them.
    OwnRewriting,
    /// The layer writes its records and its map for the request.
    OwnBookkeeping,
    /// The volatile cache answers the request.
    OwnCache,
    /// The drive accesses the sectors of other requests.
    Requests,
    /// The drive reads, copies or rewrites sectors that the writes of other requests destroy.
    Rewriting,
    /// The layer writes its records and its map for other requests.
    Bookkeeping,
    /// The layer cleans.
    Cleaning,
    /// The layer moves data to a place at which they are cheaper to write.
    Migration,
    /// The layer repairs its data after a power cut.
    Recovery,
    /// The drive writes the volatile cache back.
    WriteBack,
    /// The drive reads, copies or rewrites sectors that a write-back of the volatile cache destroys.
    WriteBackRewriting,
    /// The layer writes its records and its map for a write-back of the volatile cache.
    WriteBackBookkeeping,
    /// The drive did nothing.
    Idle,
    /// The time lies before the part of the past that is kept.
    Earlier,
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = 15;

    /// All causes, in declaration order.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::OwnAccess,
        Cause::OwnRewriting,
        Cause::OwnBookkeeping,
        Cause::OwnCache,
        Cause::Requests,
        Cause::Rewriting,
        Cause::Bookkeeping,
        Cause::Cleaning,
        Cause::Migration,
        Cause::Recovery,
        Cause::WriteBack,
        Cause::WriteBackRewriting,
        Cause::WriteBackBookkeeping,
        Cause::Idle,
        Cause::Earlier,
    ];

    /// Returns the name of the cause in results, such as `own_access`.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::OwnAccess => "own_access",
            Cause::OwnRewriting => "own_rewriting",
            Cause::OwnBookkeeping => "own_bookkeeping",
            Cause::OwnCache => "own_cache",
            Cause::Requests => "requests",
            Cause::Rewriting => "rewriting",
            Cause::Bookkeeping => "bookkeeping",
            Cause::Cleaning => "cleaning",
            Cause::Migration => "migration",
            Cause::Recovery => "recovery",
            Cause::WriteBack => "write_back",
            Cause::WriteBackRewriting => "write_back_rewriting",
            Cause::WriteBackBookkeeping => "write_back_bookkeeping",
            Cause::Idle => "idle",
            Cause::Earlier => "earlier",
        }
    }

    /// Returns whether the drive works for the request itself in this time.
    pub const fn is_own(self) -> bool {
        matches!(self, Cause::OwnAccess | Cause::OwnRewriting | Cause::OwnBookkeeping | Cause::OwnCache)
    }

    /// Returns whether a conventional drive does this kind of work too. `None` for time whose work is not known.
    pub const fn is_conventional(self) -> Option<bool> {
        match self {
            Cause::OwnAccess | Cause::OwnCache | Cause::Requests | Cause::WriteBack | Cause::Idle => Some(true),
            Cause::Earlier => None,
            _ => Some(false),
        }
    }
}

/// The requests or the work that took the time of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Of {
    /// The request itself, or nothing.
    Nothing,
    /// Other requests, as ranges of their numbers in rising order.
    Requests(Vec<RangeInclusive<u64>>),
    /// A write-back of the volatile cache: its reason, and the numbers of the oldest writes in the ranges written back.
    WriteBack(WriteBack, Vec<RangeInclusive<u64>>),
    /// A piece of the layer's own work.
    OwnWork {
        /// Number of the piece in the run, counted from 1; `None` if the part is the sum of further pieces, which are too
        /// many to be listed.
        event: Option<u64>,
        /// The reason of the work; `None` if the layer gives none.
        reason: Option<Reason>,
        /// The writes that made the work necessary; `None` if none are known.
        fill: Option<Fill>,
    },
}

/// A part of a request's latency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The cause of the part.
    pub cause: Cause,
    /// Simulated time of the part.
    pub duration: SimDuration,
    /// The requests, or the piece of work, that took the time.
    pub of: Of,
}

/// Key of a part among those of a request. Keys are in the order of the result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Own(Cause),
    Others(Cause, Option<WriteBack>),
    OwnWork(Cause, u64),
}

/// Sums of time by key, with the operations that took it.
#[derive(Default)]
struct Sums {
    times: BTreeMap<Key, (u64, Vec<u64>)>,
}

impl Sums {
    fn add(&mut self, key: Key, time: u64, operation: u64) {
        if time == 0 {
            return;
        }
        let (sum, operations) = self.times.entry(key).or_default();
        *sum += time;
        if operations.last() != Some(&operation) {
            operations.push(operation);
        }
    }
}

/// Returns the ranges of numbers that are in `numbers`.
fn ranges(mut numbers: Vec<u64>) -> Vec<RangeInclusive<u64>> {
    numbers.sort_unstable();
    let mut found: Vec<RangeInclusive<u64>> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some(last) if number <= *last.end() + 1 => *last = *last.start()..=number,
            _ => found.push(number..=number),
        }
    }
    found
}

impl Explainer {
    /// Returns the parts of a request's latency, and the parts of plans that do work which a conventional drive does not
    /// do.
    pub(super) fn parts_of(&self, candidate: &Candidate) -> (Vec<Part>, BTreeMap<PlanPart, SimDuration>) {
        let record = &candidate.record;
        let times = candidate.arrival.0..record.start.0.max(candidate.arrival.0);
        let (mut sums, mut own_sums) = (Sums::default(), [0; 3]);
        let (mut busy, mut blamed) = (0, BTreeMap::new());
        let is_blamed = |span: &Span| others_cause(span.kind as usize).is_conventional() == Some(false);
        let mut blame = |span: &Span, time: u64| {
            if is_blamed(span) {
                *blamed.entry((span.operation, span.phase)).or_insert(SimDuration::ZERO) += SimDuration(time);
            }
        };
        self.spans.for_each_within(&times, |span, time| {
            blame(span, time);
            sums.add(self.key_of(span), time, span.operation);
            busy += time;
        });
        let unknown = self.spans.known_from().clamp(times.start, times.end) - times.start;
        let own = record.start.0..record.end.0;
        self.spans.for_each_within(&own, |span, time| {
            if Some(span.operation) == candidate.operation {
                blame(span, time);
            }
        });
        match candidate.operation {
            None => sums.add(Key::Own(Cause::OwnCache), own.end - own.start, 0),
            Some(operation) => self.own_parts(operation, record.sequence, &own, &mut sums, &mut own_sums),
        }
        let mut parts: Vec<Part> = sums
            .times
            .into_iter()
            .map(|(key, (time, operations))| self.part(key, time, operations, record.sequence))
            .collect();
        for (cause, time) in [(Cause::Idle, times.end - times.start - busy - unknown), (Cause::Earlier, unknown)] {
            if time > 0 {
                parts.push(Part { cause, duration: SimDuration(time), of: Of::Nothing });
            }
        }
        parts.sort_by_key(|part| (!part.cause.is_own(), std::cmp::Reverse(part.duration)));
        (parts, blamed)
    }

    fn key_of(&self, span: &Span) -> Key {
        let cause = others_cause(span.kind as usize);
        match self.work_of(span) {
            Some(work) => Key::OwnWork(cause, work.event),
            None => Key::Others(cause, self.kept(span.operation).and_then(|kept| kept.due)),
        }
    }

    /// Adds the parts of the service of a request, during `own`, in `operation`.
    fn own_parts(&self, operation: u64, request: u64, own: &Range<u64>, sums: &mut Sums, own_sums: &mut [u64; 3]) {
        let mut accounted = 0;
        self.spans.for_each_within(own, |span, time| {
            if span.operation != operation {
                return;
            }
            accounted += time;
            match own_sums.get_mut(span.kind as usize) {
                Some(sum) => *sum += time,
                None => sums.add(self.key_of(span), time, operation),
            }
        });
        own_sums[0] += (own.end - own.start) - accounted;
        let share = self.share_of(operation, request);
        for (kind, &time) in own_sums.iter().enumerate() {
            let mine = share.of(time);
            sums.add(Key::Own(own_cause(kind).expect("the first kinds are the request's")), mine, operation);
            sums.add(Key::Others(others_cause(kind), None), time - mine, operation);
        }
    }

    fn part(&self, key: Key, time: u64, operations: Vec<u64>, request: u64) -> Part {
        let requests = |operations: Vec<u64>| {
            let served = operations.into_iter().flat_map(|operation| self.served_by(operation));
            ranges(served.map(|served| served.request).filter(|&other| other != request).collect())
        };
        let (cause, of) = match key {
            Key::Own(cause) => (cause, Of::Nothing),
            Key::Others(cause, None) => (cause, Of::Requests(requests(operations))),
            Key::Others(cause, Some(due)) => (cause, Of::WriteBack(due, requests(operations))),
            Key::OwnWork(cause, event) => {
                let index = self.own_work.partition_point(|own| own.work.event < event);
                let work = self.own_work.get(index).map(|own| own.work).filter(|work| work.event == event);
                let fill = work.and_then(|work| work.fill).and_then(|fill| self.follower.fills().get(fill)).cloned();
                (cause, Of::OwnWork { event: Some(event), reason: work.and_then(|work| work.reason), fill })
            }
        };
        Part { cause, duration: SimDuration(time), of }
    }

    /// Compares the sums by cause of a request with those of its parts, which a walk over the spans finds.
    ///
    /// # Panics
    ///
    /// If they differ, or do not sum to the latency: the explainer is wrong then.
    pub(super) fn check(&self, candidate: &Candidate, causes: &[u64; Cause::COUNT]) {
        let (parts, _) = self.parts_of(candidate);
        let mut walked = [0; Cause::COUNT];
        parts.iter().for_each(|part| walked[part.cause as usize] += part.duration.0);
        let number = candidate.record.sequence;
        assert_eq!(walked, *causes, "causes of request {number}: {parts:?}");
        let latency = candidate.record.end.since(candidate.arrival);
        assert_eq!(
            SimDuration(walked.iter().sum()),
            latency,
            "the parts of request {number} do not sum to its latency"
        );
    }
}

impl Candidate {
    /// Returns the request with its parts.
    pub(super) fn into_explained(self) -> Explained {
        let record = self.record;
        let (parts, blamed) = self.found.unwrap_or_default();
        Explained {
            number: record.sequence,
            device: self.device,
            command: record.command,
            arrival: self.arrival,
            entry: record.entry,
            start: record.start,
            end: record.end,
            parts: listed(parts),
            blamed,
        }
    }
}

/// Returns the parts with those of own work beyond [`OWN_WORK_PARTS_MAX`] added up, by cause.
fn listed(mut parts: Vec<Part>) -> Vec<Part> {
    if parts.len() <= OWN_WORK_PARTS_MAX {
        return parts;
    }
    let (mut seen, mut further) = (0, BTreeMap::new());
    parts.retain(|part| {
        let is_own_work = matches!(part.of, Of::OwnWork { .. });
        seen += usize::from(is_own_work);
        if !is_own_work || seen <= OWN_WORK_PARTS_MAX {
            return true;
        }
        *further.entry(part.cause).or_insert(SimDuration::ZERO) += part.duration;
        false
    });
    let of = Of::OwnWork { event: None, reason: None, fill: None };
    parts.extend(further.into_iter().map(|(cause, duration)| Part { cause, duration, of: of.clone() }));
    parts
}
