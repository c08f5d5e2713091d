//! The figures of a served drive: as text for people, as Prometheus text for collectors, and as JSON for the live page.
//! Times are the drive's simulated time; lateness is on the wall clock.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use imbrex_device::EmulatedDrive;
use imbrex_device::activity::{Activity, BINS};
use imbrex_device::media::host_file::Placement;
use imbrex_disk::SimDuration;
use imbrex_layer::Cause;
use serde_json::{Value, json};

use crate::clients::Clients;
use crate::drive_server::DriveServer;
use crate::http::Shown;
use crate::listen::Visitors;
use crate::payload::Payloads;
use crate::picture;
use crate::statistics::{KindStatistics, Statistics};

const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// A served drive whose figures are shown over HTTP and the control socket, with its NBD clients.
#[derive(Clone)]
pub struct Observed {
    /// The served drive.
    pub front: Arc<DriveServer>,
    /// The drive's NBD clients and the memory of their payloads; `None` if the drive is not served over NBD.
    pub visitors: Option<Visitors>,
}

/// HTML of the live page of a drive.
const PAGE: &str = include_str!("window.html");

impl Shown for Observed {
    fn page(&self) -> Option<&'static str> {
        Some(PAGE)
    }

    fn state(&self) -> String {
        state(&self.front).to_string()
    }

    fn metrics(&self) -> String {
        prometheus(self)
    }

    fn text(&self) -> String {
        text(self)
    }
}

/// Returns the figures of the drive, its image and its clients as plain text for people, one or two lines for each
/// subject, such as reads, cleaning or zones. Subjects that do not apply are left out.
pub fn text(observed: &Observed) -> String {
    let front = &observed.front;
    let mut out = front.with(|drive, statistics| {
        let busy = SimDuration(statistics.busy.total_ns());
        let mut out = format!("{}\nsimulated time {}\nbusy {busy}\n", front.facts().label, SimDuration(drive.now().0));
        if let Some(reason) = drive.stopped() {
            // Writing to a string does not fail.
            let _ = writeln!(out, "stopped, and answers only reads: {reason}");
        }
        for kind in &statistics.kinds {
            let at = |share| SimDuration(kind.latency_ns.value_at_quantile(share));
            let (name, requests, errors) = (kind.name, kind.requests, kind.errors);
            // Writing to a string does not fail.
            let _ = writeln!(
                out,
                "{name}: {requests} requests, {errors} errors, {} bytes; latency p50 {}, p99 {}, p99.9 {}, longest {}",
                kind.bytes,
                at(0.5),
                at(0.99),
                at(0.999),
                SimDuration(kind.latency_ns.max()),
            );
        }
        let late = |share| SimDuration(statistics.lateness_ns.value_at_quantile(share));
        let _ = writeln!(out, "lateness: p50 {}, p99 {}", late(0.5), late(0.99));
        let cleaning = &drive.timing().cleaning;
        let _ = writeln!(
            out,
            "cleaning: {} times, {} in all, longest stall {}",
            cleaning.events(),
            SimDuration(cleaning.total_ns()),
            SimDuration(cleaning.longest_stall_ns()),
        );
        let (used, size) = cache_fill(drive);
        let _ = writeln!(out, "caches of the layer: {used} of {size} bytes in use");
        let _ = writeln!(out, "volatile cache: {} sectors dirty", drive.dirty().0);
        let _ = writeln!(out, "head: radial track {}", drive.timing().actuator().radial_track());
        zones_text(&mut out, drive, statistics);
        out
    });
    if let Some(words) = displacement(front) {
        let _ = writeln!(out, "image: {words}");
    }
    if let Some(Visitors { clients, payloads }) = &observed.visitors {
        let counts = clients.counts();
        let (used, most) = payloads.used_bytes();
        let _ = writeln!(
            out,
            "connections: {} now, {} came, {} turned away; cut off: {} for another's place, {} late, {} for memory",
            counts.connections,
            counts.came,
            counts.turned_away,
            counts.cut_for_place,
            counts.cut_late,
            counts.cut_for_memory,
        );
        let _ = writeln!(out, "payload memory: {used} bytes held, {most} at most");
    }
    out
}

/// Appends the number of zones by condition, and the violations of the rules of zones.
fn zones_text(out: &mut String, drive: &EmulatedDrive, statistics: &Statistics) {
    let zones = zones_by_condition(drive);
    if zones.is_empty() {
        return;
    }
    let words: Vec<String> = zones.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let _ = writeln!(out, "zones: {}", words.join(", "));
    let refused: Vec<String> =
        statistics.zone_refusals.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let refused = if refused.is_empty() { "none".into() } else { refused.join(", ") };
    let _ = writeln!(out, "requests against the rules of zones: {refused}");
    let counters = drive.zone_counters();
    let _ = writeln!(
        out,
        "zones reset by TRIM: {}; TRIMs ignored in part or whole: {}",
        counters.zones_reset_by_trim, counters.trims_ignored
    );
}

