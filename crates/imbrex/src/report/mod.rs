//! `report.html`: one page with the comparison of the drives, the charts, and the command that made the page. Browsers
//! show it without a network.
//!
//! Invariants:
//! 1. The page refers to no other resource, and its content security policy forbids fetching any. Images may come from the
//!    page itself, since the script draws charts on them to save them.
//! 2. The page is readable without scripts. Scripts add values under the pointer, buttons that hide drives, and files of charts.
//! 3. The page contains no wall-clock time: two runs give the same bytes.
//! 4. The page contains its data as JSON: `charts` holds the points of every series, `summary` the results.

#[cfg(test)]
mod browser;
mod comparison;
mod data;
pub mod figure;
mod figures;
pub mod fragment;
mod glossary;
pub mod intervals;
mod sentence;
mod slowest;
mod sweep;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use imbrex_sim::{DriveSeries, Summary};

use self::figure::Figure;
pub(crate) use self::sweep::{LOGARITHM_FROM, Point, with_error_bars, y_axis};
use crate::chart::{Chart, escape, label, palette};
use crate::explain::document::ExplainDocument;
use crate::files::{FilesError, Folder};
use crate::seeds;

impl Folder {
    /// Writes `report.html` into this folder, completely or not at all. `series` has one element per drive, in the
    /// order of the drives in `summary`, and `explained` states the causes of latencies. Returns the path.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    ///
    /// # Panics
    ///
    /// If the number of series is not the number of drives.
    pub fn write_report(
        &self,
        summary: &Summary,
        series: &[DriveSeries],
        explained: Option<&ExplainDocument>,
    ) -> Result<std::path::PathBuf, FilesError> {
        let page = html(summary, series, explained);
        self.write("report.html", |out| out.write_all(page.as_bytes()))
    }
}

/// Returns the report of a simulation as an HTML page that needs no other file. `series` has one element per drive, in
/// the order of the drives in `summary`. `explained` states the causes of latencies, if the simulation looked for them.
///
/// # Panics
///
/// If the number of series is not the number of drives.
pub fn html(summary: &Summary, series: &[DriveSeries], explained: Option<&ExplainDocument>) -> String {
    let figures = figures(summary, series);
    let mut body = masthead(summary, sentence::sentence(summary, explained).as_deref());
    // The chart that shows what the sentence says stands before all tables.
    let (first, others): (Vec<&Figure>, Vec<&Figure>) = figures.iter().partition(|figure| figure.id == "latency");
    body += "<main>";
    body += &result(&first);
    body += "<section aria-labelledby=\"comparison\"><h2 id=\"comparison\">Comparison</h2>";
    body += &comparison::table(summary);
    body += "</section>";
    body += &charts(&others);
    body += &explained.map_or(String::new(), slowest::section);
    body += &made(summary);
    body += &glossary::section();
    body += "</main>";
    let title = format!("{} – imbrex simulate", summary.workload.name);
    document(&title, &body, &json(&data::without_wall_clock(summary), &figures))
}

/// Returns the figures of the report of a simulation, in their order. The arguments are those of [`html`].
///
/// # Panics
///
/// If the number of series is not the number of drives.
pub fn figures(summary: &Summary, series: &[DriveSeries]) -> Vec<Figure> {
    assert_eq!(summary.drives.len(), series.len(), "every drive has its curves");
    figures::all(summary, series)
}

/// Returns a complete HTML page with the style and the script of this program's reports. `title` is plain text, `body`
/// is the HTML of the page's body, and `data` is the JSON text that the script reads.
pub fn document(title: &str, body: &str, data: &str) -> String {
    let mut page = head(title);
    page += body;
    let _ = write!(page, "<script type=\"application/json\" id=\"data\">{data}</script>");
    let _ = writeln!(page, "<script>{}</script></body></html>", include_str!("page.js"));
    page
}

/// Returns the JSON text that the script of a report page reads, for a page with `charts` and no results of a
/// simulation. [`document`] takes the text.
pub fn charts_json(charts: &[&Chart]) -> String {
    data::charts_json(charts)
}

/// Returns the JSON text that the script of a report page reads, for a page with the results `summary` and the series
/// of the charts in `figures`. Bar charts have no series and are left out. [`document`] takes the text.
pub fn json(summary: &serde_json::Value, figures: &[Figure]) -> String {
    data::json(summary, figures)
}

/// Returns the section above all tables, as HTML, with the figures that show what the sentence on top says; nothing without
/// figures.
pub fn result(figures: &[&Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    format!(
        "<section aria-labelledby=\"result\"><h2 id=\"result\" class=\"unseen\">Result</h2><div class=\"figures first\">{}</div>\
         </section>",
        html_of(figures)
    )
}

/// Returns the section `Charts` of a page, as HTML, with `figures` in their order.
pub fn charts(figures: &[&Figure]) -> String {
    format!(
        "<section aria-labelledby=\"charts\"><h2 id=\"charts\">Charts</h2><div class=\"figures\">{}</div></section>",
        html_of(figures)
    )
}

fn html_of(figures: &[&Figure]) -> String {
    figures.iter().map(|figure| figure.html()).collect()
}

/// Returns the sentence on top of a page, as HTML. `text` is plain text.
pub fn verdict(text: &str) -> String {
    format!("<p class=\"verdict\">{}</p>", escape(text))
}

fn head(title: &str) -> String {
    let colours = |names: &[&str]| -> String {
        names.iter().enumerate().map(|(index, colour)| format!("--series-{index}:{colour};")).collect()
    };
    let style = include_str!("page.css")
        .replace("/*light series*/", &colours(&palette::LIGHT))
        .replace("/*dark series*/", &colours(&palette::DARK));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"referrer\" content=\"no-referrer\">\
         <title>{}</title><style>{style}</style>\
         <noscript><style>svg .hidden,.cell.hidden{{display:inline}}</style></noscript></head><body>",
        escape(title)
    )
}

