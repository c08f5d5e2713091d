//! Results of a run on one drive, in the versioned form of `summary.json`.
//!
//! Units are in the field names. Times are integer nanoseconds, sizes bytes, ratios numbers. `wall_seconds` and
//! `requests_per_second` are the only fields that differ between two runs.

use std::collections::BTreeMap;

use imbrex_layer::verify::RuleBreaks;
use serde::{Deserialize, Serialize};

use crate::metrics::counters::Counters;
use crate::metrics::latency::LatencyHistogram;

/// Name and version of the format of `summary.json`, which the document states in its field `schema`.
pub const SUMMARY_SCHEMA: &str = "imbrex.simulate/2";

/// Mean, quantiles and maximum of a set of durations, in nanoseconds; all 0 if the set is empty. Quantiles may be up to
/// 0.1 % too high; mean and maximum are exact.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Mean, in nanoseconds.
    pub mean: u64,
    /// Median, in nanoseconds.
    pub p50: u64,
    /// 90 % quantile, in nanoseconds.
    pub p90: u64,
    /// 99 % quantile, in nanoseconds.
    pub p99: u64,
    /// 99.9 % quantile, in nanoseconds.
    pub p999: u64,
    /// 99.99 % quantile, in nanoseconds.
    pub p9999: u64,
    /// Maximum, in nanoseconds.
    pub max: u64,
}

impl From<&LatencyHistogram> for LatencySummary {
    fn from(histogram: &LatencyHistogram) -> LatencySummary {
        LatencySummary {
            mean: histogram.mean_ns(),
            p50: histogram.quantile_ns(0.5),
            p90: histogram.quantile_ns(0.9),
            p99: histogram.quantile_ns(0.99),
            p999: histogram.quantile_ns(0.999),
            p9999: histogram.quantile_ns(0.9999),
            max: histogram.max_ns(),
        }
    }
}

/// Latencies of completed requests, by kind of request. A latency is the time from entry into the queue to completion.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LatencyByOperation {
    /// Latency of all requests, flushes and trims included.
    pub all: LatencySummary,
    /// Latency of reads.
    pub read: LatencySummary,
    /// Latency of writes.
    pub write: LatencySummary,
    /// Time from entry into the queue to the start of service, over all requests.
    pub queue: LatencySummary,
    /// Time from the start of service to completion, over all requests.
    pub service: LatencySummary,
    /// Time from a request's own time in the workload to its entry into the queue, over all requests. It is part of no
    /// latency. 0 if the arrival process does not follow the times of the workload.
    #[serde(default)]
    pub before_queue: LatencySummary,
}

/// A latency divided by the baseline's.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LatencyRatio {
    /// Ratio of the means.
    pub mean: f64,
    /// Ratio of the 99 % quantiles.
    pub p99: f64,
}

/// Latencies divided by the baseline's, by kind of request; `None` for a kind without requests.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LatencyRatios {
    /// All requests.
    pub all: Option<LatencyRatio>,
    /// Reads.
    pub read: Option<LatencyRatio>,
    /// Writes.
    pub write: Option<LatencyRatio>,
}

/// Service time by part, summed over the run, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ServiceTime {
    /// Time of arm movement, settling and head switches for host requests, in nanoseconds.
    pub seek: u64,
    /// Time of rotational wait for host requests, in nanoseconds.
    pub rotation: u64,
    /// Time in which sectors pass under the head, or are transferred from or to flash, for host requests, in
    /// nanoseconds.
    pub transfer: u64,
    /// Time of controller, bus, volatile cache and slow sectors, in nanoseconds.
    pub overhead: u64,
    /// Time of cleaning and other work of the layer's own, in the foreground and in the background, in nanoseconds.
    pub cleaning: u64,
}

/// The six counters of Cassuto 2010 §III.B. A block is one sector.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CounterSummary {
    /// Number of read commands.
    pub reads: u64,
    /// Number of write commands.
    pub writes: u64,
    /// Number of blocks read; a block is one sector of the drive.
    pub read_blocks: u64,
    /// Number of blocks written; a block is one sector of the drive.
    pub write_blocks: u64,
    /// Number of adjusted reads: pieces of at most 1000 blocks into which the reads are cut.
    pub adjusted_reads: u64,
    /// Number of adjusted writes: pieces of at most 1000 blocks into which the writes are cut.
    pub adjusted_writes: u64,
}

