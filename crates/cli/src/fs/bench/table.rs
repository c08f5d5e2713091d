//! The result of a benchmark, as a table for the terminal.

use imbrex::human;
use imbrex::table_form::{Cell, Cells, Column};

use super::{BenchOutput, Timed};
use crate::output;

/// Returns `amount` per second, for a time in nanoseconds.
pub(super) fn rate(amount: u64, ns: u64) -> f64 {
    amount as f64 * 1e9 / ns.max(1) as f64
}

/// Returns the table, and lines that say which clock measured the times, and over which seeds the means are.
pub(super) fn text(ran: &BenchOutput) -> String {
    let (is_virtual, phases): (bool, &[Timed]) = (ran.is_virtual(), &ran.phases);
    let has_disk = !is_virtual && phases.iter().any(|(_, disk_ns, _)| disk_ns.is_some());
    let costs = || phases.iter().filter_map(|(.., costs)| *costs);
    let has_records = costs().any(|costs| costs.record_bytes > 0);
    let has_hot_zone = costs().any(|costs| costs.hot_reads.is_some());
    let mut headings = vec!["phase", "done", "time", "a second", "MB/s"];
    headings.extend(has_disk.then_some("drive"));
    headings.extend(has_records.then_some("records"));
    headings.extend(has_hot_zone.then_some("hot reads"));
    headings.extend(["kind", "count", "mean", "p99", "longest"]);
    let mut rows = Vec::new();
    for (number, (phase, disk_ns, costs)) in phases.iter().enumerate() {
        let costs = costs.unwrap_or_default();
        let of_phase =
            |path: &str, value, shown: fn(f64) -> String| ran.shown(&format!("phases.{number}.{path}"), value, shown);
        let mut head = vec![
            phase.name.to_string(),
            of_phase("done", phase.done as f64, count),
            of_phase("elapsed_ns", phase.elapsed_ns as f64, duration),
            of_phase("done_per_second", rate(phase.done, phase.elapsed_ns), |rate| format!("{rate:.1}")),
            of_phase("bytes_per_second", rate(phase.bytes(), phase.elapsed_ns), |rate| format!("{:.2}", rate / 1e6)),
        ];
        head.extend(has_disk.then(|| disk_ns.map_or_else(|| "–".into(), human::duration_ns)));
        head.extend(has_records.then(|| of_phase("record_bytes", costs.record_bytes as f64, bytes)));
        let (hits, reads) = costs.hot_reads.unwrap_or_default();
        head.extend(has_hot_zone.then(|| {
            let [hits, reads] = [("hits", hits), ("reads", reads)].map(|(name, value)| {
                of_phase(&format!("hot_zone.{name}"), value as f64, |count| format!("{count:.0}"))
            });
            format!("{hits} of {reads}")
        }));
        for (kind, figures) in &phase.measured {
            let latency = &figures.latency;
            let of_kind =
                |path: &str, value, shown| of_phase(&format!("kinds.{}.{path}", kind.name()), value as f64, shown);
            let mut row = head.clone();
            row.push(kind.name().to_string());
            row.push(of_kind("count", latency.count(), count));
            row.push(of_kind("latency_ns.mean", latency.mean_ns(), duration));
            row.push(of_kind("latency_ns.p99", latency.quantile_ns(0.99), duration));
            row.push(of_kind("latency_ns.max", latency.max_ns(), duration));
            rows.push(row.into_iter().map(Cell::text).collect());
            head.iter_mut().for_each(String::clear);
        }
    }
    let is_text = |heading: &str| ["phase", "kind"].contains(&heading);
    let column =
        |heading| if is_text(heading) { Column::text(heading, heading) } else { Column::numeric(heading, heading) };
    let cells = Cells { columns: headings.into_iter().map(column).collect(), rows };
    let mut lines = vec![cells.within(output::terminal_columns())];
    lines.push(match (is_virtual, has_disk) {
        (true, _) => "times: those of the drives, by the virtual clock; a processor takes none".into(),
        (false, true) => "times: by the wall clock; 'drive': simulated time of the served drive".into(),
        (false, false) => "times: by the wall clock".to_string(),
    });
    if let Some(words) = ran.seeds_in_words() {
        lines.push(format!("±: half of the 95 % interval of the mean over {words}"));
        lines.push("each run started from the state found, and the file system stayed as it was".into());
    }
    lines.join("\n")
}

/// Returns the kinds of operations of all phases as a table for other programs: times in nanoseconds; means over the seeds,
/// with half of the 95 % interval of each, if there are several.
pub(super) fn cells(ran: &BenchOutput) -> Cells {
    let columns = vec![
        Column::text("phase", "phase"),
        Column::text("kind", "kind"),
        Column::numeric("done", "done"),
        Column::numeric("elapsed_ns", "time"),
        Column::numeric("done_per_second", "a second"),
        Column::numeric("bytes_per_second", "MB/s"),
        Column::numeric("count", "count"),
        Column::numeric("mean_ns", "mean"),
        Column::numeric("p99_ns", "p99"),
        Column::numeric("longest_ns", "longest"),
    ];
    let mut rows = Vec::new();
    for (number, (phase, ..)) in ran.phases.iter().enumerate() {
        let cell = |path: String, value: f64, shown: fn(f64) -> String| {
            let path = format!("phases.{number}.{path}");
            ran.cell(&path, value, shown)
        };
        for (kind, figures) in &phase.measured {
            let (latency, of) = (&figures.latency, |path: &str| format!("kinds.{}.{path}", kind.name()));
            let times = [("mean", latency.mean_ns()), ("p99", latency.quantile_ns(0.99)), ("max", latency.max_ns())];
            let mut row = vec![Cell::text(phase.name), Cell::text(kind.name())];
            row.push(cell("done".into(), phase.done as f64, count));
            row.push(cell("elapsed_ns".into(), phase.elapsed_ns as f64, duration));
            row.push(cell("done_per_second".into(), rate(phase.done, phase.elapsed_ns), |rate| format!("{rate:.1}")));
            let bytes_per_second = rate(phase.bytes(), phase.elapsed_ns);
            row.push(cell("bytes_per_second".into(), bytes_per_second, |rate| format!("{:.2}", rate / 1e6)));
            row.push(cell(of("count"), latency.count() as f64, count));
            row.extend(times.map(|(name, ns)| cell(of(&format!("latency_ns.{name}")), ns as f64, duration)));
            rows.push(row);
        }
    }
    Cells { columns, rows }
}

fn count(count: f64) -> String {
    human::count(count.round() as u64)
}

fn duration(ns: f64) -> String {
    human::duration_ns(ns.round() as u64)
}

fn bytes(bytes: f64) -> String {
    human::bytes(bytes.round() as u64)
}
