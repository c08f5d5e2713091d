//! Converts the outcome of a run to its results.

use imbrex_disk::Direction;

use crate::engine::{Options, Outcome};
use crate::metrics::counters::{MediumCounters, amplification, write_overloading};
use crate::metrics::latency::LatencyHistogram;
use crate::metrics::run::HeadSample;
use crate::metrics::windows::Window;
use crate::results::{CleaningSummary, DriveResult, LatencyByOperation, ServiceTime, WindowSummary};

/// The histograms and series of a run since measuring began, that is, after the warm-up, for the charts. Their size is
/// bounded, however long the run is. A latency is the time from entry into the queue to completion.
#[derive(Clone, Debug)]
pub struct DriveSeries {
    /// Latencies of the reads that completed since measuring began, in nanoseconds: time from entry into the queue to
    /// completion.
    pub reads: LatencyHistogram,
    /// Latencies of the writes that completed since measuring began, in nanoseconds: time from entry into the queue to
    /// completion.
    pub writes: LatencyHistogram,
    /// Latencies of all requests that completed since measuring began, flushes and trims included, in nanoseconds: time
    /// from entry into the queue to completion.
    pub all: LatencyHistogram,
    /// Numbers and bytes of completed requests over simulated time since measuring began: at most 4096 points without
    /// gaps, each `window_ns` nanoseconds wide.
    pub windows: Vec<Window>,
    /// Width of a point of `windows`, in nanoseconds of simulated time.
    pub window_ns: u64,
    /// Time of the layer's own work (cleaning, migration and recovery) over simulated time since measuring began, in
    /// nanoseconds: at most 4096 points without gaps, each `own_work_window_ns` nanoseconds wide.
    pub own_work: Vec<u64>,
    /// Width of a point of `own_work`, in nanoseconds of simulated time.
    pub own_work_window_ns: u64,
    /// Samples of the path of the head since measuring began, at most 4096.
    pub head: Vec<HeadSample>,
    /// Samples of entries into the queue, at most 4096: (number, simulated time in ns since the start of the run). The
    /// number counts, from 0, the requests that entered since measuring began, without rejected ones.
    pub issues: Vec<(u64, u64)>,
}

/// Returns the results and the series of the run that ended with `outcome`. `options` are those of the run, and
/// `wall_seconds` is the wall-clock time that it took, in seconds. All ratios to a baseline drive are `None`.
pub fn summarize(outcome: &Outcome, options: &Options, wall_seconds: f64) -> (DriveResult, DriveSeries) {
    (result(outcome, options, wall_seconds), series(outcome))
}

fn result(outcome: &Outcome, options: &Options, wall_seconds: f64) -> DriveResult {
    let (drive, metrics, timing) = (&outcome.drive, &outcome.metrics, &outcome.timing);
    let duration_ns = metrics.ended.since(metrics.begun).0;
    let (window_count, window_zero) = metrics.windows.count(metrics.ended);
    let durations = timing.cleaning.durations();
    let memory = drive.layer.memory();
    let (host, medium) = (&metrics.host, &timing.counters.total);
    let physical = drive.disk.geometry.sectors().0;
    let logical = drive.layer.capacity().0;
    DriveResult {
        drive: drive.label.clone(),
        baseline: false,
        profile: drive.profile.name.clone(),
        layer: drive.layer.name().to_string(),
        parameters: drive.parameters.iter().cloned().collect(),
        arrival: options.arrival.name().to_string(),
        queue_depth: if options.arrival.depth() == usize::MAX { 0 } else { options.arrival.depth() as u64 },
        schedule: options.schedule.name().to_string(),
        write_cache_bytes: options.write_cache_bytes,
        capacity_bytes: drive.capacity_bytes(),
        over_provisioning: (physical - logical) as f64 / logical as f64,
        capacity_gain: drive.capacity_gain(),
        completed: metrics.completed(),
        rejected: metrics.rejected.iter().map(|(reason, &count)| (reason.to_string(), count)).collect(),
        duration_ns,
        duration_ratio: None,
        slowdown: None,
        latency_ratio: None,
        longest_stall_ns: metrics.waiting.longest.0,
        queue_full_ns: metrics.waiting.full.0,
        compared_with: None,
        compared_requests: None,
        latency_ns: latencies(outcome),
        service_ns: ServiceTime { ..metrics.parts },
        host: host.into(),
        medium: medium.into(),
        medium_write_blocks: by_cause(&timing.counters, Direction::Write),
        medium_read_blocks: by_cause(&timing.counters, Direction::Read),
        write_overloading: write_overloading(host, medium),
        write_amplification: amplification(&host.writes, &medium.writes),
        read_amplification: amplification(&host.reads, &medium.reads),
        windows: WindowSummary {
            width_ns: metrics.windows.width_ns(),
            count: window_count,
            zero: window_zero,
            busy: metrics.waiting.busy,
            stalled: metrics.waiting.stalled,
        },
        cleaning: CleaningSummary {
            events: timing.cleaning.events(),
            sectors: timing.cleaning.sectors(),
            mean_ns: durations.mean_ns(),
            max_ns: durations.max_ns(),
            longest_stall_ns: timing.cleaning.longest_stall_ns(),
        },
        map_bytes: memory.measured_bytes,
        map_bytes_formula: memory.formula_bytes,
        integrity: outcome.integrity.clone(),
        paper_safety: !drive.layer.is_power_safe(),
        over_seeds: std::collections::BTreeMap::new(),
        wall_seconds,
        requests_per_second: if wall_seconds > 0.0 { outcome.requests as f64 / wall_seconds } else { 0.0 },
    }
}

fn latencies(outcome: &Outcome) -> LatencyByOperation {
    let metrics = &outcome.metrics;
    LatencyByOperation {
        all: (&metrics.all()).into(),
        read: (&metrics.reads).into(),
        write: (&metrics.writes).into(),
        queue: (&metrics.queue).into(),
        service: (&metrics.service).into(),
        before_queue: (&metrics.waiting.before_queue).into(),
    }
}

fn by_cause(counters: &MediumCounters, direction: Direction) -> std::collections::BTreeMap<String, u64> {
    counters.named(direction).map(|(cause, blocks)| (cause.to_string(), blocks)).collect()
}

fn series(outcome: &Outcome) -> DriveSeries {
    let metrics = &outcome.metrics;
    let (windows, window_ns) = metrics.windows.series();
    let (own_work, own_work_window_ns) = metrics.own_work.series();
    DriveSeries {
        reads: metrics.reads.clone(),
        writes: metrics.writes.clone(),
        all: metrics.all(),
        windows: windows.to_vec(),
        window_ns,
        own_work: own_work.to_vec(),
        own_work_window_ns,
        head: metrics.head.iter().map(|(_, sample)| sample).collect(),
        issues: metrics.issues.iter().collect(),
    }
}