fn masthead(summary: &Summary, sentence: Option<&str>) -> String {
    let workload = &summary.workload;
    let count = |value: u64| label::count(value as f64);
    let mut facts = vec![
        format!("<b>{}</b> requests", count(workload.requests)),
        format!("<b>{}</b> reads, {}", count(workload.reads), label::bytes(workload.read_bytes as f64)),
        format!("<b>{}</b> writes, {}", count(workload.writes), label::bytes(workload.write_bytes as f64)),
    ];
    if workload.flushes > 0 {
        facts.push(format!("<b>{}</b> flushes", count(workload.flushes)));
    }
    if workload.trims > 0 {
        facts.push(format!("<b>{}</b> trims", count(workload.trims)));
    }
    if workload.span_ns > 0 {
        facts.push(format!("arriving over <b>{}</b>", label::duration(workload.span_ns as f64)));
    }
    for (reason, rejected) in &workload.rejected {
        facts.push(format!("<b>{}</b> not taken: {}", count(*rejected), escape(reason)));
    }
    let drives = summary.drives.len();
    let warnings: String = summary
        .warnings
        .iter()
        .map(|warning| format!("<p class=\"facts\"><b>Warning:</b> {}</p>", escape(warning)))
        .collect();
    format!(
        "<header><p class=\"kind\">imbrex simulate</p><h1>{}</h1>{}<p class=\"facts\">{}</p><p class=\"facts\">\
         {drives} drive{} in simulated time · {} · version {}</p>{warnings}</header>",
        escape(&workload.name),
        sentence.map_or(String::new(), verdict),
        facts.join(" · "),
        if drives == 1 { "" } else { "s side by side" },
        seed_words(summary),
        escape(&summary.imbrex),
    )
}

/// Returns the seed in words; with several, their number, the first and the last.
fn seed_words(summary: &Summary) -> String {
    match seeds::in_words(&summary.seeds) {
        Some(words) => format!("{words}; curves and charts over time are of seed {}", summary.seeds[0]),
        None => format!("seed {}", summary.seed),
    }
}

/// Returns the section on how the page was made: the command, the version, the seed, the input's hash and the drives.
fn made(summary: &Summary) -> String {
    let workload = &summary.workload;
    let facts = [
        ("Command", format!("<code>{}</code>", escape(&shell(&summary.command)))),
        ("Program", format!("imbrex {}, results {}", escape(&summary.imbrex), escape(&summary.schema))),
        ("Seed", seed_words(summary).trim_start_matches("seed ").to_string()),
        ("Workload", format!("{} ({})", escape(&workload.name), escape(&workload.format))),
        ("SHA-256 of the input", format!("<code>{}</code>", escape(&workload.sha256))),
        ("Sectors touched", format!("up to {} (of 512 bytes)", label::count(workload.lba_end as f64))),
    ];
    let span = workload.address_span.as_ref();
    let span = span.map(|span| ("Addresses", escape(&span.sentence(&label::bytes(span.bytes as f64)))));
    let mut html =
        String::from("<section aria-labelledby=\"made\"><h2 id=\"made\">How it was made</h2><dl class=\"made\">");
    for (name, value) in facts.into_iter().chain(span) {
        let _ = write!(html, "<dt>{name}</dt><dd>{value}</dd>");
    }
    html += "</dl><p>The same command with the same input gives the same page, byte for byte.</p>";
    html += "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Drives as simulated\"><table class=\"made\">\
             <thead><tr>";
    for name in ["Drive", "Profile", "Layer", "Arrival", "Queue", "Scheduler", "Write cache", "Parameters"] {
        let _ = write!(html, "<th scope=\"col\">{name}</th>");
    }
    html += "</tr></thead><tbody>";
    for drive in &summary.drives {
        let queue = if drive.queue_depth == 0 { "unbounded".to_string() } else { drive.queue_depth.to_string() };
        let cache =
            if drive.write_cache_bytes == 0 { "off".into() } else { label::bytes(drive.write_cache_bytes as f64) };
        let parameters: Vec<String> = drive.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&drive.drive));
        for text in
            [&drive.profile, &drive.layer, &drive.arrival, &queue, &drive.schedule, &cache, &parameters.join(" ")]
        {
            let _ = write!(html, "<td>{}</td>", escape(text));
        }
        html += "</tr>";
    }
    html + "</tbody></table></div></section>"
}

/// Joins the arguments `words` to a command line for a POSIX shell. Arguments are put in single quotes where necessary.
pub fn shell(words: &[String]) -> String {
    let is_plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c));
    let quoted = words
        .iter()
        .map(|word| if is_plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) });
    quoted.collect::<Vec<_>>().join(" ")
}
