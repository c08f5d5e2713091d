//! The result of a benchmark as JSON: `--json`, and summary.json of `--out`. The schema is in docs/fs/bench.md.

use imbrex_fs::device::{BLOCK_BYTES, ByCause, Kind as DeviceKind};
use imbrex_fs::executor::Cause;
use imbrex_fs::load::bench::timeline::{Pace, Row, State};
use imbrex_fs::load::bench::{Benchmark, Kind, Sizes};
use serde_json::{Value, json};

use super::{BenchOutput, OnDevices, Timed, Used};
use crate::fs::args::BenchArgs;
use crate::json;
use crate::output::command_line;

const BYTES: u64 = BLOCK_BYTES as u64;

/// Returns the result as JSON. With several seeds it is that of the first run, and has the means over all runs.
pub(super) fn of(args: &BenchArgs, benchmark: &Benchmark, sizes: Sizes, ran: &BenchOutput) -> Value {
    let on_devices = ran.on_devices.as_ref();
    let mut document = json!({
        "schema": "imbrex.fs-bench/1",
        "imbrex": env!("CARGO_PKG_VERSION"),
        "command": command_line(),
        "benchmark": benchmark.name,
        "about": benchmark.about,
        "source": benchmark.source,
        "places": json::paths(&args.places),
        "folder": json::path(&args.folder),
        "seed": args.seed,
        "files": sizes.files,
        "file_bytes": sizes.file_bytes,
        "operations": sizes.operations,
        "threads": sizes.workers,
        "clock": if ran.is_virtual() { "virtual" } else { "wall" },
        "page_cache_bytes": on_devices.map(|_| args.page_cache_bytes()),
        "elapsed_ns": ran.elapsed_ns(),
        "phases": ran.phases.iter().map(|timed| phase(timed, ran.began_ns)).collect::<Vec<_>>(),
        "parity": on_devices.and_then(|on_devices| on_devices.parity),
        "devices": on_devices.map(|on_devices| on_devices.devices.iter().map(device).collect::<Vec<_>>()),
        "timeline": timeline(ran),
        "file_system": on_devices.map_or(&Value::Null, |on_devices| &on_devices.found),
    });
    if let Some(over) = &ran.over_seeds {
        document["seeds"] = json!(over.seeds);
        document["over_seeds"] = json!(over.figures);
    }
    document
}

fn phase((phase, disk_ns, costs): &Timed, began_ns: u64) -> Value {
    let hot_reads = costs.and_then(|costs| costs.hot_reads);
    let kinds = phase.measured.iter().map(|(kind, figures)| {
        let latency = &figures.latency;
        let figures = json!({
            "count": latency.count(),
            "bytes": figures.bytes,
            "latency_ns": {
                "mean": latency.mean_ns(),
                "p50": latency.quantile_ns(0.5),
                "p99": latency.quantile_ns(0.99),
                "p999": latency.quantile_ns(0.999),
                "max": latency.max_ns(),
            },
        });
        (kind.name().to_string(), figures)
    });
    json!({
        "name": phase.name,
        "done": phase.done,
        "operations": phase.operations(),
        "bytes": phase.bytes(),
        "begin_ns": phase.began_ns - began_ns,
        "elapsed_ns": phase.elapsed_ns,
        "disk_ns": disk_ns,
        "record_bytes": costs.map(|costs| costs.record_bytes),
        "hot_zone": hot_reads.map(|(hits, reads)| json!({ "hits": hits, "reads": reads })),
        "kinds": kinds.collect::<serde_json::Map<_, _>>(),
    })
}

fn device(used: &Used) -> Value {
    let zones = match used.geometry.kind {
        DeviceKind::Zoned { zones, conventional, .. } => json!({ "all": zones, "conventional": conventional }),
        DeviceKind::Plain | DeviceKind::Caveat { .. } => Value::Null,
    };
    json!({
        "name": used.name,
        "kind": used.geometry.kind.name(),
        "bytes": used.geometry.blocks * BYTES,
        "zones": zones,
        "has_metadata": used.has_metadata,
        "busy_ns": used.spent.all().busy_ns,
        "by_cause": by_cause(&used.spent),
    })
}

fn by_cause(spent: &ByCause) -> serde_json::Map<String, Value> {
    let one = |cause: Cause| {
        let of = spent.of(cause);
        let figures = json!({
            "busy_ns": of.busy_ns,
            "read_bytes": of.blocks_read * BYTES,
            "written_bytes": of.blocks_written * BYTES,
        });
        (cause.name().to_string(), figures)
    };
    Cause::ALL.into_iter().map(one).collect()
}

/// A part of the run, with the state of the file system before and after it, where that is known.
#[derive(Clone, Copy)]
pub(super) struct Stretch<'a> {
    /// Operations of this part of the run, with its start and end time.
    pub row: &'a Row,
    /// State of the file system at the start and at the end of this part of the run; `None` if the benchmark ran in a
    /// mounted directory.
    pub states: Option<(State, State)>,
}

