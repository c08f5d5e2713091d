//! The table of results that `imbrex simulate` prints.

use comfy_table::{presets, CellAlignment, ContentArrangement, Table};
use imbrex_sim::results::Integrity;
use imbrex_sim::DriveResult;

use crate::human;

const COLUMNS: [&str; 13] = [
    "drive",
    "done",
    "time",
    "slowdown",
    "read mean",
    "read p99",
    "write mean",
    "write p99",
    "max",
    "write ampl.",
    "overload",
    "map",
    "capacity",
];

/// The table of `drives`, one a line.
pub fn render(drives: &[DriveResult]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(COLUMNS);
    for drive in drives {
        table.add_row(row(drive));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n")
}

fn row(drive: &DriveResult) -> Vec<String> {
    let latency = &drive.latency_ns;
    let label = if drive.baseline { format!("{} (baseline)", drive.drive) } else { drive.drive.clone() };
    vec![
        label,
        human::count(drive.completed),
        human::duration_ns(drive.duration_ns),
        drive.slowdown.map_or_else(|| "–".into(), human::ratio),
        duration_of(drive.host.reads, latency.read.mean),
        duration_of(drive.host.reads, latency.read.p99),
        duration_of(drive.host.writes, latency.write.mean),
        duration_of(drive.host.writes, latency.write.p99),
        human::duration_ns(latency.all.max),
        human::ratio(drive.write_amplification),
        human::ratio(drive.write_overloading),
        human::bytes(drive.map_bytes),
        human::gain(drive.capacity_gain),
    ]
}

/// A duration, or a dash where there was none of `count` to take it of.
fn duration_of(count: u64, ns: u64) -> String {
    if count == 0 {
        return "–".into();
    }
    human::duration_ns(ns)
}

/// Lines that a reader of the table must not miss.
pub fn remarks(drives: &[DriveResult]) -> Vec<String> {
    let mut lines = Vec::new();
    if drives.iter().all(|drive| drive.integrity == Integrity::ok()) {
        lines.push("integrity: no live sector was lost on any drive".into());
    }
    for drive in drives {
        if let Integrity::Violation { violation, request } = &drive.integrity {
            lines.push(format!("DAMAGE on {} at request {request}: {violation}", drive.drive));
        }
        if let Integrity::RuleBreaks { rule_breaks, live_sectors_destroyed, first, request } = &drive.integrity {
            lines.push(format!(
                "{}: {} (first, at request {request}: {first}), {} destroyed by the host's own writes",
                drive.drive,
                match rule_breaks {
                    0 => "no write breaks the drive's rules".to_string(),
                    1 => "1 write breaks the drive's rules".to_string(),
                    _ => format!("{} writes break the drive's rules", human::count(*rule_breaks)),
                },
                match live_sectors_destroyed {
                    1 => "1 live sector".to_string(),
                    _ => format!("{} live sectors", human::count(*live_sectors_destroyed)),
                },
            ));
        }
        for (reason, count) in &drive.rejected {
            lines.push(format!("{}: {} requests rejected: {reason}", drive.drive, human::count(*count)));
        }
        if drive.paper_safety {
            lines.push(format!("{}: safety=paper: a power cut could lose data in these steps", drive.drive));
        }
        if drive.windows.zero > 0 && drive.cleaning.longest_stall_ns > drive.windows.width_ns {
            lines.push(format!(
                "{}: {} of {} windows of {} without a completion; longest stall by cleaning {}",
                drive.drive,
                human::count(drive.windows.zero),
                human::count(drive.windows.count),
                human::duration_ns(drive.windows.width_ns),
                human::duration_ns(drive.cleaning.longest_stall_ns)
            ));
        }
    }
    lines
}
