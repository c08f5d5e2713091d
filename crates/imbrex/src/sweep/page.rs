//! Page of a sweep: charts of each quantity over each parameter. A line joins the points of one drive and workload.
//!
//! Invariants:
//! 1. A line joins points that differ only in the parameter of the x axis.
//! 2. The page refers to no other resource, and looks like our other reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::row::{HALF_WIDTH, Row, number};
use crate::chart::{Axis, Chart, Unit, escape};
use crate::report::figure::chart_html;
use crate::report::{LOGARITHM_FROM, Point, charts_json, document, verdict, with_error_bars, y_axis};
use crate::table_form::{Cell, Cells, Column};

const SIZE: (f64, f64) = (580.0, 330.0);
/// Largest number of lines of a chart. More could not be distinguished.
const LINES_MAX: usize = 40;
/// Largest number of lines of a chart that are shown before the reader chooses others.
const LINES_SHOWN: usize = 8;

/// Quantities to draw: the column, its name, its unit, and the column of the number of requests it was measured on, if
/// any. Rows with no such requests have no point.
const DRAWN: [(&str, &str, Unit, Option<&str>); 7] = [
    ("write_mean_ns", "write latency, mean", Unit::Nanoseconds, Some("host_writes")),
    ("write_p99_ns", "write latency, 99 %", Unit::Nanoseconds, Some("host_writes")),
    ("read_mean_ns", "read latency, mean", Unit::Nanoseconds, Some("host_reads")),
    ("read_p99_ns", "read latency, 99 %", Unit::Nanoseconds, Some("host_reads")),
    ("write_amplification", "write amplification", Unit::Ratio, Some("host_writes")),
    ("stall_ns", "longest stall", Unit::Nanoseconds, None),
    ("capacity_bytes", "capacity", Unit::Bytes, None),
];

/// Returns the charts of `rows`: for each of `parameters`, one chart per measured quantity over the values of that
/// parameter, with at most 40 lines. Leaves out parameters that have fewer than two values, or values that are not all
/// numbers of one unit, and quantities without a line of two points. Error bars show the 95 % intervals of means over
/// several seeds.
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

/// Groups the rows into lines by the tags that differ between them. If no tag differs, all rows form one line, named by
/// profile and layer.
fn lines<'a>(rows: &'a [Row], parameter: &str, parameters: &[String]) -> BTreeMap<String, Vec<&'a Row>> {
    let drawn = || rows.iter().filter(|row| row.number(&format!("{parameter}_number")).is_some());
    let tags: Vec<Vec<String>> = drawn().map(|row| tags(row, parameter, parameters)).collect();
    let differ = |place: &usize| tags.iter().any(|own| own[*place] != tags[0][*place]);
    let mut told: Vec<usize> = (0..tags.first().map_or(0, Vec::len)).filter(differ).collect();
    if told.is_empty() {
        told = vec![PROFILE, LAYER];
    }
    let mut lines: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for (row, tags) in drawn().zip(&tags) {
        let drive: String = told.iter().filter(|place| **place <= LAYER).map(|place| tags[*place].as_str()).collect();
        let others = told.iter().filter(|place| **place > LAYER).map(|place| &tags[*place]);
        let words: Vec<&str> =
            std::iter::once(drive.trim_start_matches('+')).chain(others.map(String::as_str)).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        lines.entry(words.join(", ")).or_default().push(row);
    }
    lines
}

/// Indexes of the parts of a drive's name in the result of [`tags`].
const PROFILE: usize = 0;
const LAYER: usize = 1;

/// Returns the tags of a row, that is, its properties except `parameter`: profile, layer, the other parameters, the
/// workload.
fn tags(row: &Row, parameter: &str, parameters: &[String]) -> Vec<String> {
    let head = row.text("drive_head").unwrap_or_default();
    let (profile, layer) = head.split_at(head.find('+').unwrap_or(head.len()));
    let mut tags = vec![profile.to_string(), layer.to_string()];
    // If a workload's text contains a parameter, it differs at each value. A placeholder makes the texts equal.
    let mut workload = row.text("workload").unwrap_or_default().to_string();
    for name in parameters {
        let value = row.text(name).unwrap_or_default();
        let is_whole = |word: &str| word.split_once('=').is_some_and(|(_, found)| found == value && !value.is_empty());
        let words = workload.split(',').map(|word| match word.split_once('=') {
            Some((key, _)) if is_whole(word) => format!("{key}=…"),
            _ => word.to_string(),
        });
        workload = words.collect::<Vec<_>>().join(",");
        if name != parameter {
            tags.push(if value.is_empty() { String::new() } else { format!("{name}={value}") });
        }
    }
    tags.push(workload);
    tags
}

