//! The table of results that `imbrex simulate` prints.

use imbrex_layer::registry;
use imbrex_sim::results::Integrity;
use imbrex_sim::{DriveResult, Estimate};

use crate::human;
use crate::table_form::{Cell, Cells, Column};

/// Column headings.
const COLUMNS: [&str; 12] = [
    "drive",
    "done",
    "read mean",
    "read p99",
    "write mean",
    "write p99",
    "longest stall",
    "time",
    "write ampl.",
    "overload",
    "map",
    "capacity",
];

/// Returns the numbers of the drives in the order of tables: each baseline with the drives that are compared with it, by
/// their mean latency. Drives that completed nothing are last among them, drives without a baseline last of all.
pub fn order(drives: &[DriveResult]) -> Vec<usize> {
    let group_of = |drive: &DriveResult| {
        let label = drive.compared_with.as_ref()?;
        drives.iter().position(|other| other.compared_with.as_ref() == Some(label))
    };
    let key = |index: &usize| {
        let drive = &drives[*index];
        let is_compared = drive.compared_with.as_ref() != Some(&drive.drive);
        let mean = if drive.completed == 0 { u64::MAX } else { drive.latency_ns.all.mean };
        (group_of(drive).unwrap_or(usize::MAX), is_compared, mean, *index)
    };
    let mut numbers: Vec<usize> = (0..drives.len()).collect();
    numbers.sort_by_key(key);
    numbers
}

/// Returns the results of `drives` as text for a terminal that is `columns` characters wide, as [`Cells::within`] folds it: one
/// line or block per drive.
pub fn render(drives: &[DriveResult], columns: Option<usize>) -> String {
    shown(drives).within(columns)
}

/// Returns the table for people: one row per drive, in [`order`], with the ratios to the baseline in the cells of the times.
pub fn shown(drives: &[DriveResult]) -> Cells {
    let column = |name: &&str| if *name == COLUMNS[0] { Column::text(name, name) } else { Column::numeric(name, name) };
    let rows = order(drives).into_iter().map(|index| row(&drives[index]).into_iter().map(Cell::text).collect());
    Cells { columns: COLUMNS.iter().map(column).collect(), rows: rows.collect() }
}

/// Returns the table for other programs, in [`order`]. In CSV, times are in nanoseconds, sizes in bytes, and the ratio of a
/// time to the baseline's has a column of its own; with several seeds, numbers are means over the seeds, and each has half
/// of its 95 % interval.
pub fn cells(drives: &[DriveResult]) -> Cells {
    let timed = |name: &str, heading: &str| {
        [
            Column::numeric(&format!("{name}_ns"), heading),
            Column::numeric(&format!("{name}_ratio"), &format!("{heading} (×)")),
        ]
    };
    let mut columns = vec![Column::text("drive", "drive"), Column::text("baseline", "baseline")];
    columns.push(Column::numeric("completed", "done"));
    for (name, heading) in TIMED {
        columns.extend(timed(name, heading));
    }
    columns.extend(timed("duration", "time"));
    columns.push(Column::numeric("longest_stall_ns", "longest stall"));
    columns.push(Column::numeric("write_amplification", "write ampl."));
    columns.push(Column::numeric("write_overloading", "overload"));
    columns.push(Column::numeric("map_bytes", "map"));
    columns.push(Column::numeric("capacity_gain", "capacity"));
    let rows = order(drives).into_iter().map(|index| cells_of(&drives[index])).collect();
    Cells { columns, rows }
}

/// Latencies of the table: the beginning of their names in CSV, and their headings.
const TIMED: [(&str, &str); 4] =
    [("read_mean", "read mean"), ("read_p99", "read p99"), ("write_mean", "write mean"), ("write_p99", "write p99")];

