//! The explanations as a document for JSON, and as rows for tables.

use std::ops::RangeInclusive;

use imbrex_disk::{Lba, Operation};
use imbrex_layer::Area;
use imbrex_sim::explain::{Cause, Devices, Explained, Fill, Of, Part, Ranges, Summary};
use serde::{Deserialize, Serialize};

use crate::workload::Workload;

/// Version of the document's fields. Its number rises when a field changes its meaning or disappears.
pub const EXPLAIN_SCHEMA: &str = "imbrex.explain/1";

/// Largest number of ranges of request numbers in a list.
const RANGES_MAX: usize = 1000;

/// The explanations of a workload on drives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainDocument {
    /// Version of the document's fields.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The command line that makes this document.
    pub command: Vec<String>,
    /// Name of the workload.
    pub workload: String,
    /// The explanations of each drive.
    pub drives: Vec<ExplainedDrive>,
    /// Warnings, as text for people.
    pub warnings: Vec<String>,
}

impl ExplainDocument {
    pub(crate) fn new(
        command: Vec<String>,
        workload: &Workload,
        drives: Vec<ExplainedDrive>,
        warnings: Vec<String>,
    ) -> ExplainDocument {
        ExplainDocument::of(command, &workload.name, drives, warnings)
    }

    pub(super) fn of(
        command: Vec<String>,
        workload: &str,
        drives: Vec<ExplainedDrive>,
        warnings: Vec<String>,
    ) -> ExplainDocument {
        let version = env!("CARGO_PKG_VERSION").to_string();
        let (schema, workload) = (EXPLAIN_SCHEMA.to_string(), workload.to_string());
        ExplainDocument { schema, version, command, workload, drives, warnings }
    }
}

/// The explanations of one drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedDrive {
    /// Text of the drive.
    pub drive: String,
    /// Text of the drive that gives the baseline latencies; `None` if there is none.
    pub baseline: Option<String>,
    /// Size of a sector in bytes: all addresses and lengths are in sectors.
    pub sector_bytes: u32,
    /// The time from which latencies are counted: `arrival`, or `entry` into the queue if the arrival process does not
    /// follow the times of the workload. With the arrival process `fixed-queue`, the arrival is moved by the delay of the
    /// requests before it.
    pub latency_from: String,
    /// The chosen requests.
    pub requests: Vec<ExplainedRequest>,
    /// The causes of all requests together.
    pub summary: ExplainSummary,
}

/// A request and the parts of its latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedRequest {
    /// Number of the request in the workload, counted from 0.
    pub number: u64,
    /// `read`, `write`, `flush` or `trim`.
    pub operation: String,
    /// First sector.
    pub lba: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Device of the trace.
    pub device: u32,
    /// Simulated time of the arrival in nanoseconds.
    pub arrival_ns: u64,
    /// Simulated time of the entry into the queue in nanoseconds.
    pub entry_ns: u64,
    /// Simulated time at which the service began, in nanoseconds.
    pub start_ns: u64,
    /// Simulated time of the answer in nanoseconds.
    pub end_ns: u64,
    /// Time from the arrival to the answer in nanoseconds.
    pub latency_ns: u64,
    /// Latency of the same request on the baseline drive in nanoseconds; `None` without a baseline, or if that drive
    /// completed no such request.
    pub baseline_latency_ns: Option<u64>,
    /// Latency minus that on the baseline drive, in nanoseconds.
    pub excess_ns: Option<i64>,
    /// Time of the parts that do work which a conventional drive does not do, in nanoseconds.
    pub unconventional_ns: u64,
    /// The parts of the latency, which sum to it.
    pub parts: Vec<ExplainedPart>,
    /// The replays of the request, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
}

/// The replays of one request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Replay {
    /// Time that the drive spent on work which a conventional drive does not do, in nanoseconds.
    pub blamed_ns: u64,
    /// Latency in nanoseconds if that work takes no time.
    pub without_blamed_time_ns: Option<u64>,
    /// Latency in nanoseconds without all writes from the first to the last that filled each store, writes to other
    /// places among them included.
    pub without_blamed_writes_ns: Option<u64>,
    /// Number of writes that were left out.
    pub writes_left_out: u64,
}

