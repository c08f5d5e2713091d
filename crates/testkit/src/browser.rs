//! A page as a real browser shows it, without a network. Headless Chromium opens the file, and the result is the
//! document after the scripts have run, the console, and the log of the network. Where Chromium is not installed, a
//! message says so.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Result of opening a page in the headless browser.
pub struct Visit {
    /// HTML of the document after its scripts have run.
    pub document: String,
    /// Lines of the browser's log with messages that the page wrote to the console, in order; empty if there were none.
    pub console: Vec<String>,
    /// URLs that the browser requested from a network, sorted and each once. URLs of files, `data:` and `chrome:`, and
    /// those that the browser requests for itself, are left out.
    pub fetched: Vec<String>,
}

/// Command-line options; most of them keep the browser from using the network for itself.
const QUIET: [&str; 13] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-extensions",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
    "--hide-scrollbars",
    "--dump-dom",
];

/// Returns the name of an installed Chromium or Chrome. If there is none, returns `None` and prints that the test is
/// skipped.
pub fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    if found.is_none() {
        eprintln!("skipped: chromium is not installed (apt-get install chromium)");
    }
    found
}

/// Opens the HTML text `page` as a file in the headless `browser`, with the additional command-line options `extra`,
/// and waits until it ends.
///
/// # Panics
///
/// Panics if the browser does not start or writes no network log.
pub fn visit(browser: &str, page: &str, extra: &[&str]) -> Visit {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("report.html");
    fs::write(&file, page).expect("written");
    let log = folder.path().join("net.json");
    let output = Command::new(browser)
        .args(QUIET)
        .args(extra)
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    Visit {
        document: String::from_utf8_lossy(&output.stdout).into_owned(),
        console: errors.lines().filter(|line| line.contains("CONSOLE")).map(String::from).collect(),
        fetched: fetched(&log),
    }
}

/// Returns the addresses in the log of the network, without those that the browser requests for itself.
fn fetched(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).expect("the browser wrote its log");
    // The log of a browser that ended early lacks its closing brackets.
    let value: Value = serde_json::from_str(&text)
        .or_else(|_| serde_json::from_str(&format!("{}]}}", text.trim_end().trim_end_matches(','))))
        .expect("the log is JSON");
    let mut addresses: Vec<String> = value["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|event| event["params"]["url"].as_str())
        .filter(|url| !url.starts_with("file:") && !url.starts_with("chrome:") && !url.starts_with("data:"))
        .filter(|url| !HOUSEKEEPING.iter().any(|host| url.contains(host)))
        .map(String::from)
        .collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

/// Hosts that some versions of the browser contact when they start, for every page.
const HOUSEKEEPING: [&str; 3] = ["google.com", "googleapis.com", "gvt1.com"];

/// Returns the part of `text` after the first `begin` and before the next `end` after it, or `None` if either is
/// missing.
pub fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let from = text.find(begin)? + begin.len();
    Some(&text[from..from + text[from..].find(end)?])
}

fn drawn_points(path: &str, shape: &str) -> usize {
    match shape {
        "line" => path.matches(['M', 'L']).count(),
        "steps" => path.matches(['M', 'H']).count(),
        _ => path.matches('M').count(),
    }
}

/// Checks the HTML `document` of a report: every series of every chart has as many points in the drawing as in the
/// data, no chart is empty, and there are at least `charts_min` charts.
///
/// # Panics
///
/// Panics if a check fails.
pub fn assert_charts_hold_the_data(document: &str, charts_min: usize) {
    let json = between(document, "id=\"data\">", "</script>").expect("the data");
    let data: Value = serde_json::from_str(json).expect("it is JSON");
    let charts = data["charts"].as_object().expect("charts");
    assert!(charts.len() >= charts_min, "{} charts", charts.len());
    for (id, series) in charts {
        let drawing = between(document, &format!(" id=\"{id}\" "), "</svg>").expect("the chart is drawn");
        let mut sum = 0;
        for (index, series) in series.as_array().expect("series").iter().enumerate() {
            let path = between(drawing, &format!("data-series=\"{index}\""), ">").expect("the series is drawn");
            let path = between(path, " d=\"", "\"").expect("a path");
            let points = series["points"].as_array().expect("points").len() / 2;
            let shape = series["shape"].as_str().expect("a shape");
            assert_eq!(drawn_points(path, shape), points, "{id}, series {index}");
            sum += points;
        }
        assert!(sum > 0, "{id} is empty");
        assert!(drawing.contains(&format!("data-live=\"{sum}\"")), "the script knows the points of {id}");
    }
}
