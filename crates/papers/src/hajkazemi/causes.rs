//! Claims of figs 8 and 9 that do not hold: variations of the workload and of the model that look for the reason.

use imbrex_trace::generators::{Arrivals, Choices};

use super::super::Replication;
use super::super::report::Table;
use super::beyond::smaller_machines;
use super::runs::{self, Numbers};
use super::table::figure;
use super::under_test::{CACHE, CONVENTIONAL, FLIP, MAP, RMW, SMALL_CACHE};
use super::workloads::Case;
use imbrex::error::Failure;

/// Machines on which the paper finds write amplification nearly eliminated.
const ELIMINATED: [&str; 3] = ["w56", "w39", "w106"];
/// Machines whose tail latency grows by a factor of tens of thousands.
const WORST: [&str; 2] = ["w39", "w56"];

fn case(name: &'static str, change: fn(&mut Choices)) -> Case {
    let mut case = Case::of(name, Arrivals::default());
    change(&mut case.choices);
    case
}

/// Returns the numbers of a workload on each of the layers.
fn numbers<const N: usize>(case: Case, labels: [&str; N], replication: &Replication) -> Result<[Numbers; N], Failure> {
    let runs = runs::all(&[case], &labels, replication)?;
    Ok(labels.map(|label| runs[&(case, label.to_string())].numbers.clone()))
}

/// Returns a table of the share of RMW's excess writes, in sectors, that remains with track-map. The rows vary where
/// used pages lie and how long pages stay hot.
pub(super) fn eliminated(replication: &Replication) -> Result<Table, Failure> {
    type Change = (&'static str, fn(&mut Choices));
    const CHANGES: [Change; 4] = [
        ("as above", |_| {}),
        ("pages in use side by side", |choices| choices.is_dense = true),
        ("what is hot stays hot", |choices| choices.is_steady = true),
        ("both", |choices| (choices.is_dense, choices.is_steady) = (true, true)),
    ];
    let mut table = Table {
        heading: "Share of RMW's excess that remains with track-map, in sectors, on altered workloads".into(),
        columns: std::iter::once("").chain(ELIMINATED).map(String::from).collect(),
        ..Table::default()
    };
    for (name, change) in CHANGES {
        let mut row = vec![name.to_string()];
        for machine in ELIMINATED {
            let [base, rmw, map] = numbers(case(machine, change), [CONVENTIONAL, RMW, MAP], replication)?;
            let left = (map.amplification - base.amplification) / (rmw.amplification - base.amplification);
            row.push(format!("{:.1} %", left * 100.0));
        }
        table.rows.push(row);
    }
    Ok(table)
}

/// Returns a table of the tails of writes on the worst machines, with requests at shorter intervals and with a smaller
/// cache.
pub(super) fn fallen_behind(replication: &Replication) -> Result<Table, Failure> {
    let columns = [
        "",
        "mean of writes, conventional",
        "RMW",
        "tail of writes, conventional",
        "RMW",
        "RMW is busy",
        "one over the other",
    ];
    let mut table = Table {
        heading: "Latency of writes with read-modify-write if the same requests came in less time".into(),
        columns: columns.map(String::from).to_vec(),
        ..Table::default()
    };
    for machine in WORST {
        for days in [7, 3, 2, 1] {
            for small in [false, true] {
                let mut case = Case::of(machine, Arrivals::default());
                case.choices.days = days;
                let label = |layer: &str| if small { format!("{layer}:{SMALL_CACHE}") } else { layer.to_string() };
                let (base, rmw) = (label(CONVENTIONAL), label(RMW));
                let [base, rmw] = numbers(case, [&base, &rmw], replication)?;
                let ms = |ms: f64| format!("{} ms", figure(ms));
                table.rows.push(vec![
                    format!("{machine} in {days} days, {} MiB of write cache", if small { 8 } else { 64 }),
                    ms(base.write_mean_ms),
                    ms(rmw.write_mean_ms),
                    ms(base.write_p999_ms),
                    ms(rmw.write_p999_ms),
                    format!("{:.0} %", rmw.busy * 100.0),
                    figure(rmw.write_p999_ms / base.write_p999_ms),
                ]);
            }
        }
    }
    Ok(table)
}

/// Returns a table of the time that a request takes on the worst machines, with other models of the drive than the
/// paper's.
pub(super) fn models(replication: &Replication) -> Result<Table, Failure> {
    /// Name of a model, its parameters for both drives, and those for read-modify-write alone.
    type Model = (&'static str, &'static str, &'static str);
    const MODELS: [Model; 6] = [
        ("as above: half a rotation, one backup region", "", ""),
        ("sixteen backup regions", "", "backup_regions=16"),
        ("writes to one track share no operation", "", "join=off"),
        ("exact rotation", "mechanics.rotation=exact", ""),
        ("exact rotation, sixteen backup regions", "mechanics.rotation=exact", "backup_regions=16"),
        ("a write cache of 64 writes of 4 KiB, which share no operation", "host.write_cache_bytes=262144", "join=off"),
    ];
    let columns = ["", "ms a request, conventional", "RMW", "RMW is busy", "tail of writes, conventional", "RMW"];
    let mut table = Table {
        heading: "Time of a request, and latency of writes, with other models of the drive".into(),
        columns: columns.map(String::from).to_vec(),
        ..Table::default()
    };
    for machine in WORST {
        for (name, both, rmw) in MODELS {
            let label = |layer: &str, own: &str| {
                let parameters: Vec<&str> = [both, own].into_iter().filter(|words| !words.is_empty()).collect();
                if parameters.is_empty() { layer.to_string() } else { format!("{layer}:{}", parameters.join(",")) }
            };
            let (base, rmw) = (label(CONVENTIONAL, ""), label(RMW, rmw));
            let case = Case::of(machine, Arrivals::default());
            let [base, rmw] = numbers(case, [&base, &rmw], replication)?;
            let of_a_request =
                |numbers: &Numbers| figure(numbers.busy * numbers.seconds * 1e3 / numbers.requests as f64);
            table.rows.push(vec![
                format!("{machine}, {name}"),
                of_a_request(&base),
                of_a_request(&rmw),
                format!("{:.0} %", rmw.busy * 100.0),
                format!("{} ms", figure(base.write_p999_ms)),
                format!("{} ms", figure(rmw.write_p999_ms)),
            ]);
        }
    }
    Ok(table)
}

/// Returns a table of the write amplification in sectors on the smaller machines, with all addresses shifted against
/// the tracks.
pub(super) fn alignments(replication: &Replication) -> Result<Table, Failure> {
    /// Shifts in sectors of 512 bytes, and their names. A track has 2 MiB, a group of bottoms 128 tracks.
    const SHIFTS: [(u64, &str); 4] = [
        (0, "as above"),
        (2048, "half a track"),
        (64 * 4096, "half the bottoms of a group"),
        (128 * 4096, "tops for bottoms"),
    ];
    const LAYERS: [&str; 4] = [RMW, FLIP, CACHE, MAP];
    let mut table = Table {
        heading: "Write amplification in sectors with all addresses shifted".into(),
        columns: ["", "shift"].into_iter().chain(LAYERS).map(String::from).collect(),
        ..Table::default()
    };
    for case in smaller_machines() {
        for (shift_sectors, name) in SHIFTS {
            let case = Case { shift_sectors, ..case };
            let numbers = numbers(case, LAYERS, replication)?;
            let cells = numbers.iter().map(|numbers| figure(numbers.amplification));
            table.rows.push([case.name.to_string(), name.to_string()].into_iter().chain(cells).collect());
        }
    }
    Ok(table)
}