impl From<&Counters> for CounterSummary {
    fn from(counters: &Counters) -> CounterSummary {
        CounterSummary {
            reads: counters.reads.commands,
            writes: counters.writes.commands,
            read_blocks: counters.reads.blocks,
            write_blocks: counters.writes.blocks,
            adjusted_reads: counters.reads.adjusted,
            adjusted_writes: counters.writes.adjusted,
        }
    }
}

/// The windows of simulated time in which completions of requests were counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Width of a window, in nanoseconds.
    pub width_ns: u64,
    /// Number of windows, a last one that the end of the run cuts short included.
    pub count: u64,
    /// Number of windows in which no request completed, idle ones included.
    pub zero: u64,
    /// Number of windows in which a request was outstanding at some time.
    #[serde(default)]
    pub busy: u64,
    /// Number of windows in which a request was outstanding and none completed.
    #[serde(default)]
    pub stalled: u64,
}

/// Statistics of cleaning events. An event is one piece of a layer's own work: a cleaning, a migration or a repair.
/// Host requests may be served between the phases of an event.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CleaningSummary {
    /// Number of cleaning events that began.
    pub events: u64,
    /// Number of sectors of host data that the cleaning events wrote.
    pub sectors: u64,
    /// Mean duration of a cleaning event: the sum of its phases, in nanoseconds.
    pub mean_ns: u64,
    /// Duration of the longest cleaning event: the sum of its phases, in nanoseconds.
    pub max_ns: u64,
    /// Longest time for which cleaning stalled a host request, in nanoseconds.
    pub longest_stall_ns: u64,
}

/// Results of one workload on one drive. Requests of the warm-up are not counted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DriveResult {
    /// Text of the drive, as given with `--drive`, or the text of a baseline that the program added.
    pub drive: String,
    /// Whether the program added the drive, as a baseline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
    /// Name of the profile.
    pub profile: String,
    /// Name of the translation layer.
    pub layer: String,
    /// Parameters of the layer as text, by key, defaults included.
    pub parameters: BTreeMap<String, String>,
    /// Name of the arrival process.
    pub arrival: String,
    /// Maximum number of outstanding requests; 0 is unbounded.
    pub queue_depth: u64,
    /// Name of the scheduler.
    pub schedule: String,
    /// Size of the volatile write cache in bytes; 0 if it is off.
    pub write_cache_bytes: u64,
    /// Capacity that the layer offers to the host, in bytes.
    pub capacity_bytes: u64,
    /// (physical sectors − logical sectors) / logical sectors.
    pub over_provisioning: f64,
    /// Capacity divided by that of a conventional drive with equally many surfaces.
    pub capacity_gain: f64,
    /// Number of requests completed.
    pub completed: u64,
    /// Number of requests that the drive rejected, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Simulated time from the start of the run, or the end of the warm-up, to the last completion, in nanoseconds.
    pub duration_ns: u64,
    /// Duration divided by that of the drive in `compared_with`; `None` if there is none. If requests arrive at times of
    /// their own, it is near 1 also for a drive that answers much later.
    #[serde(default)]
    pub duration_ratio: Option<f64>,
    /// Equal to `duration_ratio`, which had this name in `imbrex.simulate/1`.
    pub slowdown: Option<f64>,
    /// Latencies divided by those of the baseline, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ratio: Option<LatencyRatios>,
    /// Longest time for which requests were outstanding and none completed.
    #[serde(default)]
    pub longest_stall_ns: u64,
    /// Total time for which as many requests were outstanding as the queue takes.
    #[serde(default)]
    pub queue_full_ns: u64,
    /// Name of the drive's baseline: all ratios are relative to this drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
    /// For a run that was stopped: the number of first requests that both drives completed, whose time is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_requests: Option<u64>,
    /// Latencies by kind of request.
    pub latency_ns: LatencyByOperation,
    /// Service time by part, summed over the run.
    pub service_ns: ServiceTime,
    /// Counters of the host's reads and writes.
    pub host: CounterSummary,
    /// Counters of the layer's reads and writes on platters and flash together.
    pub medium: CounterSummary,
    /// Number of blocks written at the medium, by cause; those of the journal by their contents. A block is a sector.
    pub medium_write_blocks: BTreeMap<String, u64>,
    /// Number of blocks read at the medium, by cause; those of the journal by their contents. A block is a sector.
    pub medium_read_blocks: BTreeMap<String, u64>,
    /// Write overloading: (adjusted writes + adjusted reads at the medium − adjusted reads of the host) / adjusted
    /// writes of the host (Cassuto 2010, definition 4). 0 if the host wrote nothing.
    pub write_overloading: f64,
    /// Sectors written at the medium divided by sectors written by the host; 0 if the host wrote none.
    pub write_amplification: f64,
    /// Sectors read at the medium divided by sectors read by the host; 0 if the host read none.
    pub read_amplification: f64,
    /// Windows of time in which completions were counted.
    pub windows: WindowSummary,
    /// Statistics of cleaning events.
    pub cleaning: CleaningSummary,
    /// Size of the layer's mapping state in memory at the end of the run, in bytes.
    pub map_bytes: u64,
    /// Size of the layer's mapping state by the formula of the layer's paper, in bytes.
    pub map_bytes_formula: u64,
    /// Result of the integrity check.
    pub integrity: Integrity,
    /// Whether the layer ran in a mode in which a power cut could lose data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paper_safety: bool,
    /// Wall-clock time that the simulation of this drive took, in seconds.
    pub wall_seconds: f64,
    /// Number of requests simulated per second of wall-clock time, those of the warm-up included.
    pub requests_per_second: f64,
}

