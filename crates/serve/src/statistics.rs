//! What a served drive has done: latencies in simulated time, lateness on the wall clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use imbrex_device::{Completion, DeviceError, IoKind};
use imbrex_disk::SimTime;
use imbrex_layer::ZoneError;

use crate::busy::Busy;

/// Three digits, up to an hour: what a stalled drive may take.
const DIGITS: u8 = 3;
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counts and latencies of one kind of request.
#[derive(Debug)]
pub struct KindStatistics {
    /// Its name.
    pub name: &'static str,
    /// Completed.
    pub requests: u64,
    /// Of them, answered with an error.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Simulated latency, nanoseconds.
    pub latency_ns: Histogram<u64>,
}

/// All of it.
#[derive(Debug)]
pub struct Statistics {
    /// Read, write, flush, trim.
    pub kinds: [KindStatistics; 4],
    /// How much later than its time an answer was given, nanoseconds.
    pub lateness_ns: Histogram<u64>,
    /// How long the drive had something to answer.
    pub busy: Busy,
    /// Requests against the rules of zones, by reason.
    pub zone_refusals: BTreeMap<&'static str, u64>,
    /// The first of them, in words.
    pub first_zone_refusal: Option<String>,
    /// When serving began.
    pub begun: Instant,
    /// The last minutes, a second each: for the live page.
    pub seconds: VecDeque<Second>,
}

/// A second of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Second {
    /// Which, counted from the start.
    pub number: u64,
    /// Requests completed in it.
    pub requests: u64,
    /// Sum of their latencies, nanoseconds.
    pub latency_ns: u64,
    /// The longest.
    pub latency_ns_max: u64,
    /// Bytes moved for the host.
    pub bytes: u64,
}

/// Seconds kept.
const SECONDS_MAX: usize = 300;

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are constants in range")
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics::new()
    }
}

impl Statistics {
    /// Nothing yet.
    pub fn new() -> Statistics {
        let kind = |name| KindStatistics { name, requests: 0, errors: 0, bytes: 0, latency_ns: histogram() };
        Statistics {
            kinds: [kind("read"), kind("write"), kind("flush"), kind("trim")],
            lateness_ns: histogram(),
            busy: Busy::default(),
            zone_refusals: BTreeMap::new(),
            first_zone_refusal: None,
            begun: Instant::now(),
            seconds: VecDeque::new(),
        }
    }

    /// A request has come to the drive.
    pub fn came(&mut self, at: SimTime) {
        self.busy.begin(at);
    }

    /// A request that came has been completed by the drive.
    pub fn completed(&mut self, completion: &Completion) {
        self.busy.answer(completion.end);
        if let Err(error) = &completion.outcome {
            self.refused(error);
        }
        let kind = &mut self.kinds[match completion.kind {
            IoKind::Read => 0,
            IoKind::Write { .. } => 1,
            IoKind::Flush => 2,
            IoKind::Trim => 3,
        }];
        kind.requests += 1;
        kind.errors += u64::from(completion.outcome.is_err());

        kind.bytes += completion.length;
        let latency_ns = completion.end.since(completion.entry).0;
        kind.latency_ns.saturating_record(latency_ns);
        self.count_second(completion.end.0 / 1_000_000_000, latency_ns, completion.length);
    }

    /// A request was answered with `error`: what zones refuse is counted by reason.
    pub fn refused(&mut self, error: &DeviceError) {
        let DeviceError::Zone(error) = error else { return };
        let reason = match error {
            ZoneError::NotAtPointer { .. } => "off-pointer",
            ZoneError::NoRoom { .. } => "no-room",
            ZoneError::Condition { .. } => "condition",
            ZoneError::TooManyOpen { .. } => "too-many-open",
            ZoneError::TooManyActive { .. } => "too-many-active",
            _ => "other",
        };
        *self.zone_refusals.entry(reason).or_default() += 1;
        self.first_zone_refusal.get_or_insert_with(|| error.to_string());
    }

    fn count_second(&mut self, number: u64, latency_ns: u64, bytes: u64) {
        // Completions come in the order in which the drive finished them, give or take those from its volatile cache.
        if self.seconds.back().is_none_or(|last| last.number < number) {
            if self.seconds.len() == SECONDS_MAX {
                self.seconds.pop_front();
            }
            self.seconds.push_back(Second { number, ..Second::default() });
        }
        let second = self.seconds.back_mut().expect("just pushed");
        second.requests += 1;
        second.latency_ns += latency_ns;
        second.latency_ns_max = second.latency_ns_max.max(latency_ns);
        second.bytes += bytes;
    }

    /// An answer was given so much after its time.
    pub fn answered_late_by(&mut self, late: Duration) {
        self.lateness_ns.saturating_record(late.as_nanos() as u64);
    }
}
