//! The result of a benchmark, as a table for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use imbrex::human;

use super::{BenchOutput, Timed};

/// Returns `amount` per second, for a time in nanoseconds.
pub(super) fn rate(amount: u64, ns: u64) -> f64 {
    amount as f64 * 1e9 / ns.max(1) as f64
}

/// Returns the table, and a line that says which clock measured the times.
pub(super) fn text(ran: &BenchOutput) -> String {
    let (is_virtual, phases): (bool, &[Timed]) = (ran.is_virtual(), &ran.phases);
    let has_disk = !is_virtual && phases.iter().any(|(_, disk_ns, _)| disk_ns.is_some());
    let costs = || phases.iter().filter_map(|(.., costs)| *costs);
    let has_records = costs().any(|costs| costs.record_bytes > 0);
    let has_hot_zone = costs().any(|costs| costs.hot_reads.is_some());
    let mut columns = vec!["phase", "done", "time", "a second", "MB/s"];
    columns.extend(has_disk.then_some("drive"));
    columns.extend(has_records.then_some("records"));
    columns.extend(has_hot_zone.then_some("hot reads"));
    columns.extend(["kind", "count", "mean", "p99", "longest"]);
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(columns);
    for (phase, disk_ns, costs) in phases {
        let costs = costs.unwrap_or_default();
        let mut head = vec![
            phase.name.to_string(),
            human::count(phase.done),
            human::duration_ns(phase.elapsed_ns),
            format!("{:.1}", rate(phase.done, phase.elapsed_ns)),
            format!("{:.2}", rate(phase.bytes(), phase.elapsed_ns) / 1e6),
        ];
        head.extend(has_disk.then(|| disk_ns.map_or_else(|| "–".into(), human::duration_ns)));
        head.extend(has_records.then(|| human::bytes(costs.record_bytes)));
        let (hits, reads) = costs.hot_reads.unwrap_or_default();
        head.extend(has_hot_zone.then(|| format!("{hits} of {reads}")));
        for (kind, figures) in &phase.measured {
            let latency = &figures.latency;
            let times = [latency.mean_ns(), latency.quantile_ns(0.99), latency.max_ns()];
            let mut row = head.clone();
            row.extend([kind.name().to_string(), human::count(latency.count())]);
            row.extend(times.map(human::duration_ns));
            table.add_row(row);
            head.iter_mut().for_each(String::clear);
        }
    }
    let numbers = table.column_count() - 4;
    for (number, column) in table.column_iter_mut().enumerate() {
        if number > 0 && number != numbers {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut lines: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.push(match (is_virtual, has_disk) {
        (true, _) => "times: those of the drives, by the virtual clock; a processor takes none".into(),
        (false, true) => "times: by the wall clock; 'drive': simulated time of the served drive".into(),
        (false, false) => "times: by the wall clock".to_string(),
    });
    lines.join("\n")
}
