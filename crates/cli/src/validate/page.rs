//! `--report`: the two distributions, the classes, and the suspected cause of the differences, as one page.
//!
//! Invariants:
//! 1. The page references no other resource; its style is that of the program's other reports.

use std::fmt::Write as _;

use imbrex_calibrate::measured::Measured;
use imbrex_calibrate::replay::Simulated;
use imbrex_calibrate::validate::Validation;

use crate::args::ValidateArgs;
use crate::output::command_line;
use imbrex::chart::{Axis, Chart, Series, Shape, Unit, escape};
use imbrex::human::{self, ms};
use imbrex::measured::Judged;
use imbrex::report::figure::chart_html;
use imbrex::report::{charts_json, document, shell, verdict};

const SIZE: (f64, f64) = (580.0, 300.0);
/// Maximum number of points of a chart; its pixels show no more.
const POINTS: usize = 1200;

/// Returns the page.
pub(super) fn html(args: &ValidateArgs, measured: &Measured, judged: &Judged) -> String {
    let validation = &judged.validation;
    let charts = charts(measured, judged);
    let mut body = format!(
        "<header><p class=\"kind\">imbrex validate</p><h1>{} against {}</h1>{}<p class=\"facts\"><b>{}</b> \
         requests</p></header>",
        escape(&args.drive),
        escape(&args.measured.measured.display().to_string()),
        verdict(&format!(
            "The distributions of service times differ by {} ms (RMS), {:.2} % of the measured mean. The largest differences \
             point at {}: {}.",
            ms(validation.whole.rms_ns),
            validation.whole.rms_share * 100.0,
            validation.suspect.part,
            validation.suspect.because
        )),
        validation.whole.requests,
    );
    body += "<main>";
    body += &figures(&charts);
    body += &classes(validation);
    body += &made(measured);
    body += "</main>";
    let title = format!("{} – imbrex validate", args.drive);
    document(&title, &body, &charts_json(&charts.iter().collect::<Vec<_>>()))
}

/// Returns the charts of the page.
pub(super) fn charts(measured: &Measured, judged: &Judged) -> Vec<Chart> {
    vec![distributions(measured, &judged.simulated), by_distance(measured, &judged.simulated)]
}

/// Returns a section of the page with `charts`.
fn figures(charts: &[Chart]) -> String {
    let mut html =
        String::from("<section aria-labelledby=\"charts\"><h2 id=\"charts\">Charts</h2><div class=\"figures\">");
    for chart in charts {
        let _ = write!(html, "<figure class=\"chart\"><h3>{}</h3>{}</figure>", escape(&chart.title), chart_html(chart));
    }
    html + "</div></section>"
}

/// Returns a page with a title, a sentence, one chart, and a table of `rows` under `columns`.
pub(crate) fn facts_page(
    kind: &str,
    title: &str,
    sentence: &str,
    columns: &[&str],
    rows: &[Vec<String>],
    chart: Option<Chart>,
) -> String {
    let mut body =
        format!("<header><p class=\"kind\">{kind}</p><h1>{}</h1>{}</header><main>", escape(title), verdict(sentence));
    let charts: Vec<Chart> = chart.into_iter().collect();
    if !charts.is_empty() {
        body += &figures(&charts);
    }
    body += &table("found", "Found", columns, rows);
    let command = command_line();
    let _ = write!(
        body,
        "<section><h2>How it was made</h2><p><code>{}</code></p></section></main>",
        escape(&shell(&command))
    );
    document(&format!("{title} – {kind}"), &body, &charts_json(&charts.iter().collect::<Vec<_>>()))
}