/// Result of the integrity check (`--check`), and of the check of a host-managed drive's write rules.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Integrity {
    /// `ok` if a check found nothing wrong, `off` if there was none.
    Word(String),
    /// The first violation: a fault of the layer destroyed live data.
    Violation {
        /// Text that describes the first destruction of live data by a plan of the layer.
        violation: String,
        /// Number of requests that had been read from the workload when the violation was found.
        request: u64,
    },
    /// On a host-managed drive: violations of the drive's rules by the host, and damage by the host to its own data.
    RuleBreaks {
        /// Number of host writes that a real host-managed drive would refuse; the simulation carried them out.
        rule_breaks: u64,
        /// Sectors, written and not trimmed, that the host's own writes destroyed; not counted without `--check`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        live_sectors_destroyed: Option<u64>,
        /// Text that describes the first refused write or destruction of live data by the host, whichever came first.
        first: String,
        /// Number of the request, counted from 1, that had entered last when the event described by `first` occurred.
        request: u64,
    },
}

impl Integrity {
    /// Creates [`Integrity::RuleBreaks`] for a host that broke the rules of its drive. `looked_for` states whether the
    /// integrity check ran, and so counted destroyed sectors; if not, their number is left out.
    pub fn of_breaks(breaks: &RuleBreaks, looked_for: bool) -> Integrity {
        Integrity::RuleBreaks {
            rule_breaks: breaks.writes,
            live_sectors_destroyed: looked_for.then_some(breaks.live_sectors_destroyed),
            first: breaks.first.clone(),
            request: breaks.request,
        }
    }

    /// Returns the result of a run without an integrity check: `off`.
    pub fn off() -> Integrity {
        Integrity::Word("off".into())
    }

    /// Returns the result of an integrity check that found nothing wrong: `ok`.
    pub fn ok() -> Integrity {
        Integrity::Word("ok".into())
    }

    /// Returns whether a fault of the layer destroyed live data.
    pub fn is_violated(&self) -> bool {
        matches!(self, Integrity::Violation { .. })
    }

    /// Returns the number of live sectors that the host's own writes destroyed; 0 if they were not counted.
    pub fn live_sectors_destroyed(&self) -> u64 {
        match self {
            Integrity::RuleBreaks { live_sectors_destroyed, .. } => live_sectors_destroyed.unwrap_or(0),
            Integrity::Word(_) | Integrity::Violation { .. } => 0,
        }
    }
}