/// Returns the profile, layer and workload that all rows have in common, for the heading.
fn in_common(rows: &[Row], parameters: &[String]) -> String {
    let tags: Vec<Vec<String>> = rows.iter().map(|row| tags(row, "", parameters)).collect();
    let Some(first) = tags.first() else { return String::new() };
    let is_common = |place: usize| tags.iter().all(|own| own[place] == first[place]) && !first[place].is_empty();
    let mut words = Vec::new();
    if is_common(PROFILE) {
        words.push(if is_common(LAYER) { first[..=LAYER].concat() } else { first[PROFILE].clone() });
    }
    if is_common(first.len() - 1) {
        words.push(first[first.len() - 1].clone());
    }
    words.iter().map(|word| format!(" · {}", escape(word))).collect()
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
        let half = row.number(&format!("{column}{HALF_WIDTH}")).unwrap_or(0.0);
        row.number(column).filter(|_| is_there).map(|value| (at, value, half))
    };
    let drawn = lines.iter().map(|(name, rows)| {
        let mut points: Vec<Point> = rows.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        (name, points)
    });
    let mut drawn: Vec<_> = drawn.filter(|(_, points)| points.len() > 1).collect();
    let count = drawn.len();
    drawn.truncate(LINES_MAX);
    let all: Vec<Point> = drawn.iter().flat_map(|(_, points)| points).copied().collect();
    let first = all.iter().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let last = all.iter().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    if first >= last {
        return None;
    }
    let x = if first > 0.0 && last / first > LOGARITHM_FROM {
        Axis::log10(parameter, unit)
    } else {
        Axis::linear(parameter, unit).ranged(first, last)
    };
    let y = y_axis(name, of, &all)?;
    let mut title = format!("{name} by {parameter}");
    if count > LINES_MAX {
        let _ = write!(title, " (the first {LINES_MAX} of {count} lines)");
    }
    let has_bars = all.iter().any(|point| point.2 > 0.0);
    let bars = if has_bars { " Error bars are 95 % intervals of the means over the seeds." } else { "" };
    let mut chart = Chart::new(format!("{parameter}-{column}"), title, x, y)
        .described(format!("{name} against {parameter}, a line for each drive.{bars}"))
        .sized(SIZE.0, SIZE.1);
    for (look, (name, points)) in drawn.into_iter().enumerate() {
        chart = chart.with(with_error_bars(name, look, points).hidden(look >= LINES_SHOWN));
    }
    Some(chart)
}

/// Returns the HTML page of a sweep, with the charts and a table of `rows`. `parameters` are the names of the swept
/// parameters and options.
pub fn html(title: &str, rows: &[Row], parameters: &[String]) -> String {
    let charts = charts(rows, parameters);
    let failed = rows.iter().filter(|row| row.text("error").is_some()).count();
    let mut body = format!(
        "<header><p class=\"kind\">imbrex sweep</p><h1>{}</h1>{}<p class=\"facts\"><b>{}</b> points, {failed} failed{} · version {}</p></header><main>",
        escape(title),
        sentence(rows, parameters).map_or(String::new(), |text| verdict(&text)),
        rows.len(),
        in_common(rows, parameters),
        env!("CARGO_PKG_VERSION")
    );
    body += "<section aria-labelledby=\"charts\"><h2 id=\"charts\">Charts</h2><div class=\"figures\">";
    for chart in &charts {
        let _ = write!(body, "<figure class=\"chart\"><h3>{}</h3>{}</figure>", escape(&chart.title), chart_html(chart));
    }
    body += "</div>";
    if charts.iter().any(|chart| chart.series.iter().any(|series| !series.half_widths.is_empty())) {
        body += "<p>Points are means over several seeds; error bars and ± are the 95 % intervals of the means.</p>";
    }
    body += "</section>";
    body += &table(rows, parameters);
    body += "</main>";
    document(&format!("{title} – imbrex sweep"), &body, &charts_json(&charts.iter().collect::<Vec<_>>()))
}

