//! The main table of the page: one row per measure, one column per drive.
//!
//! Invariants:
//! 1. Every number is taken from `summary.json`. Its JSON pointer (`data-at`) and its value (`data-value`) are
//!    attributes of the cell.

use std::fmt::Write as _;

use imbrex_sim::results::Integrity;
use imbrex_sim::{DriveResult, Estimate, Summary};
use serde_json::Value;

use super::intervals;
use crate::chart::{Series, Shape, Style, Unit, escape, swatch};
use crate::table;

/// A measure: its place in a drive's results, and its format.
struct Measure {
    name: &'static str,
    at: &'static str,
    unit: Unit,
    /// Whether the cell also shows the value as a multiple of the baseline's value.
    is_compared: bool,
    /// Function that returns whether a drive has the measure.
    is_there: fn(&DriveResult) -> bool,
}

const fn measure(name: &'static str, at: &'static str, unit: Unit) -> Measure {
    Measure { name, at, unit, is_compared: false, is_there: always }
}

const fn latency(name: &'static str, at: &'static str, is_there: fn(&DriveResult) -> bool) -> Measure {
    Measure { name, at, unit: Unit::Nanoseconds, is_compared: true, is_there }
}

impl Measure {
    /// Returns the measure's key in [`DriveResult::over_seeds`].
    fn path(&self) -> String {
        self.at.trim_start_matches('/').replace('/', ".")
    }
}

fn always(_: &DriveResult) -> bool {
    true
}

fn reads(drive: &DriveResult) -> bool {
    drive.host.reads > 0
}

fn writes(drive: &DriveResult) -> bool {
    drive.host.writes > 0
}

fn waits(drive: &DriveResult) -> bool {
    drive.latency_ns.before_queue.max > 0
}

fn cleans(drive: &DriveResult) -> bool {
    drive.cleaning.events > 0
}

const GROUPS: [(&str, &[Measure]); 6] = [
    (
        "Latency of reads",
        &[
            latency("Mean", "/latency_ns/read/mean", reads),
            latency("Median", "/latency_ns/read/p50", reads),
            latency("99 %", "/latency_ns/read/p99", reads),
            latency("99.9 %", "/latency_ns/read/p999", reads),
            latency("Longest", "/latency_ns/read/max", reads),
        ],
    ),
    (
        "Latency of writes",
        &[
            latency("Mean", "/latency_ns/write/mean", writes),
            latency("Median", "/latency_ns/write/p50", writes),
            latency("99 %", "/latency_ns/write/p99", writes),
            latency("99.9 %", "/latency_ns/write/p999", writes),
            latency("Longest", "/latency_ns/write/max", writes),
        ],
    ),
    (
        "Run",
        &[
            measure("Completed", "/completed", Unit::Count),
            Measure { is_compared: true, ..measure("Longest stall", "/longest_stall_ns", Unit::Nanoseconds) },
            measure("Windows with requests", "/windows/busy", Unit::Count),
            measure("Of these, without a completion", "/windows/stalled", Unit::Count),
            Measure {
                is_there: waits,
                ..measure("Wait before the queue, 99 %", "/latency_ns/before_queue/p99", Unit::Nanoseconds)
            },
            Measure { is_compared: true, ..measure("Simulated time", "/duration_ns", Unit::Nanoseconds) },
        ],
    ),
    (
        "At the medium",
        &[
            Measure { is_there: writes, ..measure("Write amplification", "/write_amplification", Unit::Ratio) },
            Measure { is_there: reads, ..measure("Read amplification", "/read_amplification", Unit::Ratio) },
            Measure { is_there: writes, ..measure("Write overloading", "/write_overloading", Unit::Ratio) },
        ],
    ),
    (
        "Cleaning",
        &[
            measure("Events", "/cleaning/events", Unit::Count),
            Measure { is_there: cleans, ..measure("Mean duration", "/cleaning/mean_ns", Unit::Nanoseconds) },
            Measure { is_there: cleans, ..measure("Longest", "/cleaning/max_ns", Unit::Nanoseconds) },
            Measure {
                is_there: cleans,
                ..measure("Longest wait of a request", "/cleaning/longest_stall_ns", Unit::Nanoseconds)
            },
        ],
    ),
    (
        "Capacity and memory",
        &[
            measure("Capacity", "/capacity_bytes", Unit::Bytes),
            measure("Capacity gain", "/capacity_gain", Unit::Ratio),
            measure("Over-provisioning", "/over_provisioning", Unit::Share),
            measure("Map", "/map_bytes", Unit::Bytes),
            measure("Map by the paper’s formula", "/map_bytes_formula", Unit::Bytes),
        ],
    ),
];