impl BenchOutput {
    /// Returns the parts of the run in order of time.
    pub(super) fn stretches(&self) -> Vec<Stretch<'_>> {
        let mut before = self.on_devices.as_ref().map(|OnDevices { before, .. }| *before);
        let stretch = |row: &'_ Row| {
            let states = before.zip(row.state);
            before = row.state;
            states
        };
        let states: Vec<_> = self.rows.iter().map(stretch).collect();
        self.rows.iter().zip(states).map(|(row, states)| Stretch { row, states }).collect()
    }

    /// Returns the kinds of operations that occurred, except the syncs that end phases.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let kinds = self.phases.iter().flat_map(|(phase, ..)| phase.measured.keys().copied());
        kinds.filter(|kind| *kind != Kind::SyncAll).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }
}

impl Stretch<'_> {
    /// Returns the latency figures of operations of all kinds together, except the syncs that end phases.
    pub(super) fn pace(&self) -> Pace {
        let mut all = Pace::default();
        self.row.done.iter().filter(|(kind, _)| **kind != Kind::SyncAll).for_each(|(_, pace)| all.add(pace));
        all
    }

    /// Returns the latency figures of operations of one kind.
    pub(super) fn pace_of(&self, kind: Kind) -> Pace {
        self.row.done.get(&kind).cloned().unwrap_or_default()
    }

    /// Returns the increase of a counter of the state.
    pub(super) fn grew(&self, of: impl Fn(&State) -> u64) -> Option<u64> {
        self.states.as_ref().map(|(before, after)| of(after) - of(before))
    }

    /// Returns the device time and traffic, by cause.
    pub(super) fn spent(&self) -> Option<ByCause> {
        self.states.as_ref().map(|(before, after)| after.spent.since(&before.spent))
    }

    /// Returns a value of the state at the end of the part.
    pub(super) fn stands(&self, of: impl Fn(&State) -> u64) -> Option<u64> {
        self.states.as_ref().map(|(_, after)| of(after))
    }
}

/// Returns a table: the names of the columns, and a row for each part of the run.
fn timeline(ran: &BenchOutput) -> Value {
    let kinds = ran.kinds();
    let rows: Vec<Vec<(String, Value)>> = ran.stretches().iter().map(|stretch| cells(stretch, &kinds)).collect();
    let columns = rows.first().into_iter().flatten().map(|(name, _)| name.clone());
    let columns: Vec<String> = columns.collect();
    let rows = rows.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect::<Vec<Value>>());
    json!({ "columns": columns, "rows": rows.collect::<Vec<_>>() })
}

fn cells(stretch: &Stretch<'_>, kinds: &[Kind]) -> Vec<(String, Value)> {
    let mut cells =
        vec![("begin_ns".to_string(), json!(stretch.row.begin_ns)), ("end_ns".to_string(), json!(stretch.row.end_ns))];
    let mut add_pace = |name: &str, pace: &Pace| {
        let figures = [
            ("count", pace.count),
            ("bytes", pace.bytes),
            ("mean_ns", pace.mean_ns()),
            ("p99_ns", pace.quantile_ns(0.99)),
            ("max_ns", pace.max_ns),
        ];
        cells.extend(figures.map(|(figure, value)| (format!("{name}_{figure}"), json!(value))));
    };
    add_pace("all", &stretch.pace());
    kinds.iter().for_each(|kind| add_pace(kind.name(), &stretch.pace_of(*kind)));
    for cause in Cause::ALL {
        let spent = stretch.spent().map(|spent| spent.of(cause));
        let name = cause.name();
        cells.push((format!("{name}_busy_ns"), json!(spent.map(|spent| spent.busy_ns))));
        cells.push((format!("{name}_device_read_bytes"), json!(spent.map(|spent| spent.blocks_read * BYTES))));
        cells.push((format!("{name}_device_written_bytes"), json!(spent.map(|spent| spent.blocks_written * BYTES))));
    }
    let grew = [
        ("cleaned_zones", stretch.grew(|state| state.zones_cleaned)),
        ("cleaned_bytes", stretch.grew(|state| state.blocks_cleaned * BYTES)),
        ("throttled_ns", stretch.grew(|state| state.throttled_ns)),
        ("waited_ns", stretch.grew(|state| state.waited_ns)),
        ("room_bytes", stretch.stands(|state| state.blocks * BYTES)),
        ("live_bytes", stretch.stands(|state| state.live * BYTES)),
        ("dead_bytes", stretch.stands(|state| state.dead * BYTES)),
        ("staged_bytes", stretch.stands(|state| state.staged_bytes)),
    ];
    cells.extend(grew.map(|(name, value)| (name.to_string(), json!(value))));
    cells
}