fn cells_of(drive: &DriveResult) -> Vec<Cell> {
    let number = |path: &str, value: f64, shown: fn(f64) -> String| match drive.over_seeds.get(path) {
        Some(over) => Cell::estimate(over, estimate(over, shown)),
        None => Cell::number(value, shown(value)),
    };
    let is_compared = drive.compared_with.as_ref().is_some_and(|with| *with != drive.drive);
    let ratios = drive.latency_ratio.filter(|_| is_compared).unwrap_or_default();
    let (latency, host) = (&drive.latency_ns, &drive.host);
    let time = |path: &str, ns: u64| number(path, ns as f64, |ns| human::duration_ns(ns.round() as u64));
    let ratio =
        |path: &str, ratio: Option<f64>| ratio.map_or_else(Cell::none, |ratio| number(path, ratio, human::ratio));
    let mut row = vec![Cell::text(&drive.drive), Cell::text(drive.compared_with.as_deref().unwrap_or("–"))];
    row.push(number("completed", drive.completed as f64, |count| human::count(count.round() as u64)));
    for (count, path, ns, to_baseline) in [
        (host.reads, "read.mean", latency.read.mean, ratios.read.map(|read| read.mean)),
        (host.reads, "read.p99", latency.read.p99, ratios.read.map(|read| read.p99)),
        (host.writes, "write.mean", latency.write.mean, ratios.write.map(|write| write.mean)),
        (host.writes, "write.p99", latency.write.p99, ratios.write.map(|write| write.p99)),
    ] {
        if count == 0 {
            row.extend([Cell::none(), Cell::none()]);
            continue;
        }
        row.push(time(&format!("latency_ns.{path}"), ns));
        row.push(ratio(&format!("latency_ratio.{path}"), to_baseline));
    }
    row.push(time("duration_ns", drive.duration_ns));
    row.push(ratio("duration_ratio", drive.duration_ratio.filter(|_| is_compared)));
    row.push(time("longest_stall_ns", drive.longest_stall_ns));
    row.push(number("write_amplification", drive.write_amplification, human::ratio));
    row.push(number("write_overloading", drive.write_overloading, human::ratio));
    row.push(number("map_bytes", drive.map_bytes as f64, |bytes| human::bytes(bytes.round() as u64)));
    row.push(number("capacity_gain", drive.capacity_gain, human::gain));
    row
}

/// Returns the cells of a drive, in the order of [`COLUMNS`].
fn row(drive: &DriveResult) -> Vec<String> {
    let latency = &drive.latency_ns;
    let label = if drive.baseline { format!("{} (baseline)", drive.drive) } else { drive.drive.clone() };
    let is_compared = drive.compared_with.as_ref().is_some_and(|with| *with != drive.drive);
    let ratios = drive.latency_ratio.filter(|_| is_compared).unwrap_or_default();
    let (read, write) = (ratios.read, ratios.write);
    let (reads, writes) = (drive.host.reads, drive.host.writes);
    let time = |count, path, ns, ratio| duration_of(drive, (count, path), ns, ratio);
    let figure = |path, value, shown: fn(f64) -> String| match drive.over_seeds.get(path) {
        Some(over) => estimate(over, shown),
        None => shown(value),
    };
    vec![
        label,
        figure("completed", drive.completed as f64, |count| human::count(count.round() as u64)),
        time(reads, "read.mean", latency.read.mean, read.map(|read| read.mean)),
        time(reads, "read.p99", latency.read.p99, read.map(|read| read.p99)),
        time(writes, "write.mean", latency.write.mean, write.map(|write| write.mean)),
        time(writes, "write.p99", latency.write.p99, write.map(|write| write.p99)),
        figure("longest_stall_ns", drive.longest_stall_ns as f64, |ns| human::duration_ns(ns.round() as u64)),
        time(1, "", drive.duration_ns, drive.duration_ratio.filter(|_| is_compared)),
        figure("write_amplification", drive.write_amplification, human::ratio),
        figure("write_overloading", drive.write_overloading, human::ratio),
        figure("map_bytes", drive.map_bytes as f64, |bytes| human::bytes(bytes.round() as u64)),
        human::gain(drive.capacity_gain),
    ]
}

/// Returns a mean over seeds, formatted by `shown`. If the figure depends on the seed, ` ±` and half the width of the
/// 95 % confidence interval of the mean follow, formatted in the same way.
pub fn estimate(over: &Estimate, shown: impl Fn(f64) -> String) -> String {
    if over.is_constant() {
        return shown(over.mean);
    }
    format!("{} ±{}", shown(over.mean), shown(over.half_width_95))
}

/// Formats a duration given in ns, with its ratio to the baseline's if there is one; with several seeds, formats the
/// means and the halves of the 95 % intervals. `path` is the latency's path in the results, empty for the duration of
/// the run. Returns a dash if `count`, the number of requests it was measured over, is 0.
fn duration_of(drive: &DriveResult, (count, path): (u64, &str), ns: u64, ratio: Option<f64>) -> String {
    if count == 0 {
        return "–".into();
    }
    let (of_time, of_ratio) = match path {
        "" => ("duration_ns".to_string(), "duration_ratio".to_string()),
        _ => (format!("latency_ns.{path}"), format!("latency_ratio.{path}")),
    };
    let whole = |ns: f64| human::duration_ns(ns.round() as u64);
    let time = match drive.over_seeds.get(&of_time) {
        Some(over) => estimate(over, whole),
        None => human::duration_ns(ns),
    };
    match (ratio, drive.over_seeds.get(&of_ratio)) {
        (None, _) => time,
        (Some(_), Some(over)) => format!("{time} ({})", estimate(over, |ratio| format!("{}×", human::ratio(ratio)))),
        (Some(ratio), None) => format!("{time} ({}×)", human::ratio(ratio)),
    }
}

