//! Tables of the guide, and the format of numbers in these tables.

use super::super::Table;
use super::bench::Cost;
use imbrex::human;

/// Columns of latency and cost in every table of a workload.
pub(super) const COLUMNS: [&str; 7] = ["mean", "median", "99 %", "99.9 %", "longest", "stall by cleaning", "writes ×"];

/// Returns an empty table with `heading` and `columns`.
pub(super) fn table(heading: &str, columns: &[&str]) -> Table {
    let columns = columns.iter().map(|column| column.to_string()).collect();
    Table { heading: heading.into(), columns, rows: Vec::new() }
}

/// Returns the cells under [`COLUMNS`].
pub(super) fn cells(cost: &Cost) -> Vec<String> {
    let (latency, result) = (&cost.result.latency_ns.all, &cost.result);
    let times = [latency.mean, latency.p50, latency.p99, latency.p999, latency.max];
    let mut cells: Vec<_> = times.into_iter().map(human::duration_ns).collect();
    cells.push(stall(result.cleaning.longest_stall_ns));
    cells.push(human::ratio(result.write_amplification));
    cells
}

fn stall(ns: u64) -> String {
    if ns == 0 { "–".into() } else { human::duration_ns(ns) }
}

/// Returns a rate as text, with as many digits as matter.
pub(super) fn rate(value: f64) -> String {
    human::ratio(value)
}

/// Returns a rate in megabytes a second as text.
pub(super) fn megabytes(bytes_per_second: f64) -> String {
    human::ratio(bytes_per_second / 1e6)
}

/// Returns a time as text with its unit.
pub(super) fn seconds(seconds: f64) -> String {
    human::duration_ns((seconds * 1e9) as u64)
}
