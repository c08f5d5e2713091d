//! §6 leaves open whether conventional latency can be had at a controller's memory: every layer of interlaced disks that
//! there is, the paper's and those beyond it, on every machine.

use imbrex_layer::registry;
use imbrex_trace::generators::Arrivals;

use super::super::{ClaimKind, Experiment, Report};
use super::runs;
use super::table::{amplification, figure, mean_ms, tail_ms, Table};
use super::under_test::{COMPARED, CONVENTIONAL};
use super::workloads::{machines, MACHINES};
use imbrex::error::Failure;
use imbrex::progress::Progress;

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "hajkazemi/section6",
    title: "beyond the paper: which layer gives conventional latency on which machine",
    run,
};

/// Mean and tail within a tenth of the conventional drive's.
const REACHED: f64 = 1.1;

/// What a drive's controller has for the map of 20 TB: a little more than track-map takes (§2.4).
const CONTROLLER_BYTES: u64 = 16_000_000;

/// Bytes of a layer's map for a drive of 20 TB.
fn map_bytes(layer: &str) -> Result<u64, Failure> {
    Ok(imbrex::drives::fresh(&format!("imr-20t+{layer}"))?.layer.memory().formula_bytes)
}

/// The paper's layers, and after them all others of interlaced disks that are registered.
fn layers() -> Vec<&'static str> {
    let others = registry::all().into_iter().filter(|info| info.recordings.contains(&"interlaced"));
    let others = others.map(|info| info.name).filter(|name| !COMPARED.contains(name));
    COMPARED.into_iter().chain(others).collect()
}

fn run(progress: &Progress) -> Result<Report, Failure> {
    let layers = layers();
    let mut memory = Vec::with_capacity(layers.len());
    for layer in &layers {
        memory.push((*layer, map_bytes(layer)?));
    }
    let runs = runs::all(&machines(Arrivals::default()), &layers, progress)?;
    let table = Table { names: &MACHINES, layers: &layers, runs: &runs };
    let mut report = Report {
        method: "As figs 8 and 9, with every layer that works on interlaced disks. A machine has conventional \
                 latency on a layer if mean and tail (99.9 %) are within 10 % of the conventional drive's, and the \
                 layer's map of 20 TB fits in 16 MB. Busy is the share of the run in which the drive works. Hangs on \
                 our arrival times."
            .into(),
        ..Report::default()
    };
    for name in MACHINES {
        reached_claim(&mut report, &table, &memory, name);
    }
    let count = |layer: &str| table.where_(|name| table.is_near_conventional(name, layer, REACHED)).len();
    let counts: Vec<_> = layers[1..].iter().map(|layer| format!("{layer} {}", count(layer))).collect();
    report.remarks.push(format!("Machines with conventional latency, of {}: {}.", MACHINES.len(), counts.join(", ")));
    let maps = memory[1..].iter().map(|(layer, bytes)| format!("{layer} {}", imbrex::human::bytes(*bytes)));
    let maps: Vec<_> = maps.collect();
    report.remarks.push(format!("Map of 20 TB, by formula: {}.", maps.join(", ")));
    report.remarks.push(times_conventional(&table));
    report.remarks.push(table.markdown("Write amplification", amplification));
    report.remarks.push(table.markdown("Mean latency in ms", mean_ms));
    report.remarks.push(table.markdown("Tail latency in ms", tail_ms));
    Ok(report)
}

/// Mean and tail of every layer over the conventional drive's.
fn times_conventional(table: &Table) -> String {
    let layers = &table.layers[1..];
    let mut text = format!(
        "Mean and tail latency over the conventional drive's:\n\n| | {} |\n|---|{}\n",
        layers.join(" | "),
        "---|".repeat(layers.len())
    );
    for name in table.names {
        let of = |layer: &&str, measure| figure(table.ratio(name, layer, CONVENTIONAL, measure));
        let cells = layers.iter().map(|layer| format!("{}, {}", of(layer, mean_ms), of(layer, tail_ms)));
        text += &format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    text.trim_end().to_string()
}

fn reached_claim(report: &mut Report, table: &Table, memory: &[(&str, u64)], name: &str) {
    let small: Vec<_> =
        memory[1..].iter().filter(|(_, bytes)| *bytes <= CONTROLLER_BYTES).map(|(name, _)| *name).collect();
    let reached: Vec<_> =
        small.iter().copied().filter(|layer| table.is_near_conventional(name, layer, REACHED)).collect();
    let best = small.iter().copied().min_by(|a, b| {
        let worst = |layer: &str| {
            let of = |measure| table.ratio(name, layer, CONVENTIONAL, measure);
            of(mean_ms).max(of(tail_ms))
        };
        worst(a).total_cmp(&worst(b))
    });
    let best = best.expect("there are layers");
    let (mean, tail) = (table.ratio(name, best, CONVENTIONAL, mean_ms), table.ratio(name, best, CONVENTIONAL, tail_ms));
    let near = format!("{best}: mean {}×, tail {}×", figure(mean), figure(tail));
    let ours = match reached.as_slice() {
        [] => format!("no; nearest {near}; {}", limit(table, name, best)),
        reached => format!("yes, on {}; nearest {near}", reached.join(", ")),
    };
    let theirs = "left open (§6)";
    report.claim(ClaimKind::Shape, &format!("{name}: conventional latency"), theirs, ours, None);
}

/// What is left of the cost of interlacing.
fn limit(table: &Table, name: &str, layer: &str) -> String {
    let (result, conventional) = (table.of(name, layer), table.of(name, CONVENTIONAL));
    format!(
        "write amplification {} against {}, busy {:.0} % against {:.0} %",
        figure(amplification(result)),
        figure(amplification(conventional)),
        100.0 * result.busy,
        100.0 * conventional.busy
    )
}
