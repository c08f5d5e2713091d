//! §6 leaves open whether an interlaced drive can have conventional latency with a controller's memory. This
//! experiment runs every layer for interlaced disks, the paper's and others, on the smaller machines.

use imbrex_layer::registry;
use imbrex_trace::generators::Arrivals;

use super::super::report::Table;
use super::super::{Experiment, Replication, Report};
use super::runs;
use super::table::{View, amplification, figure, listed, mean_ms, tail_ms};
use super::under_test::{COMPARED, CONVENTIONAL, OURS};
use super::workloads::{Case, machines};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "hajkazemi/section6",
    title: "beyond the paper: which layer gives conventional latency on which machine",
    run,
};

/// Largest ratio to the conventional drive's mean and tail latency that counts as conventional latency.
const REACHED: f64 = 1.1;

/// Memory that a drive's controller has for the map of 20 TB, in bytes: a little more than track-map needs (§2.4).
const CONTROLLER_BYTES: u64 = 16_000_000;

/// Returns the size of a layer's map for a drive of 20 TB, in bytes.
fn map_bytes(layer: &str) -> Result<u64, Failure> {
    Ok(imbrex::drives::fresh(&format!("imr-20t+{layer}"))?.layer.memory().formula_bytes)
}

/// Returns the paper's layers, our versions of the same names, and all other registered layers for interlaced disks.
fn layers() -> Vec<&'static str> {
    let others = registry::all().into_iter().filter(|info| info.recordings.contains(&"interlaced"));
    let others = others.map(|info| info.name).filter(|name| !COMPARED.contains(name));
    COMPARED.into_iter().chain(OURS).chain(others).collect()
}

/// Bound on a machine's number of requests. The machines below it suffice to tell layers apart, and save an hour of
/// runs.
const REQUESTS_MAX: u64 = 12_000_000;

/// Returns the stand-ins with fewer requests than the bound, with arrivals from the first source.
pub(super) fn smaller_machines() -> Vec<Case> {
    machines(Arrivals::default()).into_iter().filter(|case| case.requests() < REQUESTS_MAX).collect()
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut memory = Vec::new();
    for layer in layers() {
        let name = layer.split(':').next().expect("a label has a first part");
        memory.push((layer, map_bytes(name)?));
    }
    let (memory, too_large): (Vec<_>, Vec<_>) = memory.into_iter().partition(|(_, bytes)| *bytes <= CONTROLLER_BYTES);
    let layers: Vec<&str> = memory.iter().map(|(layer, _)| *layer).collect();
    let cases = smaller_machines();
    let runs = runs::all(&cases, &layers, replication)?;
    let view = View::new(Arrivals::default(), &runs);
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    let mut report = Report {
        method:
            "Hajkazemi 2019 leaves open whether an interlaced drive can have the latency of a conventional one with \
             the memory of a controller. So no claim of the paper is judged here. The workloads are the stand-ins \
             for the machines with fewer than 12 million requests; the lengths of their bursts and pauses are drawn \
             from the source `cloudphysics`. They run on the paper's layers, on ours of the same names, and on every \
             other layer for interlaced disks. A layer is left out if its map of a drive of 20 TB takes more than 16 \
             MB. A machine has conventional latency on a layer if mean and tail (99.9 %) are at most 1.1 times those \
             of the conventional drive. Busy is the share of the simulated time in which the drive works, cleaning \
             included."
                .into(),
        ..Report::default()
    };
    let mut table = Table {
        heading: "Conventional latency".into(),
        columns: ["", "on", "nearest"].map(String::from).to_vec(),
        ..Table::default()
    };
    table.rows = names.iter().map(|name| reached(&view, &memory, name)).collect();
    report.tables.push(table);
    report.tables.push(times_conventional(&view, &layers, &names));
    let maps =
        memory[1..].iter().chain(&too_large).map(|(layer, bytes)| format!("{layer} {}", imbrex::human::bytes(*bytes)));
    report.remarks.push(format!(
        "Size of the map of each layer for a drive of 20 TB, by the layer's formula: {}.",
        maps.collect::<Vec<_>>().join(", ")
    ));
    Ok(report)
}

/// Returns a table of each layer's mean and tail latency, divided by the conventional drive's, and its write
/// amplification.
fn times_conventional(view: &View, layers: &[&str], names: &[&str]) -> Table {
    let columns = std::iter::once("").chain(layers[1..].iter().copied()).map(String::from).collect();
    let heading = "Mean and tail latency over the conventional drive's; write amplification in sectors".to_string();
    let cell = |name: &str, layer: &str| {
        let ratio = |measure| figure(view.ratio(name, layer, CONVENTIONAL, measure));
        format!("{}, {}; {}", ratio(mean_ms), ratio(tail_ms), figure(amplification(view.of(name, layer))))
    };
    let row = |name: &&str| {
        let cells = layers[1..].iter().map(|layer| cell(name, layer));
        std::iter::once(name.to_string()).chain(cells).collect()
    };
    Table { heading, columns, rows: names.iter().map(row).collect() }
}

fn reached(view: &View, memory: &[(&str, u64)], name: &str) -> Vec<String> {
    let small: Vec<_> = memory[1..].iter().map(|(name, _)| *name).collect();
    let reached: Vec<_> =
        small.iter().copied().filter(|layer| view.is_near_conventional(name, layer, REACHED)).collect();
    let best = small.iter().copied().min_by(|a, b| {
        let worst = |layer: &str| {
            let of = |measure| view.ratio(name, layer, CONVENTIONAL, measure);
            of(mean_ms).max(of(tail_ms))
        };
        worst(a).total_cmp(&worst(b))
    });
    let best = best.expect("there are layers");
    let (mean, tail) = (view.ratio(name, best, CONVENTIONAL, mean_ms), view.ratio(name, best, CONVENTIONAL, tail_ms));
    let near = format!("{best}: mean {}×, tail {}×; {}", figure(mean), figure(tail), limit(view, name, best));
    vec![name.to_string(), listed(&reached), near]
}

/// Returns the remaining cost of a layer as text: its write amplification and busy share beside the conventional
/// drive's.
fn limit(view: &View, name: &str, layer: &str) -> String {
    let (result, conventional) = (view.of(name, layer), view.of(name, CONVENTIONAL));
    format!(
        "write amplification {} against {}, busy {:.0} % against {:.0} %",
        figure(amplification(result)),
        figure(amplification(conventional)),
        100.0 * result.busy,
        100.0 * conventional.busy
    )
}
