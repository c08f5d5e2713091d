//! Results: what a run on one drive came to, in the versioned form of `summary.json`.
//!
//! Units are in the field names. Times are integer nanoseconds, sizes bytes, ratios numbers. `wall_seconds` and
//! `requests_per_second` are the only fields that differ between two runs.

use std::collections::BTreeMap;

use imbrex_layer::verify::RuleBreaks;
use serde::{Deserialize, Serialize};

use crate::metrics::counters::Counters;
use crate::metrics::latency::LatencyHistogram;

/// The name and version of this form of results, as `summary.json` states it.
pub const SUMMARY_SCHEMA: &str = "imbrex.simulate/1";

/// Mean, quantiles and maximum of a set of durations.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Mean.
    pub mean: u64,
    /// Median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// 99.99 %.
    pub p9999: u64,
    /// Longest.
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

/// Latency by direction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LatencyByOperation {
    /// All requests.
    pub all: LatencySummary,
    /// Reads.
    pub read: LatencySummary,
    /// Writes.
    pub write: LatencySummary,
    /// Time in the queue, of all.
    pub queue: LatencySummary,
    /// Time in service, of all.
    pub service: LatencySummary,
}

/// Time spent in service, by part, summed over the run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ServiceTime {
    /// Arm movement.
    pub seek: u64,
    /// Rotational wait.
    pub rotation: u64,
    /// Sectors passing under the head.
    pub transfer: u64,
    /// Controller.
    pub overhead: u64,
    /// Cleaning and other work of the layer, in the foreground or not.
    pub cleaning: u64,
}

/// The six counters of Cassuto 2010 §III.B.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CounterSummary {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Blocks read.
    pub read_blocks: u64,
    /// Blocks written.
    pub write_blocks: u64,
    /// Pieces read of at most 1000 blocks.
    pub adjusted_reads: u64,
    /// Pieces written of at most 1000 blocks.
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

/// Windows of completions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Width of each.
    pub width_ns: u64,
    /// How many.
    pub count: u64,
    /// How many with no completion.
    pub zero: u64,
}

/// Cleaning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CleaningSummary {
    /// Groups of cleaning, migration or repair.
    pub events: u64,
    /// Logical sectors they wrote.
    pub sectors: u64,
    /// Mean duration.
    pub mean_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Longest that a host request stood still because of it.
    pub longest_stall_ns: u64,
}

/// One drive's results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DriveResult {
    /// The drive as it was named with `--drive`.
    pub drive: String,
    /// Whether it was added by the program, to compare with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
    /// Name of the profile.
    pub profile: String,
    /// Name of the layer.
    pub layer: String,
    /// The layer's parameters, defaults included.
    pub parameters: BTreeMap<String, String>,
    /// How requests arrived.
    pub arrival: String,
    /// Depth of the queue; zero is unbounded.
    pub queue_depth: u64,
    /// The scheduler.
    pub schedule: String,
    /// Volatile write cache.
    pub write_cache_bytes: u64,
    /// Logical capacity.
    pub capacity_bytes: u64,
    /// Physical sectors that hold no logical ones, as a share of the logical.
    pub over_provisioning: f64,
    /// Capacity over the conventional drive of like surfaces.
    pub capacity_gain: f64,
    /// Requests completed.
    pub completed: u64,
    /// Requests rejected, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Simulated time from the first entry to the last completion.
    pub duration_ns: u64,
    /// Duration over the baseline's, where there is one.
    pub slowdown: Option<f64>,
    /// The drive that the slowdown and the ratios of a report are taken against: its own baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
    /// Of a run that was stopped: the requests, from the first on, whose time is compared, since both drives completed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_requests: Option<u64>,
    /// Latencies.
    pub latency_ns: LatencyByOperation,
    /// Service time by part.
    pub service_ns: ServiceTime,
    /// Counters at the host.
    pub host: CounterSummary,
    /// Counters at the medium.
    pub medium: CounterSummary,
    /// Blocks written at the medium, by cause; those of the journal by what they hold.
    pub medium_write_blocks: BTreeMap<String, u64>,
    /// Blocks read at the medium, by cause.
    pub medium_read_blocks: BTreeMap<String, u64>,
    /// Definition 4 of Cassuto 2010.
    pub write_overloading: f64,
    /// Sectors written at the medium for each the host wrote.
    pub write_amplification: f64,
    /// Sectors read at the medium for each the host read.
    pub read_amplification: f64,
    /// Windows.
    pub windows: WindowSummary,
    /// Cleaning.
    pub cleaning: CleaningSummary,
    /// Bytes of mapping state, as our structures have it at the end.
    pub map_bytes: u64,
    /// Bytes of mapping state by the paper's formula.
    pub map_bytes_formula: u64,
    /// `ok`, `off`, or what was found.
    pub integrity: Integrity,
    /// Whether the layer ran in a mode that a power cut could make lose data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paper_safety: bool,
    /// Wall-clock time.
    pub wall_seconds: f64,
    /// Requests simulated per second of wall-clock time.
    pub requests_per_second: f64,
}

/// What `--check` found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Integrity {
    /// `ok` or `off`.
    Word(String),
    /// The first violation.
    Violation {
        /// What was broken.
        violation: String,
        /// The number of the request that broke it, counted from 1.
        request: u64,
    },
    /// On a host-managed drive: what the host did against its rules and to its own data.
    RuleBreaks {
        /// Writes that such a drive refuses; they were carried out all the same.
        rule_breaks: u64,
        /// Sectors, written and not given up, that the host's own writes destroyed; not counted without `--check`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        live_sectors_destroyed: Option<u64>,
        /// The first of either, in words.
        first: String,
        /// The number of the request that was the latest to enter then, counted from 1.
        request: u64,
    },
}

impl Integrity {
    /// What a host did to its drive; what that destroyed was `looked_for`, or is not known.
    pub fn of_breaks(breaks: &RuleBreaks, looked_for: bool) -> Integrity {
        Integrity::RuleBreaks {
            rule_breaks: breaks.writes,
            live_sectors_destroyed: looked_for.then_some(breaks.live_sectors_destroyed),
            first: breaks.first.clone(),
            request: breaks.request,
        }
    }

    /// Not checked.
    pub fn off() -> Integrity {
        Integrity::Word("off".into())
    }

    /// Checked and whole.
    pub fn ok() -> Integrity {
        Integrity::Word("ok".into())
    }

    /// Whether something live was lost by a fault of the layer.
    pub fn is_violated(&self) -> bool {
        matches!(self, Integrity::Violation { .. })
    }

    /// Sectors that were live until the host's own writes destroyed them.
    pub fn live_sectors_destroyed(&self) -> u64 {
        match self {
            Integrity::RuleBreaks { live_sectors_destroyed, .. } => live_sectors_destroyed.unwrap_or(0),
            Integrity::Word(_) | Integrity::Violation { .. } => 0,
        }
    }
}
