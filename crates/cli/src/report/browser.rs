//! Goal: the page works in a real browser without a network. Method: headless Chromium opens the file; the document as it
//! stands after the scripts, the console and the log of the network are compared with what was given. Where Chromium is
//! not installed the tests say so and pass. Two pages made to offend show that the console and the log would tell.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::html;
use crate::sample;

/// What the browser made of a page.
pub struct Visit {
    /// The document as it stands after the scripts.
    pub document: String,
    /// What was written to the console.
    pub console: Vec<String>,
    /// Addresses asked for, other than the file's own.
    pub fetched: Vec<String>,
}

/// Switches that keep the browser from talking for itself.
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

/// The browser, if it is installed; says aloud that the test is skipped if not.
pub fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    if found.is_none() {
        eprintln!("skipped: chromium is not installed (apt-get install chromium)");
    }
    found
}

/// Opens `page` in `browser`.
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

/// Addresses in the log of the network, but for those of the browser's own housekeeping.
fn fetched(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).expect("the browser wrote its log");
    // A log cut short by the end of the browser lacks its closing brackets.
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

/// Hosts that some versions of the browser call on starting, whatever the page.
const HOUSEKEEPING: [&str; 3] = ["google.com", "googleapis.com", "gvt1.com"];

/// The part of `text` after `begin` and before `end`.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
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

/// Every series of every chart has as many points in the drawing as in the data.
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

#[test]
fn the_page_renders_with_its_data_in_light_and_dark_and_fetches_nothing() {
    let Some(browser) = chromium() else { return };
    let (summary, series) = sample::run(6);
    let page = html(&summary, &series);
    for scheme in ["--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"] {
        let visit = visit(browser, &page, &[scheme]);
        assert_eq!(visit.console, Vec::<String>::new(), "the console is silent");
        assert_eq!(visit.fetched, Vec::<String>::new(), "nothing is fetched");
        assert_charts_hold_the_data(&visit.document, 7);
        let results = serde_json::to_value(&summary).expect("plain values");
        let cells: Vec<&str> = visit.document.split("data-at=\"").skip(1).collect();
        assert!(cells.len() > 100, "{} cells", cells.len());
        for cell in cells {
            let at = cell.split('"').next().expect("a place");
            let value = between(cell, "data-value=\"", "\"").expect("a value");
            assert_eq!(results.pointer(at).map(Value::to_string).as_deref(), Some(value), "{at}");
        }
    }
}

#[test]
fn the_console_and_the_log_would_tell() {
    let Some(browser) = chromium() else { return };
    let offence = "<html><img src=\"http://127.0.0.1:9/canary.png\"><script>console.error('canary')</script></html>";
    let found = visit(browser, offence, &[]);
    assert!(found.console.iter().any(|line| line.contains("canary")), "{:?}", found.console);
    assert!(found.fetched.iter().any(|url| url.contains("canary.png")), "{:?}", found.fetched);
    let (summary, series) = sample::run(1);
    // The page's own policy stops what a page could be made to fetch.
    let tampered = html(&summary, &series).replace("<main>", "<main><img src=\"http://127.0.0.1:9/canary.png\">");
    let found = visit(browser, &tampered, &[]);
    assert!(found.fetched.is_empty(), "{:?}", found.fetched);
    assert!(found.console.iter().any(|line| line.contains("Content Security Policy")), "{:?}", found.console);
}

#[test]
fn a_hidden_drive_is_hidden_in_every_chart() {
    let Some(browser) = chromium() else { return };
    let (summary, series) = sample::run(3);
    // A script of the test clicks the second drive away; the policy allows it because it stands in the page.
    let click = "<script>document.querySelector('.legend button[data-series=\"1\"]').click()</script></body>";
    let page = html(&summary, &series).replace("</body>", click);
    let document = visit(browser, &page, &[]).document;
    let classes = |index: usize| -> Vec<bool> {
        let marker = format!("data-series=\"{index}\" data-name=");
        let tags = document.split("<path ").filter(|tag| tag.contains(&marker));
        tags.map(|tag| tag.starts_with("class=\"series hidden\"")).collect()
    };
    assert!(classes(1).len() >= 7 && classes(1).iter().all(|hidden| *hidden));
    assert!(classes(0).iter().all(|hidden| !hidden));
}