/// Returns a sentence on the points with the shortest and the longest mean latency, of writes if there are any; `None` if
/// fewer than two points have it.
fn sentence(rows: &[Row], parameters: &[String]) -> Option<String> {
    let measured = |column: &str, of: &str| -> Vec<(f64, &Row)> {
        let has_any = |row: &&Row| row.number(of).is_some_and(|count| count > 0.0);
        rows.iter().filter(has_any).filter_map(|row| Some((row.number(column)?, row))).collect()
    };
    let writes = measured("write_mean_ns", "host_writes");
    let (name, mut found) = match writes.len() {
        0 | 1 => ("reads", measured("read_mean_ns", "host_reads")),
        _ => ("writes", writes),
    };
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ((least, best), (most, worst)) = (found.first()?, found.last().filter(|_| found.len() > 1)?);
    let at = |row: &Row| {
        let mut words = vec![row.text("drive_head").unwrap_or_default().to_string()];
        words.extend(parameters.iter().filter_map(|name| Some(format!("{name}={}", row.text(name)?))));
        words.join(", ")
    };
    let (least, most) = (crate::chart::label::duration(*least), crate::chart::label::duration(*most));
    Some(format!(
        "Of {} points, the mean latency of {name} is shortest at {}: {least}. It is longest at {}: {most}.",
        found.len(),
        at(best),
        at(worst)
    ))
}

/// Returns the table of all points: the parameters, and the results or the error.
fn table(rows: &[Row], parameters: &[String]) -> String {
    let mut html = String::from(
        "<section aria-labelledby=\"points\"><h2 id=\"points\">Points</h2><div class=\"scroll\" tabindex=\"0\" role=\"group\" \
         aria-label=\"Table of the points\"><table class=\"made\"><thead><tr><th scope=\"col\">Workload</th><th scope=\"col\">Drive</th>",
    );
    for parameter in parameters {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(parameter));
    }
    html += "<th scope=\"col\">write mean</th><th scope=\"col\">read mean</th><th scope=\"col\">write ampl.</th>\
             <th scope=\"col\">error</th></tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        for cell in texts(row, parameters) {
            let _ = write!(html, "<td>{}</td>", escape(&cell));
        }
        html += "</tr>";
    }
    html + "</tbody></table></div></section>"
}

/// Returns the points as a table for a terminal or for other programs. In CSV, times are in nanoseconds.
pub fn cells(rows: &[Row], parameters: &[String]) -> Cells {
    let mut columns = vec![Column::text("workload", "workload"), Column::text("drive", "drive")];
    columns.extend(parameters.iter().map(|name| Column::text(name, name)));
    let numbers = [
        ("write_mean_ns", "write mean", Some("host_writes")),
        ("read_mean_ns", "read mean", Some("host_reads")),
        ("write_amplification", "write ampl.", None),
    ];
    columns.extend(numbers.iter().map(|(name, heading, _)| Column::numeric(name, heading)));
    columns.push(Column::text("error", "error"));
    let cells_of = |row: &Row| {
        let mut cells: Vec<Cell> = texts(row, parameters).into_iter().map(Cell::text).collect();
        for (index, (name, _, of)) in numbers.iter().enumerate() {
            let is_there = of.is_none_or(|of| row.number(of) != Some(0.0));
            let cell = &mut cells[2 + parameters.len() + index];
            cell.number = row.number(name).filter(|_| is_there);
        }
        cells
    };
    Cells { columns, rows: rows.iter().map(cells_of).collect() }
}