fn table(id: &str, heading: &str, columns: &[&str], rows: &[Vec<String>]) -> String {
    let mut html = format!(
        "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{heading}</h2><div class=\"scroll\" tabindex=\"0\" role=\"group\" \
         aria-labelledby=\"{id}\"><table class=\"made numbers\"><thead><tr>"
    );
    for column in columns {
        let _ = write!(html, "<th scope=\"col\">{column}</th>");
    }
    html += "</tr></thead><tbody>";
    for row in rows {
        for (index, cell) in row.iter().enumerate() {
            let tag = if index == 0 { "<th scope=\"row\">" } else { "<td>" };
            let _ = write!(html, "{}{tag}{}", if index == 0 { "<tr>" } else { "" }, escape(cell));
            html += if index == 0 { "</th>" } else { "</td>" };
        }
        html += "</tr>";
    }
    html + "</tbody></table></div></section>"
}

fn classes(validation: &Validation) -> String {
    let columns = ["Class", "Requests", "Measured, mean ms", "Simulated, mean ms", "RMS ms", "Mean difference ms"];
    let rows: Vec<Vec<String>> = validation
        .classes
        .iter()
        .map(|class| {
            let comparison = &class.comparison;
            vec![
                class.class.clone(),
                human::count(comparison.requests),
                ms(comparison.mean_measured_ns),
                ms(comparison.mean_simulated_ns),
                ms(comparison.rms_ns),
                format!("{:+.3}", class.mean_difference_ns as f64 / 1e6),
            ]
        })
        .collect();
    table("classes", "Classes", &columns, &rows)
}

/// Returns the chart of the two cumulative distributions of service times.
pub(crate) fn distributions(measured: &Measured, simulated: &[Simulated]) -> Chart {
    let steps = |mut times: Vec<u64>| {
        times.sort_unstable();
        let count = times.len() as f64;
        times.into_iter().enumerate().map(|(index, ns)| (ns as f64, (index + 1) as f64 / count)).collect::<Vec<_>>()
    };
    let theirs = steps(measured.requests.iter().map(|request| request.taken.0).collect());
    let ours =
        steps(simulated.iter().filter(|simulated| simulated.served).map(|simulated| simulated.taken.0).collect());
    Chart::new(
        "distributions",
        "Requests that took at most so long",
        Axis::linear("service time", Unit::Nanoseconds),
        Axis::linear("share of requests", Unit::Share).ranged(0.0, 1.0),
    )
    .described("The cumulative distributions of measured and simulated service times; the figure is their distance.")
    .sized(SIZE.0, SIZE.1)
    .with(Series::new("measured", Shape::Steps, 0, theirs))
    .with(Series::new("simulated", Shape::Steps, 1, ours).dashed())
    .thin(POINTS)
}

/// Returns the chart of the mean difference over the seek distance.
fn by_distance(measured: &Measured, simulated: &[Simulated]) -> Chart {
    let mut groups = std::collections::BTreeMap::<u32, (f64, f64)>::new();
    for (request, simulated) in measured.requests.iter().zip(simulated) {
        if simulated.served && !simulated.hit {
            let group = groups.entry(32 - simulated.distance.leading_zeros()).or_default();
            group.0 += 1.0;
            group.1 += simulated.taken.0 as f64 - request.taken.0 as f64;
        }
    }
    let few = groups.iter().filter(|(_, (count, _))| *count >= 8.0);
    let points = few.map(|(bits, (count, sum))| ((1u64 << bits) as f64 / 2.0, sum / count)).collect();
    Chart::new(
        "by-distance",
        "Mean difference by seek distance",
        Axis::log10("cylinders", Unit::Count),
        Axis::linear("simulated less measured", Unit::Nanoseconds),
    )
    .described("Requests served by the medium, by the distance of the simulated arm: a wrong seek curve shows here.")
    .sized(SIZE.0, SIZE.1)
    .with(Series::new("mean difference", Shape::Marks, 2, points))
}

fn made(measured: &Measured) -> String {
    let command = command_line();
    let mut html = format!(
        "<section aria-labelledby=\"made\"><h2 id=\"made\">How it was made</h2><p><code>{}</code></p><p>Measured: {} \
         requests in {}.</p><ul>",
        escape(&shell(&command)),
        measured.requests.len(),
        escape(&measured.format)
    );
    for note in &measured.notes {
        let _ = write!(html, "<li>{}</li>", escape(note));
    }
    html + "</ul></section>"
}
