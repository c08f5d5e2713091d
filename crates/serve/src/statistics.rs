//! Statistics of a served drive: latencies in simulated time, lateness on the wall clock.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use imbrex_device::{Completion, DeviceError, IoKind};
use imbrex_disk::SimTime;
use imbrex_layer::ZoneError;

use crate::busy::Busy;

/// Three significant digits, up to an hour: a stalled drive may take that long.
const DIGITS: u8 = 3;
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Counts and latencies of one kind of request.
#[derive(Debug)]
pub struct KindStatistics {
    /// Name of the kind.
    pub name: &'static str,
    /// Number of completed requests.
    pub requests: u64,
    /// Number of completed requests that were answered with an error.
    pub errors: u64,
    /// Total length of the completed requests in bytes, also of those answered with an error.
    pub bytes: u64,
    /// Simulated latency, in nanoseconds.
    pub latency_ns: Histogram<u64>,
}

/// Statistics of a drive since it is served.
#[derive(Debug)]
pub struct Statistics {
    /// Statistics of reads, writes, flushes and trims.
    pub kinds: [KindStatistics; 4],
    /// Lateness of answers, in nanoseconds of the wall clock.
    pub lateness_ns: Histogram<u64>,
    /// Time during which requests were in flight.
    pub busy: Busy,
    /// Requests that violated the rules of zones, by reason.
    pub zone_refusals: BTreeMap<&'static str, u64>,
    /// Message of the first request that violated the rules of zones.
    pub first_zone_refusal: Option<String>,
    /// Wall-clock time at which serving began.
    pub begun: Instant,
    /// The last minutes, by second, for the live page.
    pub seconds: VecDeque<Second>,
}

/// Requests that were completed in one second of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Second {
    /// Number of the second: the simulated time of the drive in whole seconds.
    pub number: u64,
    /// Number of requests completed in this second.
    pub requests: u64,
    /// Sum of the simulated latencies of the requests completed in this second, in nanoseconds.
    pub latency_ns: u64,
    /// Longest simulated latency of a request of any kind that was completed in this second, in nanoseconds.
    pub latency_ns_max: u64,
    /// Total length in bytes of the requests completed in this second: of reads, writes and trims, also of those
    /// answered with an error.
    pub bytes: u64,
}

/// Number of seconds kept.
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
    /// Returns empty statistics.
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

    /// Counts the arrival of a request at the drive.
    pub fn came(&mut self, at: SimTime) {
        self.busy.begin(at);
    }

    /// Counts the completion of a request by the drive.
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

    /// Counts a request that was answered with `error`, by reason if the error violates the rules of zones.
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
        // Completions come almost in the order in which the drive finished them; those from its volatile cache may deviate.
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

    /// Records that an answer was given `late` after it was due.
    pub fn answered_late_by(&mut self, late: Duration) {
        self.lateness_ns.saturating_record(late.as_nanos() as u64);
    }
}
