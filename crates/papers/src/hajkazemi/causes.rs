//! Claims of figs 8 and 9 that do not hold: variations of the workload that look for the reason.

use imbrex_trace::generators::{Arrivals, Choices};

use super::super::Replication;
use super::super::report::Table;
use super::runs::{self, Numbers};
use super::table::figure;
use super::under_test::{CONVENTIONAL, MAP, RMW, SMALL_CACHE};
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
