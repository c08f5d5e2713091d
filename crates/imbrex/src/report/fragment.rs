//! Results as a fragment of HTML for pages of other programs, such as notebooks: a table that the caller has drawn, its
//! remarks, and a chart of the latencies.
//!
//! Invariants:
//! 1. The fragment contains its own styles: it needs no style sheet or script, and changes no style of the page.

use std::fmt::Write as _;

use imbrex_sim::{DriveSeries, Summary};

use super::figure::Drawing;
use super::figures;
use crate::chart::{Style, escape};
use crate::table::remarks;

/// Returns the results of a simulation as a fragment of HTML, to be embedded in a page of another program: `table`, which is
/// HTML, the remarks, and a chart of the latencies. `series` has one element per drive, in the order of the drives in
/// `summary`.
///
/// # Panics
///
/// If there are fewer series than drives.
pub fn html(summary: &Summary, series: &[DriveSeries], table: &str) -> String {
    let workload = &summary.workload;
    let mut html = format!(
        "<div class=\"imbrex\"><p><b>{}</b>: {} requests, {} reads, {} writes</p>",
        escape(&workload.name),
        crate::human::count(workload.requests),
        crate::human::count(workload.reads),
        crate::human::count(workload.writes)
    );
    html += table;
    for remark in remarks(&summary.drives) {
        let _ = write!(html, "<p>{}</p>", escape(&remark));
    }
    let latency = figures::all(summary, series).into_iter().find(|figure| figure.id == "latency");
    if let Some((_, Drawing::Chart(chart))) = latency.as_ref().and_then(|figure| figure.panes.first()) {
        html += &chart.svg(Style::Standalone);
    }
    html + "</div>"
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_has_the_table_and_one_drawing_and_asks_for_nothing() {
        let (summary, series) = crate::sample::run(2);
        let html = super::html(&summary, &series, "<table>mine</table>");
        assert!(html.contains(" writes</p><table>mine</table>"), "{html}");
        assert!(html.contains("<svg") && html.contains("Latency of all requests"), "{html}");
        assert!(!html.contains("<script") && !html.contains("var(--") && !html.contains("class=\"scroll"), "{html}");
    }
}
