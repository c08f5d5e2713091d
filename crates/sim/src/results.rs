//! Results of a run on one drive, in the versioned form of `summary.json`.
//!
//! Units are in the field names. Times are integer nanoseconds, sizes bytes, ratios numbers. `wall_seconds` and
//! `requests_per_second` are the only fields that differ between two runs.

use std::collections::BTreeMap;

use imbrex_layer::verify::RuleBreaks;
use serde::{Deserialize, Serialize};

use crate::metrics::counters::Counters;
use crate::metrics::latency::LatencyHistogram;

/// Name and version of this form of results, as stated in `summary.json`.
pub const SUMMARY_SCHEMA: &str = "imbrex.simulate/2";

/// Mean, quantiles and maximum of a set of durations, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Mean.
    pub mean: u64,
    /// Median.
    pub p50: u64,
    /// 90 % quantile.
    pub p90: u64,
    /// 99 % quantile.
    pub p99: u64,
    /// 99.9 % quantile.
    pub p999: u64,
    /// 99.99 % quantile.
    pub p9999: u64,
    /// Maximum.
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

/// Latencies by kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LatencyByOperation {
    /// Latency of all requests.
    pub all: LatencySummary,
    /// Latency of reads.
    pub read: LatencySummary,
    /// Latency of writes.
    pub write: LatencySummary,
    /// Time in the queue, over all requests.
    pub queue: LatencySummary,
    /// Time in service, over all requests.
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
    /// Arm movement.
    pub seek: u64,
    /// Rotational wait.
    pub rotation: u64,
    /// Sectors passing under the head.
    pub transfer: u64,
    /// Controller and bus.
    pub overhead: u64,
    /// Cleaning and other work of the layer, in the foreground and in the background.
    pub cleaning: u64,
}

/// The six counters of Cassuto 2010 §III.B. A block is one sector.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CounterSummary {
    /// Number of read commands.
    pub reads: u64,
    /// Number of write commands.
    pub writes: u64,
    /// Blocks read.
    pub read_blocks: u64,
    /// Blocks written.
    pub write_blocks: u64,
    /// Adjusted reads: pieces of at most 1000 blocks into which the reads are cut.
    pub adjusted_reads: u64,
    /// Adjusted writes: pieces of at most 1000 blocks into which the writes are cut.
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

/// Windows of time in which completions are counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Width of a window.
    pub width_ns: u64,
    /// Number of windows.
    pub count: u64,
    /// Number of windows without a completion, idle ones among them.
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
    /// Number of logical sectors that the cleaning events wrote.
    pub sectors: u64,
    /// Mean duration of a cleaning event: the sum of its phases, in nanoseconds.
    pub mean_ns: u64,
    /// Duration of the longest cleaning event: the sum of its phases, in nanoseconds.
    pub max_ns: u64,
    /// Longest time for which cleaning stalled a host request.
    pub longest_stall_ns: u64,
}

