//! Drawings as a real browser lays them out: texts that overlap or leave their drawing, and lines that cannot be seen.

use crate::browser::{between, visit};

/// Opens the HTML page in the headless `browser`, in a window of `width` pixels. Returns the faults of its visible SVG
/// drawings, a line for each: two texts overlap, a text leaves the drawing, or a line has fewer than two points.
///
/// # Panics
///
/// Panics if the page has no visible drawing, or if the browser does not start.
pub fn faults(browser: &str, page: &str, width: u32) -> Vec<String> {
    assert!(page.contains("<svg"), "the page has a drawing");
    let script = format!("<script>{}</script></body>", include_str!("drawings.js"));
    let page = page.replacen("</body>", &script, 1);
    let document = visit(browser, &page, &[&format!("--window-size={width},1000")]).document;
    let found = between(&document, "<pre id=\"found\">", "</pre>").expect("the script ran");
    let decoded = found.replace("&nbsp;", " ").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    decoded.lines().map(String::from).collect()
}