/// Returns the lines that name the baselines of the ratios: one line if all drives have the same baseline, otherwise
/// one for each baseline with its drives.
fn compared(drives: &[DriveResult]) -> Vec<String> {
    let others = || drives.iter().filter(|drive| drive.compared_with.as_ref().is_some_and(|with| *with != drive.drive));
    let mut baselines: Vec<&String> = others().filter_map(|drive| drive.compared_with.as_ref()).collect();
    baselines.sort_unstable();
    baselines.dedup();
    let mut lines: Vec<String> = baselines
        .iter()
        .map(|baseline| {
            let these = others().filter(|drive| drive.compared_with.as_ref() == Some(baseline));
            let these: Vec<&str> = these.map(|drive| drive.drive.as_str()).collect();
            match baselines.len() {
                1 => format!("(×): ratio to {baseline}"),
                _ => format!("(×): ratio to {baseline}: {}", these.join(", ")),
            }
        })
        .collect();
    if let Some(fewest) = drives.iter().filter_map(|drive| drive.compared_requests).min() {
        lines.push(format!(
            "interrupted: each ratio of times is that of the requests which the drive and its baseline both completed, {} at \
             least; all else is of the requests that each completed",
            human::count(fewest)
        ));
    }
    lines
}

/// Returns whether the layer is for caveat disks, whose host has to avoid the sectors that a write damages.
fn is_caveat(layer: &str) -> bool {
    registry::named(layer).is_some_and(|info| info.recordings.contains(&"caveat"))
}

/// Returns the remarks to be printed below the table, one per line: integrity, the baselines of the ratios, damage,
/// broken rules, rejected requests, `safety=paper`, delays by a full queue, and long stalls.
pub fn remarks(drives: &[DriveResult]) -> Vec<String> {
    let mut lines = Vec::new();
    if drives.iter().all(|drive| drive.integrity == Integrity::ok()) {
        lines.push("integrity: no live sector was lost on any drive".into());
    }
    lines.extend(compared(drives));
    for drive in drives {
        if let Integrity::Violation { violation, request } = &drive.integrity {
            lines.push(format!("DAMAGE on {} at request {request}: {violation}", drive.drive));
        }
        if let Integrity::RuleBreaks { rule_breaks, live_sectors_destroyed, first, request } = &drive.integrity {
            lines.push(format!(
                "{}: {} (first, at request {request}: {first}), {}",
                drive.drive,
                match rule_breaks {
                    0 => "no write breaks the drive's rules".to_string(),
                    1 => "1 write breaks the drive's rules".to_string(),
                    _ => format!("{} writes break the drive's rules", human::count(*rule_breaks)),
                },
                match live_sectors_destroyed {
                    None => "which such a drive refuses; --check counts the destroyed live sectors".to_string(),
                    Some(1) => "1 live sector destroyed by the host's own writes".to_string(),
                    Some(sectors) => {
                        format!("{} live sectors destroyed by the host's own writes", human::count(*sectors))
                    }
                },
            ));
        }
        if is_caveat(&drive.layer) && drive.integrity == Integrity::off() && drive.host.writes > 0 {
            lines.push(format!(
                "{}: a write may destroy sectors after it; lost live sectors were not counted, --check counts them",
                drive.drive
            ));
        }
        for (reason, count) in &drive.rejected {
            lines.push(format!("{}: {} requests rejected: {reason}", drive.drive, human::count(*count)));
        }
        if drive.paper_safety {
            lines.push(format!("{}: safety=paper: a power cut could lose data in these steps", drive.drive));
        }
        let before = &drive.latency_ns.before_queue;
        if before.mean > drive.latency_ns.all.mean {
            lines.push(format!(
                "{}: a full queue delayed requests against the times of the workload by {} on average and {} at p99; no latency \
                 includes this delay",
                drive.drive,
                human::duration_ns(before.mean),
                human::duration_ns(before.p99)
            ));
        }
        let windows = &drive.windows;
        if windows.stalled > 0 && drive.longest_stall_ns > windows.width_ns {
            lines.push(format!(
                "{}: requests waited in {} windows of {}, and in {} of them none completed; longest stall by cleaning {}",
                drive.drive,
                human::count(windows.busy),
                human::duration_ns(windows.width_ns),
                human::count(windows.stalled),
                human::duration_ns(drive.cleaning.longest_stall_ns)
            ));
        }
    }
    lines
}
