//! Results of a run on one drive, in the versioned form of `summary.json`.
//!
//! Units are in the field names. Times are integer nanoseconds, sizes bytes, ratios numbers. `wall_seconds` and
//! `requests_per_second` are the only fields that differ between two runs.

use std::collections::BTreeMap;

use imbrex_layer::verify::RuleBreaks;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::metrics::counters::Counters;
use crate::metrics::latency::LatencyHistogram;

/// Name and version of the format of `summary.json`, which the document states in its field `schema`.
pub const SUMMARY_SCHEMA: &str = "imbrex.simulate/2";

/// Mean, quantiles and maximum of a set of durations, in nanoseconds; all 0 if the set is empty. Quantiles may be up to
/// 0.1 % too high; mean and maximum are exact.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Mean of the durations, rounded to the nearest nanosecond; 0 if there are none.
    pub mean: u64,
    /// Median of the durations, in nanoseconds, up to 0.1 % too high; 0 if there are none.
    pub p50: u64,
    /// 90 % quantile of the durations, in nanoseconds, up to 0.1 % too high; 0 if there are none.
    pub p90: u64,
    /// 99 % quantile of the durations, in nanoseconds, up to 0.1 % too high; 0 if there are none.
    pub p99: u64,
    /// 99.9 % quantile of the durations, in nanoseconds, up to 0.1 % too high; 0 if there are none.
    pub p999: u64,
    /// 99.99 % quantile of the durations, in nanoseconds, up to 0.1 % too high; 0 if there are none.
    pub p9999: u64,
    /// Longest of the durations, in nanoseconds, exact; 0 if there are none.
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
    /// Time from entry into the queue to completion, in nanoseconds, over all requests completed since the end of the
    /// warm-up, flushes and trims included.
    pub all: LatencySummary,
    /// Time from entry into the queue to completion, in nanoseconds, over the reads completed since the end of the
    /// warm-up.
    pub read: LatencySummary,
    /// Time from entry into the queue to completion, in nanoseconds, over the writes completed since the end of the
    /// warm-up.
    pub write: LatencySummary,
    /// Time from entry into the queue to the start of service, in nanoseconds, over all requests completed since the
    /// end of the warm-up.
    pub queue: LatencySummary,
    /// Time from the start of service to completion, in nanoseconds, over all requests completed since the end of the
    /// warm-up.
    pub service: LatencySummary,
    /// Time from a request's own time in the workload to its entry into the queue, in nanoseconds, over the requests
    /// that entered since the end of the warm-up. It is part of no latency. Requests without such a time are left out;
    /// all 0 if the arrival process does not follow the times of the workload.
    #[serde(default)]
    pub before_queue: LatencySummary,
}

/// Latency of a drive divided by that of its baseline drive, for one kind of request.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LatencyRatio {
    /// Mean latency divided by the baseline drive's mean latency, which counts as at least 1 ns.
    pub mean: f64,
    /// 99 % quantile of the latency divided by the baseline drive's 99 % quantile, which counts as at least 1 ns.
    pub p99: f64,
}

/// Latencies of a drive divided by those of its baseline drive, by kind of request; `None` for a kind of which either
/// drive completed no request.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LatencyRatios {
    /// Ratio for all requests, flushes and trims included; `None` if the drive or its baseline completed none.
    pub all: Option<LatencyRatio>,
    /// Ratio for the reads; `None` if the drive or its baseline completed none.
    pub read: Option<LatencyRatio>,
    /// Ratio for the writes; `None` if the drive or its baseline completed none.
    pub write: Option<LatencyRatio>,
}

/// Service time by part, summed over the run since the end of the warm-up, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ServiceTime {
    /// Total time of arm movement, settling and head switches for host requests and for write-backs of the volatile
    /// cache, in nanoseconds.
    pub seek: u64,
    /// Total time of rotational wait for host requests and for write-backs of the volatile cache, in nanoseconds.
    pub rotation: u64,
    /// Total time in which sectors pass under the head, and of accesses to flash with their latency, for host requests
    /// and for write-backs of the volatile cache, in nanoseconds.
    pub transfer: u64,
    /// Total time of controller, bus and volatile cache for host requests, and the additional time of slow sectors, in
    /// nanoseconds.
    pub overhead: u64,
    /// Total time of cleaning, migration and other work of the layer's own, whether requests wait for it or not, in
    /// nanoseconds.
    pub cleaning: u64,
}

