//! The section of a report about the slowest requests: a line for each, which opens to the parts of its latency.

use std::fmt::Write as _;

use crate::chart::escape;
use crate::explain;
use crate::explain::document::{ExplainDocument, ExplainedDrive};
use crate::human;

/// Returns the section, as HTML.
pub(super) fn section(document: &ExplainDocument) -> String {
    let mut html = String::from("<section aria-labelledby=\"slowest\"><h2 id=\"slowest\">The slowest requests</h2>");
    html += "<p>Each line opens to the parts of a latency, which sum to it. Parts with * do work that a conventional drive \
             does not do.</p>";
    for drive in &document.drives {
        html += &of_drive(drive);
    }
    html + "</section>"
}

fn of_drive(drive: &ExplainedDrive) -> String {
    let mut html = format!("<h3>{}</h3>", escape(&drive.drive));
    for request in &drive.requests {
        let latency = human::duration_ns(request.latency_ns);
        let work = human::duration_ns(request.unconventional_ns);
        let _ = write!(
            html,
            "<details class=\"slow\"><summary>request {}, {}: {latency}, of which * {work}</summary><pre>{}</pre></details>",
            human::count(request.number),
            request.operation,
            preformatted(&explain::request_text(drive, request))
        );
    }
    let _ = write!(
        html,
        "<details class=\"slow\"><summary>causes of all latencies together</summary><pre>{}</pre></details>",
        preformatted(&explain::summary_text(drive))
    );
    html
}

/// Returns `text` as HTML that keeps its lines.
fn preformatted(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}