/// Results of one drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DriveResult {
    /// Text of the drive, as given with `--drive`, or the text of a baseline that the program added.
    pub drive: String,
    /// Whether the program added the drive, as a baseline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
    /// Name of the profile.
    pub profile: String,
    /// Name of the layer.
    pub layer: String,
    /// The layer's parameters, defaults included.
    pub parameters: BTreeMap<String, String>,
    /// Name of the arrival process.
    pub arrival: String,
    /// Depth of the queue; 0 is unbounded.
    pub queue_depth: u64,
    /// Name of the scheduler.
    pub schedule: String,
    /// Size of the volatile write cache.
    pub write_cache_bytes: u64,
    /// Logical capacity.
    pub capacity_bytes: u64,
    /// Physical sectors that hold no logical ones, divided by the logical sectors.
    pub over_provisioning: f64,
    /// Capacity divided by that of the conventional drive of like surfaces.
    pub capacity_gain: f64,
    /// Requests completed.
    pub completed: u64,
    /// Requests rejected, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Simulated time from the first entry to the last completion.
    pub duration_ns: u64,
    /// Duration divided by that of the baseline, if there is one. If requests arrive at times of their own, it says little:
    /// a drive may answer much later and still end with the workload.
    #[serde(default)]
    pub duration_ratio: Option<f64>,
    /// The same as `duration_ratio`: its name in `imbrex.simulate/1`.
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
    /// Service time by part.
    pub service_ns: ServiceTime,
    /// Counters at the host.
    pub host: CounterSummary,
    /// Counters of the layer's reads and writes on platters and flash together.
    pub medium: CounterSummary,
    /// Blocks written at the medium, by cause; those of the journal by their contents.
    pub medium_write_blocks: BTreeMap<String, u64>,
    /// Blocks read at the medium, by cause.
    pub medium_read_blocks: BTreeMap<String, u64>,
    /// Write overloading: definition 4 of Cassuto 2010.
    pub write_overloading: f64,
    /// Sectors written at the medium divided by sectors written by the host.
    pub write_amplification: f64,
    /// Sectors read at the medium divided by sectors read by the host.
    pub read_amplification: f64,
    /// Windows of completions.
    pub windows: WindowSummary,
    /// Statistics of cleaning.
    pub cleaning: CleaningSummary,
    /// Bytes of mapping state in memory at the end of the run.
    pub map_bytes: u64,
    /// Bytes of mapping state by the paper's formula.
    pub map_bytes_formula: u64,
    /// Result of the integrity check.
    pub integrity: Integrity,
    /// Whether the layer ran in a mode in which a power cut could lose data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paper_safety: bool,
    /// Wall-clock time for which this drive ran.
    pub wall_seconds: f64,
    /// Requests simulated per second of wall-clock time.
    pub requests_per_second: f64,
}

/// Result of `--check`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Integrity {
    /// `ok` or `off`.
    Word(String),
    /// The first violation.
    Violation {
        /// Description of the violation.
        violation: String,
        /// Number of the request that caused the violation, counted from 1.
        request: u64,
    },
    /// On a host-managed drive: violations of the drive's rules by the host, and damage by the host to its own data.
    RuleBreaks {
        /// Writes that a real drive of this kind would refuse; the simulation carried them out.
        rule_breaks: u64,
        /// Sectors, written and not trimmed, that the host's own writes destroyed; not counted without `--check`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        live_sectors_destroyed: Option<u64>,
        /// Description of the first violation or damage.
        first: String,
        /// Number of the request that had entered last at that time, counted from 1.
        request: u64,
    },
}

impl Integrity {
    /// Creates the result for a host that broke its drive's rules. With `looked_for`, destroyed sectors were counted
    /// too.
    pub fn of_breaks(breaks: &RuleBreaks, looked_for: bool) -> Integrity {
        Integrity::RuleBreaks {
            rule_breaks: breaks.writes,
            live_sectors_destroyed: looked_for.then_some(breaks.live_sectors_destroyed),
            first: breaks.first.clone(),
            request: breaks.request,
        }
    }

    /// Returns the result of a run without check.
    pub fn off() -> Integrity {
        Integrity::Word("off".into())
    }

    /// Returns the result of a check that found nothing wrong.
    pub fn ok() -> Integrity {
        Integrity::Word("ok".into())
    }

    /// Returns whether a fault of the layer destroyed live data.
    pub fn is_violated(&self) -> bool {
        matches!(self, Integrity::Violation { .. })
    }

    /// Returns the number of live sectors that the host's own writes destroyed.
    pub fn live_sectors_destroyed(&self) -> u64 {
        match self {
            Integrity::RuleBreaks { live_sectors_destroyed, .. } => live_sectors_destroyed.unwrap_or(0),
            Integrity::Word(_) | Integrity::Violation { .. } => 0,
        }
    }
}