/// The six counters of Cassuto 2010 §III.B. A block is one sector.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CounterSummary {
    /// Number of read commands of any length since the end of the warm-up: the host's completed reads, or the layer's
    /// reads on platters and flash, whichever this summary counts.
    pub reads: u64,
    /// Number of write commands of any length since the end of the warm-up: the host's completed writes, or the layer's
    /// writes on platters and flash, whichever this summary counts.
    pub writes: u64,
    /// Number of blocks that all read commands read; a block is one sector of the drive.
    pub read_blocks: u64,
    /// Number of blocks that all write commands wrote; a block is one sector of the drive.
    pub write_blocks: u64,
    /// Number of adjusted reads: each read of n blocks (sectors) counts as ⌈n / 1000⌉ of them.
    pub adjusted_reads: u64,
    /// Number of adjusted writes: each write of n blocks (sectors) counts as ⌈n / 1000⌉ of them.
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

/// Windows of simulated time, of equal width, in which completions of requests were counted since the end of the
/// warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Width of a window of simulated time, in nanoseconds. Completions of requests are counted in each window.
    pub width_ns: u64,
    /// Number of windows of simulated time from the end of the warm-up to the last completion. A last window that the
    /// end of the run cuts short counts as one.
    pub count: u64,
    /// Number of windows of simulated time in which no request completed, those without outstanding requests included.
    pub zero: u64,
    /// Number of windows of simulated time in which a request was outstanding at some time.
    #[serde(default)]
    pub busy: u64,
    /// Number of windows of simulated time in which a request was outstanding and none completed.
    #[serde(default)]
    pub stalled: u64,
}

/// Statistics of cleaning events. An event is one piece of a layer's own work: a cleaning, a migration or a repair.
/// Host requests may be served between the phases of an event.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CleaningSummary {
    /// Number of cleaning events that began since the end of the warm-up. An event is one cleaning, migration or repair
    /// of the layer.
    pub events: u64,
    /// Number of sectors of host data that the cleaning events wrote since the end of the warm-up, to platters and
    /// flash together.
    pub sectors: u64,
    /// Mean duration of the cleaning events that took time, in nanoseconds; 0 if there are none. The duration of an
    /// event is the sum of its phases.
    pub mean_ns: u64,
    /// Duration of the longest cleaning event, in nanoseconds: the sum of its phases. 0 if there are none.
    pub max_ns: u64,
    /// Longest time of cleaning between the entry of a host request into the queue and its completion, in nanoseconds;
    /// 0 if cleaning stalled no request.
    pub longest_stall_ns: u64,
}