/// Returns the table as HTML, with the drives in the order of [`table::order`].
pub(super) fn table(summary: &Summary) -> String {
    let values: Vec<Value> =
        summary.drives.iter().map(|drive| serde_json::to_value(drive).expect("results are plain values")).collect();
    let seeds = match summary.seeds.len() {
        0 | 1 => String::new(),
        count => format!(" ± is half of the 95 % interval of the mean over {count} seeds."),
    };
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of the comparison\"><table class=\"comparison\">\
         <caption><span>Small ratios compare with the drive’s own baseline, named in the first rows, on the same \
         workload.{seeds}</span></caption><thead><tr><th scope=\"col\">Drive</th>",
    );
    let order = table::order(&summary.drives);
    for &index in &order {
        html += &drive_header(index, &summary.drives[index], summary.is_baseline(index));
    }
    html += "</tr></thead>";
    let sorted: Vec<&DriveResult> = order.iter().map(|&index| &summary.drives[index]).collect();
    html += &words(&sorted);
    for (group, measures) in &GROUPS {
        let _ = write!(
            html,
            "<tbody><tr class=\"group\"><th scope=\"rowgroup\">{group}</th><td colspan=\"{}\"></td></tr>",
            values.len()
        );
        for measure in *measures {
            html += &row(measure, summary, &values, &order);
        }
        html += "</tbody>";
    }
    html + "</table></div>"
}

fn drive_header(index: usize, drive: &DriveResult, is_baseline: bool) -> String {
    let look = Series::new("", Shape::Line, index, Vec::new());
    let badge = if is_baseline { "<span class=\"badge\">baseline</span>" } else { "" };
    // A line break is allowed after the characters that join the parts of a drive's name.
    let name = escape(&drive.drive).replace('+', "+<wbr>").replace(':', ":<wbr>").replace(',', ",<wbr>");
    format!("<th scope=\"col\">{}<span class=\"name\">{name}</span>{badge}</th>", swatch(&look, Style::Embedded))
}

/// Returns the rows of text: layer, baseline, integrity, safety on a power cut, rejected requests.
fn words(drives: &[&DriveResult]) -> String {
    let mut html = String::from("<tbody><tr><th scope=\"row\">Layer</th>");
    for drive in drives {
        let _ = write!(html, "<td>{}</td>", escape(&drive.layer));
    }
    html += "</tr>";
    if drives.iter().any(|drive| drive.compared_with.is_some()) {
        html += "<tr><th scope=\"row\">Compared with</th>";
        for drive in drives {
            html += &compared(drive);
        }
        html += "</tr>";
    }
    html += "<tr><th scope=\"row\">Integrity</th>";
    for drive in drives {
        html += &integrity(&drive.integrity);
    }
    html += "</tr>";
    if drives.iter().any(|drive| drive.paper_safety) {
        html += "<tr><th scope=\"row\">Power cut</th>";
        for drive in drives {
            let cell = if drive.paper_safety {
                "<td class=\"warn\" title=\"safety=paper: the paper’s own steps\">may lose data</td>"
            } else {
                "<td>safe</td>"
            };
            html += cell;
        }
        html += "</tr>";
    }
    if drives.iter().any(|drive| !drive.rejected.is_empty()) {
        html += "<tr><th scope=\"row\">Rejected</th>";
        for drive in drives {
            let reasons: Vec<String> =
                drive.rejected.iter().map(|(reason, count)| format!("{count} {}", escape(reason))).collect();
            let _ = write!(html, "<td>{}</td>", if reasons.is_empty() { "none".into() } else { reasons.join(", ") });
        }
        html += "</tr>";
    }
    html + "</tbody>"
}

