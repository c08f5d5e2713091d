//! Five workloads on every drive.

use super::super::{Experiment, Replication, Report};
use super::bench::{Case, Cost};
use super::compared::DRIVES;
use super::table::{COLUMNS, cells, megabytes, rate, table};
use imbrex::chart::{Axis, BarArrangement, BarChart, Unit};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "costs/drives", title: "mail, database, resilver and backup on every drive", run };

/// Built-in workloads: (name, heading).
pub(super) const WORKLOADS: [(&str, &str); 5] = [
    ("mail-server", "Mail server"),
    ("database", "Database"),
    ("resilver-source", "Resilver: a disk that stays"),
    ("resilver-target", "Resilver: the new disk"),
    ("backup", "Backup stream"),
];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: "The tables show the built-in workloads `mail-server`, `database`, `resilver-source`, \
                 `resilver-target` and `backup` on drives that were never written before and have a volatile cache \
                 of 64 MiB."
            .into(),
        ..Report::default()
    };
    compare(&mut report, "costs-drives", &DRIVES, replication)?;
    Ok(report)
}

/// Adds a table for each workload, and a chart of each drive's throughput divided by the first drive's.
pub(super) fn compare(
    report: &mut Report,
    id: &str,
    drives: &[(&str, &str)],
    replication: &Replication,
) -> Result<(), Failure> {
    let mut relative = vec![Vec::new(); drives.len()];
    for (workload, heading) in WORKLOADS {
        let mut columns = vec!["drive", "requests/s", "MB/s"];
        columns.extend(COLUMNS);
        let mut rows = table(&format!("{heading} (`{workload}`)"), &columns);
        let mut first = None;
        for (index, (name, drive)) in drives.iter().enumerate() {
            let cost = Case::new(drive, workload).make(replication)?;
            rows.rows.push(row(name, &cost));
            relative[index].push(cost.rate() / *first.get_or_insert(cost.rate()));
        }
        report.tables.push(rows);
    }
    let title = format!("Throughput over that of {}", drives[0].0);
    let groups = WORKLOADS.iter().map(|(workload, _)| workload.to_string()).collect();
    let axis = Axis::log10("times", Unit::Ratio);
    let mut chart = BarChart::new(id, title, axis, groups, BarArrangement::Grouped).sized(1000.0, 460.0);
    for (look, ((name, _), values)) in drives.iter().zip(relative).enumerate() {
        chart = chart.with(*name, look, values);
    }
    report.figure(chart.mark(1.0, drives[0].0));
    Ok(())
}

/// Returns the row of a run: throughput, latency, cost.
pub(super) fn row(name: &str, cost: &Cost) -> Vec<String> {
    let mut row = vec![name.to_string(), rate(cost.rate()), megabytes(cost.bytes_per_second())];
    row.extend(cells(cost));
    row
}