/// A part of a latency.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainedPart {
    /// Name of the cause.
    pub cause: String,
    /// Time of the part in nanoseconds.
    pub duration_ns: u64,
    /// Whether a conventional drive does this kind of work too; `None` if the work is not known.
    pub conventional: Option<bool>,
    /// The requests or the work that took the time.
    pub of: PartOf,
}

/// The requests or the work that took the time of a part. Fields that do not apply are left out.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct PartOf {
    /// Ranges of request numbers: first and last. Of a write-back: the oldest write in each range written back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<(u64, u64)>,
    /// Number of further ranges, which are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub further_ranges: u64,
    /// The reason of a write-back: `room`, `flush`, `order` or `idle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_back: Option<String>,
    /// Number of the piece of the layer's own work in the run, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The part of the drive that the work cleans, or to which it moves data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Place>,
    /// The event that made the work necessary, such as `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// The part of the drive that the work relieves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Place>,
    /// The writes that filled the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filled_by: Option<FilledBy>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A part of a drive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The kind of the part, such as `region` or `cache region`.
    pub kind: String,
    /// Number of the part among those of its kind.
    pub number: u32,
}

impl Place {
    fn of(area: Area) -> Place {
        Place { kind: area.kind.name().to_string(), number: area.number }
    }
}

/// The writes that filled a store since it was last relieved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FilledBy {
    /// Numbers of the first and the last request.
    pub requests: (u64, u64),
    /// Number of writes to the store.
    pub writes: u64,
    /// Number of sectors written to the store.
    pub sectors: u64,
    /// Sectors by device, the greatest number first.
    pub devices: Vec<DeviceAmount>,
    /// Ranges that contain all sectors written, as first and last LBA; at most 16.
    pub lba_ranges: Vec<(u64, u64)>,
}

/// An amount by device of the trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeviceAmount {
    /// Device of the trace; `None` for all further devices together.
    pub device: Option<u32>,
    /// Sectors, or nanoseconds in a summary.
    pub amount: u64,
}

/// An amount by LBA range.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RangeAmount {
    /// First and last sector of the range.
    pub lbas: (u64, u64),
    /// Sectors, or nanoseconds in a summary.
    pub amount: u64,
}

/// The causes of all requests together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExplainSummary {
    /// Time by cause, for all requests, those from p99 and p99.9 on, and the longest.
    pub shares: Vec<GroupShares>,
    /// Time that requests waited for others, by the request that waited.
    pub waiting: Involved,
    /// Time that requests waited for others, by the request that was served meanwhile, or whose writes made the work
    /// necessary.
    pub causing: Involved,
    /// Time that requests waited for work that no known request made necessary, in nanoseconds.
    pub unattributed_ns: u64,
}

/// The causes of a group of requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GroupShares {
    /// `all`, `p99`, `p999` or `longest`.
    pub group: String,
    /// Smallest latency of the group in nanoseconds.
    pub from_ns: u64,
    /// Number of requests.
    pub requests: u64,
    /// Sum of the latencies in nanoseconds.
    pub latency_ns: u64,
    /// Sum of the time of each cause that occurs.
    pub causes: Vec<CauseTime>,
}

/// The time of a cause.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CauseTime {
    /// Name of the cause.
    pub cause: String,
    /// Sum in nanoseconds.
    pub duration_ns: u64,
    /// Whether a conventional drive does this kind of work too; `None` if the work is not known.
    pub conventional: Option<bool>,
}

/// Waiting times by address and by device, in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Involved {
    /// The LBA ranges with the greatest times: at most eight, each a 64th of the addressed sectors.
    pub lba_ranges: Vec<RangeAmount>,
    /// Devices of the trace, the greatest time first.
    pub devices: Vec<DeviceAmount>,
}