/// Returns the number of zones in each condition; empty for a drive without zones.
fn zones_by_condition(drive: &EmulatedDrive) -> BTreeMap<&'static str, u64> {
    let mut zones = Vec::new();
    drive.report_zones(0, u32::MAX, &mut zones);
    let mut counts = BTreeMap::new();
    zones.iter().for_each(|zone| *counts.entry(zone.condition.name()).or_default() += 1);
    counts
}

/// Appends the figures of [`zones_text`] in the format for Prometheus.
fn zones_prometheus(out: &mut String, drive: &EmulatedDrive, statistics: &Statistics) {
    let zones = zones_by_condition(drive);
    if zones.is_empty() {
        return;
    }
    let _ = write!(out, "# HELP imbrex_zones Zones in each condition.\n# TYPE imbrex_zones gauge\n");
    for (name, count) in zones {
        let _ = writeln!(out, "imbrex_zones{{condition=\"{name}\"}} {count}");
    }
    let name = "imbrex_zone_refusals_total";
    let _ = write!(out, "# HELP {name} Requests against the rules of zones.\n# TYPE {name} counter\n");
    for (reason, count) in &statistics.zone_refusals {
        let _ = writeln!(out, "{name}{{reason=\"{reason}\"}} {count}");
    }
    let counters = drive.zone_counters();
    for (name, help, value) in [
        ("imbrex_zones_reset_by_trim_total", "Zones that a TRIM covered whole.", counters.zones_reset_by_trim),
        ("imbrex_zone_trims_ignored_total", "TRIMs that covered a zone in part.", counters.trims_ignored),
    ] {
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n");
    }
}

