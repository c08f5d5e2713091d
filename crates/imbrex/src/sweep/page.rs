//! The page of a sweep: what is measured against each parameter, a line for each drive and all else that is alike.
//!
//! Invariants:
//! 1. A line joins points that differ in the one parameter alone.
//! 2. The page names no other resource; its looks are those of the house's other reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::row::{Row, number};
use crate::chart::{Axis, Chart, Series, Shape, Style, Unit, escape, swatch};
use crate::report::{charts_json, document};

const SIZE: (f64, f64) = (580.0, 330.0);
/// Values farther apart than this stand on a logarithm.
const LOGARITHM_FROM: f64 = 15.0;
/// Lines that can be told apart.
const LINES_MAX: usize = 40;

/// What is drawn: the column, its name, its unit, and the column that says whether there is any.
const DRAWN: [(&str, &str, Unit, Option<&str>); 7] = [
    ("write_mean_ns", "write latency, mean", Unit::Nanoseconds, Some("host_writes")),
    ("write_p99_ns", "write latency, 99 %", Unit::Nanoseconds, Some("host_writes")),
    ("read_mean_ns", "read latency, mean", Unit::Nanoseconds, Some("host_reads")),
    ("read_p99_ns", "read latency, 99 %", Unit::Nanoseconds, Some("host_reads")),
    ("write_amplification", "write amplification", Unit::Ratio, Some("host_writes")),
    ("slowdown", "slowdown", Unit::Ratio, None),
    ("capacity_bytes", "capacity", Unit::Bytes, None),
];

/// The charts of `rows`: for each of `parameters` that takes two numbers or more, one a measure.
pub fn charts(rows: &[Row], parameters: &[String]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for parameter in parameters {
        let values: BTreeSet<&str> = rows.iter().filter_map(|row| row.text(parameter)).collect();
        let units: Option<Vec<Unit>> = values.iter().map(|value| number(value).map(|found| found.1)).collect();
        let Some(unit) = units.filter(|units| units.len() > 1 && units.windows(2).all(|pair| pair[0] == pair[1]))
        else {
            continue;
        };
        let lines = lines(rows, parameter, parameters);
        charts.extend(DRAWN.iter().filter_map(|drawn| chart(&lines, parameter, unit[0], drawn)));
    }
    charts
}

/// By what they have in common, the rows in the order of the parameter.
fn lines<'a>(rows: &'a [Row], parameter: &str, parameters: &[String]) -> BTreeMap<String, Vec<&'a Row>> {
    let is_one_workload = rows.iter().filter_map(|row| row.text("workload")).collect::<BTreeSet<_>>().len() == 1;
    let mut lines: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.number(&format!("{parameter}_number")).is_some()) {
        let mut name = row.text("drive_head").unwrap_or_default().to_string();
        for other in parameters.iter().filter(|other| *other != parameter) {
            let several = rows.iter().filter_map(|row| row.text(other)).collect::<BTreeSet<_>>().len() > 1;
            if let Some(value) = row.text(other).filter(|_| several) {
                let _ = write!(name, ", {other}={value}");
            }
        }
        // A workload whose words hold the parameter is another at each value: the others' lines are told by it.
        if let Some(workload) = row.text("workload").filter(|_| !is_one_workload) {
            let value = row.text(parameter).unwrap_or_default();
            let _ = write!(name, " · {}", workload.replace(&format!("={value}"), "=…"));
        }
        lines.entry(name).or_default().push(row);
    }
    lines
}

fn chart(
    lines: &BTreeMap<String, Vec<&Row>>,
    parameter: &str,
    unit: Unit,
    &(column, name, of, there): &(&str, &str, Unit, Option<&str>),
) -> Option<Chart> {
    let point = |row: &&Row| {
        let is_there = there.is_none_or(|there| row.number(there).is_some_and(|count| count > 0.0));
        let at = row.number(&format!("{parameter}_number"))?;
        row.number(column).filter(|_| is_there).map(|value| (at, value))
    };
    let drawn = lines.iter().map(|(name, rows)| {
        let mut points: Vec<(f64, f64)> = rows.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        (name, points)
    });
    let drawn: Vec<_> = drawn.filter(|(_, points)| points.len() > 1).take(LINES_MAX).collect();
    let all = || drawn.iter().flat_map(|(_, points)| points);
    let span = |of: fn(&(f64, f64)) -> f64| {
        let least = all().map(of).fold(f64::INFINITY, f64::min);
        (least, all().map(of).fold(f64::NEG_INFINITY, f64::max))
    };
    let ((first, last), (low, high)) = (span(|point| point.0), span(|point| point.1));
    if first >= last {
        return None;
    }
    let margin = (0.08 * (high - low)).max(0.001 * high.abs());
    let is_log = |low: f64, high: f64| low > 0.0 && high / low > LOGARITHM_FROM;
    let x = if is_log(first, last) {
        Axis::log10(parameter, unit)
    } else {
        Axis::linear(parameter, unit).ranged(first, last)
    };
    let y = if is_log(low, high) {
        Axis::log10(name, of)
    } else {
        Axis::linear(name, of).ranged((low - margin).max(0.0), high + margin)
    };
    let mut chart = Chart::new(format!("{parameter}-{column}"), format!("{name} by {parameter}"), x, y)
        .described(format!("{name} against {parameter}, a line for each drive."))
        .sized(SIZE.0, SIZE.1);
    for (look, (name, points)) in drawn.into_iter().enumerate() {
        chart = chart.with(Series::new(name, Shape::Line, look, points));
    }
    Some(chart)
}