/// Results of one workload on one drive. Requests of the warm-up are not counted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DriveResult {
    /// Text of the drive, as given with `--drive`, or the text of a baseline that the program added.
    pub drive: String,
    /// Whether the program added this drive to the drives of `--drive`, as a baseline for their ratios.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
    /// Name of the drive's profile: the description of its disk and its host side.
    pub profile: String,
    /// Name of the translation layer.
    pub layer: String,
    /// Parameters of the layer as text, by key, defaults included.
    pub parameters: BTreeMap<String, String>,
    /// Name of the arrival process, which gives the times at which requests enter: `fixed-queue`, `closed`, `open` or
    /// `flat-out`.
    pub arrival: String,
    /// Maximum number of outstanding requests that the arrival process permits; 0 means no limit.
    pub queue_depth: u64,
    /// Name of the scheduler, which chooses the next request to serve: `fifo`, `elevator` or `sptf`.
    pub schedule: String,
    /// Size of the volatile write cache in bytes; 0 if it is off.
    pub write_cache_bytes: u64,
    /// Capacity that the layer offers to the host, in bytes.
    pub capacity_bytes: u64,
    /// Over-provisioning: (physical sectors − sectors offered to the host) / sectors offered to the host.
    pub over_provisioning: f64,
    /// Capacity divided by that of a conventional drive with equally many surfaces.
    pub capacity_gain: f64,
    /// Number of requests completed since the end of the warm-up, flushes and trims included.
    pub completed: u64,
    /// Number of requests that the drive rejected since the end of the warm-up, by the text of the reason.
    pub rejected: BTreeMap<String, u64>,
    /// Simulated time from the start of the run, or the end of the warm-up, to the last completion, in nanoseconds.
    pub duration_ns: u64,
    /// Duration of the run divided by that of the baseline drive; `None` if there is no baseline or either drive
    /// completed no request. If requests arrive at times of their own, the ratio is near 1 also for a drive that
    /// answers much later. After an early stop, it covers the first requests that both drives completed.
    #[serde(default)]
    pub duration_ratio: Option<f64>,
    /// Duration of the run divided by that of the baseline drive; `None` if there is no baseline or either drive
    /// completed no request. After an early stop, it covers the first requests that both drives completed. Equal to
    /// `duration_ratio`, which had this name in `imbrex.simulate/1`.
    pub slowdown: Option<f64>,
    /// Latencies divided by those of the baseline drive; `None` if there is no baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ratio: Option<LatencyRatios>,
    /// Longest simulated time for which requests were outstanding and none completed, in nanoseconds.
    #[serde(default)]
    pub longest_stall_ns: u64,
    /// Total simulated time for which as many requests were outstanding as the arrival process permits, in nanoseconds;
    /// 0 if it sets no limit.
    #[serde(default)]
    pub queue_full_ns: u64,
    /// Text of the drive's baseline, to which all ratios are relative; `None` if there is no baseline. A baseline names
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
    /// Number of first requests that this drive and its baseline both completed, whose time `duration_ratio` compares.
    /// Set only if a run was stopped early; otherwise `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_requests: Option<u64>,
    /// Latencies of the requests completed since the end of the warm-up, by kind of request, in nanoseconds.
    pub latency_ns: LatencyByOperation,
    /// Service time since the end of the warm-up, by part (seek, rotation, transfer, overhead, cleaning), in
    /// nanoseconds.
    pub service_ns: ServiceTime,
    /// Counters of the host's completed reads and writes since the end of the warm-up, in commands, sectors and
    /// adjusted commands.
    pub host: CounterSummary,
    /// Counters of the layer's reads and writes on platters and flash together, since the end of the warm-up, in
    /// commands, sectors and adjusted commands.
    pub medium: CounterSummary,
    /// Number of sectors written to platters and flash since the end of the warm-up, by the name of the cause. Sectors
    /// of the layer's journal are split by the name of their contents instead. Names without sectors are left out.
    pub medium_write_blocks: BTreeMap<String, u64>,
    /// Number of sectors read from platters and flash since the end of the warm-up, by the name of the cause. Sectors
    /// of the layer's journal are split by the name of their contents instead. Names without sectors are left out.
    pub medium_read_blocks: BTreeMap<String, u64>,
    /// Write overloading: (adjusted writes + adjusted reads at the medium − adjusted reads of the host) / adjusted
    /// writes of the host (Cassuto 2010, definition 4). 0 if the host wrote nothing.
    pub write_overloading: f64,
    /// Sectors written at the medium divided by sectors written by the host; 0 if the host wrote none.
    pub write_amplification: f64,
    /// Sectors read at the medium divided by sectors read by the host; 0 if the host read none.
    pub read_amplification: f64,
    /// Summary of the windows of equal width into which the simulated time after the warm-up is divided: the width, the
    /// number of windows, and how many of them were without a completion, with outstanding requests, and with
    /// outstanding requests but without a completion. The completions in each window are not listed.
    pub windows: WindowSummary,
    /// Number, durations and sectors of the cleaning events since the end of the warm-up. An event is one cleaning,
    /// migration or repair of the layer.
    pub cleaning: CleaningSummary,
    /// Size of the layer's mapping state in memory at the end of the run, in bytes.
    pub map_bytes: u64,
    /// Size of the layer's mapping state by the formula of the layer's paper, in bytes.
    pub map_bytes_formula: u64,
    /// Result of the check whether the layer kept live data intact and the host kept the rules of a host-managed drive.
    pub integrity: Integrity,
    /// Whether the layer ran in a mode in which a power cut could lose live sectors on the medium, such as
    /// `safety=paper`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paper_safety: bool,
    /// Means and 95 % intervals over the seeds, if the workload ran with more than one (`--seeds`); otherwise empty. A
    /// key is the path of a figure in this document, its names joined by dots, such as `latency_ns.read.mean`. Each
    /// number of this document has one, except the two that depend on wall-clock time and figures that a seed lacks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub over_seeds: BTreeMap<String, Estimate>,
    /// Wall-clock time that the simulation of this drive took, in seconds. The time of reading a workload that several
    /// drives share, and of waiting for the other drives, is not included.
    pub wall_seconds: f64,
    /// Number of requests simulated per second of wall-clock time, those of the warm-up included.
    pub requests_per_second: f64,
}

