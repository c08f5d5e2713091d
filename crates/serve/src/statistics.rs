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

/// Counts and latencies of the completed requests of one kind, such as reads.
#[derive(Debug)]
pub struct KindStatistics {
    /// Name of the kind of request: `read`, `write`, `flush` or `trim`.
    pub name: &'static str,
    /// Number of requests of this kind that were answered since the service began, with or without an error. Requests
    /// that the drive refused count too.
    pub requests: u64,
    /// Number of requests of this kind that were answered with an error since the service began, also of those that the
    /// drive refused: on a full disk of the host, once it has stopped, or against its rules.
    pub errors: u64,
    /// Total length in bytes of all completed requests of this kind since the service began, also of those with an
    /// error. A flush has length 0.
    pub bytes: u64,
    /// Histogram of the latencies of all completed requests of this kind since the service began: simulated time from
    /// arrival to answer, in nanoseconds, with three significant digits. Values above an hour count as an hour.
    pub latency_ns: Histogram<u64>,
}

/// Statistics of a served drive since the service began.
#[derive(Debug)]
pub struct Statistics {
    /// Counts and latencies of the completed reads, writes, flushes and trims since the service began, in this order.
    pub kinds: [KindStatistics; 4],
    /// Histogram of the lateness of answers: how much later than due each answer was given, in nanoseconds of the wall
    /// clock. Values above an hour count as an hour. Empty without a pace.
    pub lateness_ns: Histogram<u64>,
    /// Simulated time, since the service began, during which at least one request was in flight.
    pub busy: Busy,
    /// Number of requests since the service began that violated the rules of zones, by reason, such as `off-pointer`
    /// for a write that does not begin at the write pointer. Reasons without a request are left out.
    pub zone_refusals: BTreeMap<&'static str, u64>,
    /// Error message of the first request since the service began that violated the rules of zones; `None` if there was
    /// none.
    pub first_zone_refusal: Option<String>,
    /// Wall-clock time at which the statistics, and thus the service of the drive, began.
    pub begun: Instant,
    /// Figures for the last 300 seconds of simulated time in which requests were completed, oldest first. Seconds
    /// without a completion are left out. A completion that is recorded late, for a second before the newest, counts in
    /// the newest.
    pub seconds: VecDeque<Second>,
}

/// Figures of the requests that were completed in one second of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Second {
    /// Number of the second: the simulated time of the drive, rounded down to whole seconds.
    pub number: u64,
    /// Number of requests of all kinds that were completed in this second of simulated time, also with an error.
    pub requests: u64,
    /// Sum of the latencies of the requests completed in this second of simulated time, each from arrival to answer, in
    /// simulated nanoseconds.
    pub latency_ns: u64,
    /// Longest latency, from arrival to answer, of a request of any kind that was completed in this second of simulated
    /// time, in simulated nanoseconds.
    pub latency_ns_max: u64,
    /// Total length in bytes of the reads, writes and trims completed in this second of simulated time, also of those
    /// with an error.
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
    /// Returns empty statistics that begin now.
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

    /// Records that the drive accepted a request that arrived at simulated time `at`, for the busy time.
    /// [`Statistics::completed`] must follow for it.
    pub fn came(&mut self, at: SimTime) {
        self.busy.begin(at);
    }

    /// Records the completion of a request that [`Statistics::came`] recorded: counts, latency and busy time. An error
    /// that is a violation of the rules of zones is also counted in [`Statistics::zone_refusals`].
    ///
    /// # Panics
    ///
    /// If no recorded request is in flight.
    pub fn completed(&mut self, completion: &Completion) {
        self.busy.answer(completion.end);
        if let Err(error) = &completion.outcome {
            self.count_zone_refusal(error);
        }
        let kind = self.kind(completion.kind);
        kind.requests += 1;
        kind.errors += u64::from(completion.outcome.is_err());

        kind.bytes += completion.length;
        let latency_ns = completion.end.since(completion.entry).0;
        kind.latency_ns.saturating_record(latency_ns);
        self.count_second(completion.end.0 / 1_000_000_000, latency_ns, completion.length);
    }

    /// Records a request that the drive did not accept, and that was answered with `error`: as a request and an error of
    /// its kind, without a latency. A violation of the rules of zones is also counted in
    /// [`Statistics::zone_refusals`].
    pub fn refused(&mut self, kind: IoKind, error: &DeviceError) {
        let of_kind = self.kind(kind);
        of_kind.requests += 1;
        of_kind.errors += 1;
        self.count_zone_refusal(error);
    }

    fn kind(&mut self, kind: IoKind) -> &mut KindStatistics {
        &mut self.kinds[match kind {
            IoKind::Read => 0,
            IoKind::Write { .. } => 1,
            IoKind::Flush => 2,
            IoKind::Trim => 3,
        }]
    }

    /// Counts `error` in [`Statistics::zone_refusals`] if it is a violation of the rules of zones, and keeps the
    /// message of the first one. Does nothing for other errors.
    fn count_zone_refusal(&mut self, error: &DeviceError) {
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

    /// Records in [`Statistics::lateness_ns`] that an answer was given `late` after it was due, in time of the wall
    /// clock.
    pub fn answered_late_by(&mut self, late: Duration) {
        self.lateness_ns.saturating_record(late.as_nanos() as u64);
    }
}
