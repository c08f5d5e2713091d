//! All measurements at the host in one run.

use std::collections::BTreeMap;

use imbrex_disk::{Direction, Operation, SimDuration, SimTime};
use imbrex_layer::GroupKind;

use super::busy::BusyTimeline;
use super::counters::Counters;
use super::latency::LatencyHistogram;
use super::series::Series;
use super::waiting::Waiting;
use super::windows::Windows;
use crate::results::ServiceTime;

/// Maximum number of samples of the head's path and of issue times.
const SERIES_CAPACITY: usize = 4096;

/// Radial position of the head in one plan: at the end of the layer's own work if the plan has such work, otherwise at the
/// end of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadSample {
    /// Simulated time of the end of the plan, in nanoseconds since the start of the run.
    pub at_ns: u64,
    /// Track under the head, counted from 0 at the outer diameter.
    pub radial_track: u32,
    /// Purpose of the work there: the layer's own work if the plan has such work, otherwise serving the host.
    pub kind: GroupKind,
}

/// Measurements at the host in one run, since measuring began.
#[derive(Clone, Debug)]
pub struct RunMetrics {
    /// Latency of the reads completed since measuring began, in nanoseconds: time from entry into the queue to
    /// completion.
    pub reads: LatencyHistogram,
    /// Latency of the writes completed since measuring began, in nanoseconds: time from entry into the queue to
    /// completion.
    pub writes: LatencyHistogram,
    /// Latency of the flushes and trims completed since measuring began, in nanoseconds: time from entry into the queue
    /// to completion.
    pub others: LatencyHistogram,
    /// Time from entry into the queue to the start of service, in nanoseconds, of all requests completed since
    /// measuring began.
    pub queue: LatencyHistogram,
    /// Time from the start of service to completion, in nanoseconds, of all requests completed since measuring began.
    pub service: LatencyHistogram,
    /// Total service time by part (seek, rotation, transfer, overhead, cleaning), in nanoseconds, since measuring
    /// began.
    pub parts: ServiceTime,
    /// Commands, sectors and adjusted commands of the host's completed reads and writes, since measuring began.
    pub host: Counters,
    /// Numbers of completed requests in windows of simulated time of equal width, since measuring began.
    pub windows: Windows,
    /// Measurements of waiting: windows of time with outstanding requests, those of them without a completion, and the
    /// longest time without one.
    pub waiting: Waiting,
    /// Samples of the simulated times at which requests entered the queue, in nanoseconds since the start of the run:
    /// every n-th request since measuring began, at most 4096. The number n is 1 at first and doubles when the series
    /// is full. Rejected requests are left out.
    pub issues: Series<u64>,
    /// Samples of the radial position of the head in plans: every n-th plan since measuring began, at most
    /// 4096. A plan is the list of accesses for requests, a cache write-back or background work. The number n is 1 at
    /// first and doubles when the series is full.
    pub head: Series<HeadSample>,
    /// Time of the layer's own work (cleaning, migration and recovery) since measuring began.
    pub own_work: BusyTimeline,
    /// Number of requests that were rejected since measuring began, by the text of the reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Simulated time at which measuring began: the start of the run, or the end of the warm-up.
    pub begun: SimTime,
    /// Simulated time of the latest completion; `begun` if there was none.
    pub ended: SimTime,
    /// Bytes of a sector.
    sector_bytes: u64,
}

impl RunMetrics {
    /// Creates empty metrics, measured from `begin` on. Completions are counted in windows of the width `window`.
    /// `sector_bytes` is the size of a sector of the drive in bytes. `depth` is the maximum number of outstanding
    /// requests: at that number the queue counts as full.
    pub fn new(window: SimDuration, begin: SimTime, sector_bytes: u32, depth: u64) -> RunMetrics {
        RunMetrics {
            reads: LatencyHistogram::new(),
            writes: LatencyHistogram::new(),
            others: LatencyHistogram::new(),
            queue: LatencyHistogram::new(),
            service: LatencyHistogram::new(),
            parts: ServiceTime::default(),
            host: Counters::default(),
            windows: Windows::new(window, begin),
            waiting: Waiting::new(begin, window, depth),
            issues: Series::new(SERIES_CAPACITY),
            head: Series::new(SERIES_CAPACITY),
            own_work: BusyTimeline::new(window, begin),
            rejected: BTreeMap::new(),
            begun: begin,
            ended: begin,
            sector_bytes: sector_bytes as u64,
        }
    }

    /// Returns empty metrics, measured from `begin` on, as at the end of a warm-up. Requests that are outstanding now
    /// stay counted as outstanding. Widths of windows, sector size and depth stay.
    pub fn restarted(&self, begin: SimTime) -> RunMetrics {
        let window = SimDuration(self.windows.width_ns());
        RunMetrics {
            waiting: self.waiting.restarted(begin),
            ..RunMetrics::new(window, begin, self.sector_bytes as u32, 0)
        }
    }

    /// Counts a request that enters the queue at `at`. `arrival` is the time that the workload gives the request, or
    /// `None` if the arrival process does not follow the times of the workload.
    pub fn enter(&mut self, at: SimTime, arrival: Option<SimTime>) {
        self.issues.see(at.0);
        self.waiting.enter(at, arrival);
    }

    /// Counts a completed request of `sectors` sectors that entered the queue at `entry`, whose service began at
    /// `start`, and that completed at `end`. Sectors of a flush or a trim are not counted.
    pub fn complete(&mut self, operation: Operation, sectors: u32, entry: SimTime, start: SimTime, end: SimTime) {
        let latency_ns = end.since(entry).0;
        let histogram = match operation {
            Operation::Read => {
                self.host.count(Direction::Read, sectors as u64);
                &mut self.reads
            }
            Operation::Write => {
                self.host.count(Direction::Write, sectors as u64);
                &mut self.writes
            }
            Operation::Flush | Operation::Trim => &mut self.others,
        };
        histogram.record(latency_ns);
        let queued_ns = start.since(entry).0;
        self.queue.record(queued_ns);
        self.service.record(latency_ns - queued_ns);
        let bytes = if operation == Operation::Trim { 0 } else { sectors as u64 * self.sector_bytes };
        self.windows.complete(end, operation == Operation::Read, bytes);
        self.waiting.complete(end);
        self.ended = self.ended.max(end);
    }

    /// Counts a request that was rejected for `reason`. The request counts for nothing else.
    pub fn reject(&mut self, reason: &'static str) {
        *self.rejected.entry(reason).or_default() += 1;
    }

    /// Returns the number of requests completed since measuring began, flushes and trims included.
    pub fn completed(&self) -> u64 {
        self.reads.count() + self.writes.count() + self.others.count()
    }

    /// Returns the latencies of all requests completed since measuring began, flushes and trims included. A latency is
    /// the time from entry into the queue to completion.
    pub fn all(&self) -> LatencyHistogram {
        let mut all = self.reads.clone();
        all.add(&self.writes);
        all.add(&self.others);
        all
    }
}