/// The page of `rows`, in which `parameters` were swept.
pub fn html(title: &str, rows: &[Row], parameters: &[String]) -> String {
    let charts = charts(rows, parameters);
    let failed = rows.iter().filter(|row| row.text("error").is_some()).count();
    let mut body = format!(
        "<header><p class=\"kind\">imbrex sweep</p><h1>{}</h1><p class=\"facts\"><b>{}</b> points, {failed} failed · version {}</p></header><main>",
        escape(title),
        rows.len(),
        env!("CARGO_PKG_VERSION")
    );
    body += "<section aria-labelledby=\"charts\"><h2 id=\"charts\">Charts</h2><div class=\"figures\">";
    for chart in &charts {
        let _ = write!(body, "<figure class=\"chart\"><h3>{}</h3><ul class=\"legend\">", escape(&chart.title));
        for series in &chart.series {
            let _ = write!(body, "<li>{}{}</li>", swatch(series, Style::Embedded), escape(&series.name));
        }
        let _ = write!(body, "</ul>{}</figure>", chart.svg(Style::Embedded));
    }
    body += "</div></section>";
    body += &table(rows, parameters);
    body += "</main>";
    document(&format!("{title} – imbrex sweep"), &body, &charts_json(&charts.iter().collect::<Vec<_>>()))
}

/// Every point: what was swept, and what came of it or why nothing did.
fn table(rows: &[Row], parameters: &[String]) -> String {
    let mut html = String::from(
        "<section aria-labelledby=\"points\"><h2 id=\"points\">Points</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-labelledby=\"points\"><table class=\"made\"><thead><tr><th scope=\"col\">Workload</th><th scope=\"col\">Drive</th>",
    );
    for parameter in parameters {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(parameter));
    }
    html += "<th scope=\"col\">write mean</th><th scope=\"col\">read mean</th><th scope=\"col\">write ampl.</th>\
             <th scope=\"col\">error</th></tr></thead><tbody>";
    for row in rows {
        let ms = |name: &str| row.number(name).map_or_else(String::new, |ns| crate::human::duration_ns(ns as u64));
        let mut cells = vec![row.text("workload").unwrap_or_default().to_string()];
        cells.push(row.text("drive_head").unwrap_or_default().to_string());
        cells.extend(parameters.iter().map(|parameter| row.text(parameter).unwrap_or_default().to_string()));
        cells.push(ms("write_mean_ns"));
        cells.push(ms("read_mean_ns"));
        cells.push(row.number("write_amplification").map_or_else(String::new, crate::human::ratio));
        cells.push(row.text("error").unwrap_or_default().to_string());
        html += "<tr>";
        for cell in cells {
            let _ = write!(html, "<td>{}</td>", escape(&cell));
        }
        html += "</tr>";
    }
    html + "</tbody></table></div></section>"
}

#[cfg(test)]
mod tests {
    use super::super::row::{Cell, Kind};
    use super::*;

    fn row(drive: &str, share: &str, mean: i64) -> Row {
        let at = number(share).expect("a number").0;
        let cells = [
            ("workload", Kind::Text, Cell::Text("w".into())),
            ("drive_head", Kind::Text, Cell::Text(drive.into())),
            ("share", Kind::Text, Cell::Text(share.into())),
            ("share_number", Kind::Real, Cell::Real(at)),
            ("host_writes", Kind::Long, Cell::Long(9)),
            ("write_mean_ns", Kind::Long, Cell::Long(mean)),
        ];
        Row { cells: cells.into_iter().map(|(name, kind, cell)| (name.to_string(), kind, cell)).collect() }
    }

    #[test]
    fn a_line_a_drive_through_the_values_in_their_order() {
        let rows = [row("p", "2%", 20), row("p", "1%", 10), row("q", "1%", 30), row("q", "2%", 40)];
        let rows = &rows;
        let charts = charts(rows, &["share".to_string()]);
        assert_eq!(charts.len(), 1, "one measure is there");
        let points: Vec<_> = charts[0].series.iter().map(|series| (series.name.as_str(), &series.points[..])).collect();
        assert_eq!(points, [("p", &[(0.01, 10.0), (0.02, 20.0)][..]), ("q", &[(0.01, 30.0), (0.02, 40.0)])]);
        let page = html("a <sweep>", rows, &["share".to_string()]);
        assert!(page.contains("a &lt;sweep&gt;") && page.matches("<tr>").count() == 5, "{page}");
    }
}