/// Result of the integrity check (`--check`), and of the check of a host-managed drive's write rules.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Integrity {
    /// `ok` if the integrity check ran and found nothing wrong; `off` if it did not run. Without the check, a
    /// host-managed drive's rules may have been checked and kept.
    Word(String),
    /// The first violation: a fault of the layer destroyed live data.
    Violation {
        /// Text that describes the first destruction of live data by a plan of the layer.
        violation: String,
        /// Number of requests that had been read from the workload when the violation was found, those of the warm-up
        /// included.
        request: u64,
    },
    /// On a host-managed drive: violations of the drive's rules by the host, and damage by the host to its own data.
    RuleBreaks {
        /// Number of host writes that a real host-managed drive would refuse; the simulation carried them out.
        rule_breaks: u64,
        /// Number of sectors, written and not trimmed, that the host's own writes destroyed; `None` if the integrity
        /// check (`--check`) did not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        live_sectors_destroyed: Option<u64>,
        /// Text that describes the first refused write or destruction of live data by the host, whichever came first.
        first: String,
        /// Number of the request, counted from 1, that had entered last when the event described by `first` occurred.
        request: u64,
    },
}

impl Integrity {
    /// Creates [`Integrity::RuleBreaks`], the result for a host that broke the write rules of its host-managed drive.
    /// `looked_for` states whether the integrity check ran, and so counted destroyed sectors; if not, their number is
    /// `None`.
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

    /// Returns the result in one word: `off` or `ok`; `violation` if a fault of the layer destroyed live data;
    /// `live_sectors_destroyed` if the host's own writes destroyed live data; `rule_breaks` if the host broke rules, and
    /// destroyed no live data or the integrity check did not run.
    pub fn word(&self) -> &str {
        match self {
            Integrity::Word(word) => word,
            Integrity::Violation { .. } => "violation",
            Integrity::RuleBreaks { .. } if self.is_data_lost() => "live_sectors_destroyed",
            Integrity::RuleBreaks { .. } => "rule_breaks",
        }
    }

    /// Returns whether the integrity check found that live data was lost, by a fault of the layer or by the host's own
    /// writes. False also if the check did not run.
    pub fn is_data_lost(&self) -> bool {
        self.is_violated() || self.live_sectors_destroyed() > 0
    }

    /// Returns whether the integrity check found that a fault of the layer destroyed live data. False also if the check
    /// did not run.
    pub fn is_violated(&self) -> bool {
        matches!(self, Integrity::Violation { .. })
    }

    /// Returns the number of live sectors (written and not trimmed) that the host's own writes destroyed on a
    /// host-managed drive; 0 if they were not counted.
    pub fn live_sectors_destroyed(&self) -> u64 {
        match self {
            Integrity::RuleBreaks { live_sectors_destroyed, .. } => live_sectors_destroyed.unwrap_or(0),
            Integrity::Word(_) | Integrity::Violation { .. } => 0,
        }
    }
}