/// Appends the counts of connections and the memory of payloads, in the format for Prometheus.
fn visitors_prometheus(out: &mut String, clients: &Clients, payloads: &Payloads) {
    let counts = clients.counts();
    let (used, most) = payloads.used_bytes();
    for (name, kind, help, value) in [
        ("imbrex_connections", "gauge", "NBD connections.", counts.connections),
        ("imbrex_connections_total", "counter", "NBD connections so far.", counts.came),
        (
            "imbrex_connections_refused_total",
            "counter",
            "Connections for which there was no place.",
            counts.turned_away,
        ),
        ("imbrex_payload_bytes", "gauge", "Memory that payloads hold.", used),
        ("imbrex_payload_bytes_max", "gauge", "Largest memory that payloads held.", most),
    ] {
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    let name = "imbrex_connections_cut_total";
    let _ = write!(out, "# HELP {name} Connections cut off, by reason.\n# TYPE {name} counter\n");
    for (reason, count) in
        [("place", counts.cut_for_place), ("late", counts.cut_late), ("memory", counts.cut_for_memory)]
    {
        let _ = writeln!(out, "{name}{{reason=\"{reason}\"}} {count}");
    }
}

/// Appends whether the image's file was removed, renamed or replaced, in the format for Prometheus.
fn placement_prometheus(out: &mut String, placement: Placement) {
    let name = "imbrex_image_displaced";
    let _ = write!(out, "# HELP {name} 1 for the placement of the served image's file.\n# TYPE {name} gauge\n");
    for of in [Placement::Removed, Placement::Renamed, Placement::Replaced] {
        let _ = writeln!(out, "{name}{{how=\"{}\"}} {}", of.name(), u8::from(of == placement));
    }
}

/// Returns the figures of the drive, its image and its clients in Prometheus text format, version 0.0.4.
pub fn prometheus(observed: &Observed) -> String {
    let mut out = observed.front.with(|drive, statistics| {
        let mut out = String::new();
        requests(&mut out, statistics);
        let cleaning = &drive.timing().cleaning;
        let volatile = drive.dirty().0 * u64::from(drive.sector_bytes());
        let gauges: [(&str, &str, &str, f64); 9] = [
            (
                "imbrex_stopped",
                "gauge",
                "Whether the drive has stopped because its medium failed, and answers only reads.",
                f64::from(u8::from(drive.stopped().is_some())),
            ),
            ("imbrex_simulated_seconds", "counter", "Simulated time.", seconds(drive.now().0)),
            (
                "imbrex_busy_seconds_total",
                "counter",
                "Simulated time in which requests were under way.",
                seconds(statistics.busy.total_ns()),
            ),
            ("imbrex_cleaning_events_total", "counter", "Times that cleaning began.", cleaning.events() as f64),
            (
                "imbrex_cleaning_seconds_total",
                "counter",
                "Simulated time spent cleaning.",
                seconds(cleaning.total_ns()),
            ),
            (
                "imbrex_longest_stall_seconds",
                "gauge",
                "The longest that cleaning kept a request waiting.",
                seconds(cleaning.longest_stall_ns()),
            ),
            ("imbrex_volatile_dirty_bytes", "gauge", "Bytes acknowledged and not yet written.", volatile as f64),
            (
                "imbrex_head_radial_track",
                "gauge",
                "Where the head is, in tracks from the outermost.",
                f64::from(drive.timing().actuator().radial_track()),
            ),
            (
                "imbrex_journal_records",
                "gauge",
                "Records in the image's journal.",
                drive.store_mut().journal().records() as f64,
            ),
        ];
        for (name, kind, help, value) in gauges {
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        medium(&mut out, drive);
        let (used, size) = cache_fill(drive);
        for (name, help, value) in [
            ("imbrex_cache_used_bytes", "Bytes in use in the layer's caches, live or dead.", used),
            ("imbrex_cache_size_bytes", "Bytes that the layer's caches hold.", size),
        ] {
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
        }
        zones_prometheus(&mut out, drive, statistics);
        out
    });
    if let Some(file) = observed.front.host_file() {
        placement_prometheus(&mut out, file.placement());
        let (name, is_full) = ("imbrex_image_disk_full", u8::from(file.is_disk_full()));
        let help = "1 while the disk of the served image has no room, so that writes are refused.";
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {is_full}\n");
    }
    if let Some(Visitors { clients, payloads }) = &observed.visitors {
        visitors_prometheus(&mut out, clients, payloads);
    }
    out
}

/// Returns the used bytes and the size in bytes of all caches of the layer together.
fn cache_fill(drive: &EmulatedDrive) -> (u64, u64) {
    let (mut used, mut size) = (0, 0);
    drive.drive().layer.caches(&mut |cache| {
        used += cache.used.0;
        size += cache.size.0;
    });
    let sector = u64::from(drive.sector_bytes());
    (used * sector, size * sector)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn requests(out: &mut String, statistics: &Statistics) {
    let counters = [
        ("imbrex_requests_total", "Requests answered, with or without an error."),
        ("imbrex_request_errors_total", "Requests answered with an error."),
        ("imbrex_request_bytes_total", "Bytes asked for or given."),
    ];
    for (index, (name, help)) in counters.into_iter().enumerate() {
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} counter\n");
        for kind in &statistics.kinds {
            let value = [kind.requests, kind.errors, kind.bytes][index];
            let _ = writeln!(out, "{name}{{operation=\"{}\"}} {value}", kind.name);
        }
    }
    let name = "imbrex_latency_seconds";
    let _ = write!(out, "# HELP {name} Simulated latency.\n# TYPE {name} summary\n");
    for kind in &statistics.kinds {
        for quantile in QUANTILES {
            let value = seconds(kind.latency_ns.value_at_quantile(quantile));
            let _ = writeln!(out, "{name}{{operation=\"{}\",quantile=\"{quantile}\"}} {value}", kind.name);
        }
        let sum = kind.latency_ns.mean() * kind.latency_ns.len() as f64 / 1e9;
        let _ = writeln!(out, "{name}_sum{{operation=\"{}\"}} {sum}", kind.name);
        let _ = writeln!(out, "{name}_count{{operation=\"{}\"}} {}", kind.name, kind.latency_ns.len());
    }
    let name = "imbrex_lateness_seconds";
    let _ = write!(out, "# HELP {name} How much later than its time an answer was given.\n# TYPE {name} summary\n");
    for quantile in QUANTILES {
        let value = seconds(statistics.lateness_ns.value_at_quantile(quantile));
        let _ = writeln!(out, "{name}{{quantile=\"{quantile}\"}} {value}");
    }
    let _ = writeln!(out, "{name}_count {}", statistics.lateness_ns.len());
}

fn medium(out: &mut String, drive: &EmulatedDrive) {
    let sector = u64::from(drive.sector_bytes());
    let counters = &drive.timing().counters;
    for (name, help, blocks) in [
        ("imbrex_medium_read_bytes_total", "Bytes read from the medium, by cause.", &counters.read_blocks),
        ("imbrex_medium_written_bytes_total", "Bytes written to the medium, by cause.", &counters.write_blocks),
    ] {
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} counter\n");
        for cause in Cause::ALL {
            let _ = writeln!(out, "{name}{{cause=\"{}\"}} {}", cause.name(), blocks[cause as usize] * sector);
        }
    }
}

/// Returns the figures of the drive as a JSON object, for the control socket. `image`, `placement` and `is_disk_full`
/// are null for a drive in memory, and `connections` is null for a drive that is not served over NBD.
pub fn figures(observed: &Observed) -> Value {
    let front = &observed.front;
    let mut figures = front.with(|drive, statistics| {
        let (cache_used, cache_size) = cache_fill(drive);
        json!({
            "drive": front.facts().label,
            "image": Value::Null,
            "placement": Value::Null,
            "is_disk_full": Value::Null,
            "capacity_bytes": front.facts().capacity_bytes,
            "is_read_only": front.facts().read_only,
            "stopped": drive.store_mut().stopped(),
            "simulated_ns": drive.now().0,
            "busy_ns": statistics.busy.total_ns(),
            "dirty_bytes": drive.dirty().0 * u64::from(drive.sector_bytes()),
            "cache_used_bytes": cache_used,
            "cache_size_bytes": cache_size,
            "operations": operations(statistics),
            "connections": Value::Null,
        })
    });
    if let Some(file) = front.host_file() {
        figures["image"] = file.path().to_string_lossy().into();
        figures["placement"] = json!(file.placement().name());
        figures["is_disk_full"] = json!(file.is_disk_full());
    }
    if let Some(Visitors { clients, .. }) = &observed.visitors {
        figures["connections"] = json!(clients.counts().connections);
    }
    figures
}

/// Returns counts and latencies of each kind of request.
fn operations(statistics: &Statistics) -> Vec<Value> {
    let operation = |kind: &KindStatistics| {
        json!({
            "operation": kind.name,
            "requests": kind.requests,
            "errors": kind.errors,
            "bytes": kind.bytes,
            "latency_ns_p50": kind.latency_ns.value_at_quantile(0.5),
            "latency_ns_p99": kind.latency_ns.value_at_quantile(0.99),
            "latency_ns_max": kind.latency_ns.max(),
        })
    };
    statistics.kinds.iter().map(operation).collect()
}

/// Returns a warning if the file of the drive's image was removed, renamed or replaced, or if the disk that holds it is
/// full; if both are so, only about the former. Returns `None` if neither is so, or the drive is in memory.
pub fn displacement(front: &DriveServer) -> Option<String> {
    let file = front.host_file()?;
    file.placement().warning(file.path()).or_else(|| file.full_disk_warning())
}

/// Returns the JSON object that the live page draws (schema `imbrex.window/1`): figures of the drive, its last seconds,
/// its bands and its surfaces. The drive is locked several times, not throughout, so parts may differ in age by some
/// milliseconds.
pub fn state(front: &DriveServer) -> Value {
    let facts = front.facts().clone();
    let (bands, surfaces) = picture::draw(front);
    let displacement = displacement(front);
    front.with(|drive, statistics| {
        let geometry = &drive.drive().disk.geometry;
        let head_bin = Activity::bin(geometry, drive.timing().actuator().radial_track());
        let cleaning = &drive.timing().cleaning;
        let (cleaning_events, cleaning_ns, stall_ns) =
            (cleaning.events(), cleaning.total_ns(), cleaning.longest_stall_ns());
        let (cache_used, cache_size) = cache_fill(drive);
        let seconds: Vec<Value> = statistics
            .seconds
            .iter()
            .map(|second| {
                let mean = second.latency_ns / second.requests.max(1);
                json!([second.number, second.requests, mean, second.latency_ns_max, second.bytes])
            })
            .collect();
        json!({
            "schema": "imbrex.window/1",
            "drive": facts.label,
            "capacity_bytes": facts.capacity_bytes,
            "simulated_ns": drive.now().0,
            "layer": drive.drive().layer.name(),
            "recording": drive.drive().disk.recording.name(),
            "stopped": drive.stopped(),
            "dirty_sectors": drive.dirty().0,
            "cache_used_bytes": cache_used,
            "cache_size_bytes": cache_size,
            "cleaning_events": cleaning_events,
            "cleaning_ns": cleaning_ns,
            "longest_stall_ns": stall_ns,
            "lateness_ns_p99": statistics.lateness_ns.value_at_quantile(0.99),
            "operations": operations(statistics),
            "displacement": displacement,
            "seconds": seconds,
            "head_bin": head_bin,
            "bins": BINS,
            "bands": bands,
            "surfaces": surfaces,
        })
    })
}