/// Returns the cells of a point: workload, drive, parameters, latencies, write amplification, error.
fn texts(row: &Row, parameters: &[String]) -> Vec<String> {
    let half = |name: &str| row.number(&format!("{name}{HALF_WIDTH}")).filter(|half| *half > 0.0);
    let ms = |name: &str, of: &str| match (row.number(name), row.number(of)) {
        (Some(_), Some(0.0)) => "–".to_string(),
        (Some(ns), _) => {
            let half = half(name).map(|half| format!(" ± {}", crate::human::duration_ns(half as u64)));
            crate::human::duration_ns(ns as u64) + &half.unwrap_or_default()
        }
        (None, _) => String::new(),
    };
    let mut cells = vec![row.text("workload").unwrap_or_default().to_string()];
    cells.push(row.text("drive_head").unwrap_or_default().to_string());
    cells.extend(parameters.iter().map(|parameter| row.text(parameter).unwrap_or_default().to_string()));
    cells.push(ms("write_mean_ns", "host_writes"));
    cells.push(ms("read_mean_ns", "host_reads"));
    let half = half("write_amplification").map(|half| format!(" ± {}", crate::human::ratio(half)));
    let amplification = row.number("write_amplification").map_or_else(String::new, crate::human::ratio);
    cells.push(amplification + &half.unwrap_or_default());
    cells.push(row.text("error").unwrap_or_default().to_string());
    cells
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
        // The mean over zero reads is shown as a dash.
        let mut rows = rows.to_vec();
        rows[0].cells.push(("host_reads".into(), Kind::Long, Cell::Long(0)));
        rows[0].cells.push(("read_mean_ns".into(), Kind::Long, Cell::Long(0)));
        let page = html("a sweep", &rows, &["share".to_string()]);
        assert!(page.contains("<td>20 ns</td><td>–</td>") && !page.contains("<td>0 ns</td>"), "{page}");
    }

    #[test]
    fn several_seeds_have_error_bars_in_charts_and_half_widths_in_the_table() {
        let mut rows = [row("p", "1%", 1_000), row("p", "2%", 2_000)];
        for (row, half) in rows.iter_mut().zip([500.0, 250.0]) {
            row.cells.push((format!("write_mean_ns{HALF_WIDTH}"), Kind::Real, Cell::Real(half)));
        }
        let drawn = &charts(&rows, &["share".to_string()])[0];
        assert_eq!(drawn.series[0].half_widths, [500.0, 250.0]);
        // The axis shows both ends: 500 to 2,250 ns.
        assert!(drawn.y.range.is_some_and(|(low, high)| low < 500.0 && high > 2_250.0), "{:?}", drawn.y);
        let page = html("a sweep", &rows, &["share".to_string()]);
        assert!(page.contains("<td>1.0 µs ± 500 ns</td>") && page.contains("\"half_widths\":[500,250]"), "{page}");
        // One bar: a cap, the vertical line, another cap.
        let svg = drawn.svg(crate::chart::Style::Embedded);
        let bars = svg.split("stroke-width:1.2\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("bars");
        assert_eq!((bars.matches('V').count(), bars.matches('H').count()), (2, 4), "{bars}");
    }

    #[test]
    fn a_chart_says_how_many_lines_it_leaves_out() {
        let row_of = |line: usize| ["1%", "2%"].map(|share| row(&format!("p+{line:02}"), share, 1));
        let title = |lines: usize| {
            let rows: Vec<Row> = (0..lines).flat_map(row_of).collect();
            let chart = &charts(&rows, &["share".to_string()])[0];
            (chart.series.len(), chart.title.clone())
        };
        let (all, some) = (title(40), title(43));
        assert_eq!(all, (40, "write latency, mean by share".into()));
        assert_eq!(some, (40, "write latency, mean by share (the first 40 of 43 lines)".into()));
    }

    fn with(mut row: Row, name: &str, value: &str) -> Row {
        row.cells.retain(|cell| cell.0 != name);
        row.cells.push((name.into(), Kind::Text, Cell::Text(value.into())));
        row
    }

    #[test]
    fn a_line_is_named_by_what_tells_it_from_the_others_alone() {
        let rows = |sizes: &[&str]| -> Vec<Row> {
            let points = sizes.iter().flat_map(|size| ["1%", "2%"].map(|share| (*size, share)));
            let points = points.flat_map(|(size, share)| ["p+one", "p+two"].map(|drive| (size, share, drive)));
            points
                .map(|(size, share, drive)| {
                    let words = format!("rw=randwrite,bs={size},size=9GiB");
                    with(with(row(drive, share, 1), "bs", size), "workload", &words)
                })
                .collect()
        };
        let swept = ["share".to_string(), "bs".to_string()];
        let names = |rows: &[Row]| lines(rows, "share", &swept).into_keys().collect::<Vec<_>>();
        assert_eq!(names(&rows(&["4k", "8k"])), ["one, bs=4k", "one, bs=8k", "two, bs=4k", "two, bs=8k"]);
        assert_eq!(names(&rows(&["4k"])), ["one", "two"]);
        assert_eq!(names(&[row("p+one", "1%", 1), row("p+one", "2%", 1)]), ["p+one"], "nothing tells them apart");
        assert_eq!(in_common(&rows(&["4k", "8k"]), &swept), " · p · rw=randwrite,bs=…,size=9GiB");
        // A word that contains the value as a part only is kept.
        let long = with(with(row("p", "1%", 1), "bs", "1"), "workload", "depth=16,bs=1");
        assert_eq!(tags(&long, "share", &swept).last().map(String::as_str), Some("depth=16,bs=…"));
    }
}