/// Returns the cell with the drive's baseline. After an early stop, also shows how many requests are compared.
fn compared(drive: &DriveResult) -> String {
    match &drive.compared_with {
        Some(label) if *label == drive.drive => "<td class=\"muted\">itself</td>".to_string(),
        Some(label) => {
            let part = match drive.compared_requests {
                Some(requests) => {
                    format!("<small>stopped: the first {requests} requests, which both completed</small>")
                }
                None => String::new(),
            };
            format!("<td>{}{part}</td>", escape(label).replace('+', "+<wbr>").replace(',', ",<wbr>"))
        }
        None => "<td class=\"muted\">–</td>".to_string(),
    }
}

fn integrity(integrity: &Integrity) -> String {
    match integrity {
        Integrity::Word(word) if word == "ok" => "<td class=\"good\">✓ whole</td>".to_string(),
        Integrity::Word(word) if word == "off" => "<td class=\"muted\">not checked</td>".to_string(),
        Integrity::Word(word) => format!("<td>{}</td>", escape(word)),
        Integrity::RuleBreaks { rule_breaks, live_sectors_destroyed, first, request } => {
            let destroyed = match live_sectors_destroyed {
                Some(sectors) => format!("{sectors} live sectors destroyed"),
                None => "destroyed live sectors not counted".to_string(),
            };
            format!(
                "<td class=\"bad\"><b>✗ {rule_breaks} writes against the rules</b><small>{destroyed}; first at request \
                 {request}: {}</small></td>",
                escape(first)
            )
        }
        Integrity::Violation { violation, request } => {
            format!("<td class=\"bad\"><b>✗ damaged</b><small>request {request}: {}</small></td>", escape(violation))
        }
    }
}

/// Returns the cell of a figure with its mean and half of its 95 % interval over the seeds. A figure that is compared
/// also has the mean of its ratio to the baseline's, if the results have that ratio.
fn over_seeds(measure: &Measure, (index, drive): (usize, &DriveResult), over: &Estimate, is_compared: bool) -> String {
    let path = measure.path();
    let of_ratio = match path.as_str() {
        "duration_ns" => "duration_ratio".to_string(),
        _ => path.replacen("latency_ns", "latency_ratio", 1),
    };
    let ratio = drive.over_seeds.get(&of_ratio).filter(|_| measure.is_compared && is_compared && of_ratio != path);
    let ratio = ratio.map_or_else(String::new, |ratio| {
        format!("<small>{}{}</small>", Unit::Ratio.label(ratio.mean), intervals::half(Unit::Ratio, ratio))
    });
    let half = intervals::half(measure.unit, over);
    let half = if half.is_empty() { half } else { format!("<small>{}</small>", half.trim_start()) };
    format!(
        "<td data-at=\"/drives/{index}/over_seeds/{path}/mean\" data-value=\"{0}\" title=\"{0}\">{1}{half}{ratio}</td>",
        over.mean,
        measure.unit.label(over.mean),
    )
}

fn row(measure: &Measure, summary: &Summary, values: &[Value], order: &[usize]) -> String {
    let mut html = format!("<tr><th scope=\"row\">{}</th>", measure.name);
    for &index in order {
        let drive = &summary.drives[index];
        if let Some(over) = drive.over_seeds.get(&measure.path()).filter(|_| (measure.is_there)(drive)) {
            html += &over_seeds(measure, (index, drive), over, summary.baseline_of(index) != Some(index));
            continue;
        }
        let number = values[index].pointer(measure.at).filter(|value| value.is_number());
        let Some((value, raw)) = number.filter(|_| (measure.is_there)(drive)).and_then(|v| Some((v.as_f64()?, v)))
        else {
            html += "<td class=\"muted\">–</td>";
            continue;
        };
        let baseline = summary.baseline_of(index);
        let reference = baseline.and_then(|index| values[index].pointer(measure.at)).and_then(Value::as_f64);
        let ratio = match reference {
            Some(reference) if measure.is_compared && baseline != Some(index) && reference > 0.0 => {
                format!("<small>{}</small>", Unit::Ratio.label(value / reference))
            }
            _ => String::new(),
        };
        let _ = write!(
            html,
            "<td data-at=\"/drives/{index}{}\" data-value=\"{raw}\" title=\"{raw}\">{}{ratio}</td>",
            measure.at,
            measure.unit.label(value)
        );
    }
    html + "</tr>"
}