fn devices_of(devices: &Devices) -> Vec<DeviceAmount> {
    let own = devices.shares().into_iter().map(|(device, amount)| DeviceAmount { device: Some(device), amount });
    let others = (devices.others() > 0).then(|| DeviceAmount { device: None, amount: devices.others() });
    own.chain(others).collect()
}

fn range_of((lbas, amount): (RangeInclusive<Lba>, u64)) -> RangeAmount {
    RangeAmount { lbas: (lbas.start().0, lbas.end().0), amount }
}

impl FilledBy {
    fn new(fill: &Fill) -> FilledBy {
        FilledBy {
            requests: (*fill.requests.start(), *fill.requests.end()),
            writes: fill.writes,
            sectors: fill.sectors.0,
            devices: devices_of(&fill.devices),
            lba_ranges: fill.lbas.iter().map(|range| (range.start().0, range.end().0)).collect(),
        }
    }
}

impl PartOf {
    fn new(of: &Of) -> PartOf {
        let of_requests = |ranges: &[RangeInclusive<u64>]| PartOf {
            requests: ranges.iter().take(RANGES_MAX).map(|range| (*range.start(), *range.end())).collect(),
            further_ranges: ranges.len().saturating_sub(RANGES_MAX) as u64,
            ..PartOf::default()
        };
        match of {
            Of::Nothing => PartOf::default(),
            Of::Requests(ranges) => of_requests(ranges),
            Of::WriteBack(due, ranges) => PartOf { write_back: Some(due.name().to_string()), ..of_requests(ranges) },
            Of::OwnWork { event, reason, fill } => PartOf {
                event: *event,
                target: reason.map(|reason| Place::of(reason.target)),
                due: reason.map(|reason| reason.due.name().to_string()),
                store: reason.and_then(|reason| reason.store).map(Place::of),
                filled_by: fill.as_ref().map(FilledBy::new),
                ..PartOf::default()
            },
        }
    }
}

impl ExplainedPart {
    fn new(part: &Part) -> ExplainedPart {
        ExplainedPart {
            cause: part.cause.name().to_string(),
            duration_ns: part.duration.0,
            conventional: part.cause.is_conventional(),
            of: PartOf::new(&part.of),
        }
    }
}

impl ExplainedRequest {
    pub(super) fn new(request: &Explained, baseline: Option<u64>, replay: Option<Replay>) -> ExplainedRequest {
        let command = &request.command;
        let latency = request.latency().0;
        let operation = match command.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Trim => "trim",
        };
        ExplainedRequest {
            number: request.number,
            operation: operation.to_string(),
            lba: command.lba.0,
            sectors: u64::from(command.sectors),
            device: request.device,
            arrival_ns: request.arrival.0,
            entry_ns: request.entry.0,
            start_ns: request.start.0,
            end_ns: request.end.0,
            latency_ns: latency,
            baseline_latency_ns: baseline,
            excess_ns: baseline.map(|baseline| latency as i64 - baseline as i64),
            unconventional_ns: request.unconventional().0,
            parts: request.parts.iter().map(ExplainedPart::new).collect(),
            replay,
        }
    }
}

impl ExplainSummary {
    pub(super) fn new(summary: &Summary) -> ExplainSummary {
        let involved = |ranges: &Ranges| Involved {
            lba_ranges: ranges.lbas.iter().cloned().map(range_of).collect(),
            devices: devices_of(&ranges.devices),
        };
        let shares = summary.shares.iter().map(|group| GroupShares {
            group: group.name.to_string(),
            from_ns: group.from.0,
            requests: group.requests,
            latency_ns: group.times.iter().sum(),
            causes: Cause::ALL
                .into_iter()
                .zip(group.times)
                .filter(|&(_, time)| time > 0)
                .map(|(cause, duration_ns)| CauseTime {
                    cause: cause.name().to_string(),
                    duration_ns,
                    conventional: cause.is_conventional(),
                })
                .collect(),
        });
        ExplainSummary {
            shares: shares.collect(),
            waiting: involved(&summary.involved.waiting),
            causing: involved(&summary.involved.causing),
            unattributed_ns: summary.involved.unattributed_ns,
        }
    }
}
