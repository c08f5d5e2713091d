//! Goal: the page works in a real browser without a network. Method: headless Chromium opens the file. The test
//! compares the document after the scripts ran, the console and the network log with the expected values. Where
//! Chromium is not installed, the tests print that and pass. Two faulty pages prove that the console and the network
//! log would show errors.

use imbrex_testkit::browser::{assert_charts_hold_the_data, between, chromium, visit};

use super::html;
use crate::sample;

#[test]
fn the_page_renders_with_its_data_in_light_and_dark_and_fetches_nothing() {
    let Some(browser) = chromium() else { return };
    let (summary, series) = sample::run(6);
    let page = html(&summary, &series, None);
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
            assert_eq!(results.pointer(at).map(serde_json::Value::to_string).as_deref(), Some(value), "{at}");
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
    // The page's own policy blocks injected fetches.
    let tampered = html(&summary, &series, None).replace("<main>", "<main><img src=\"http://127.0.0.1:9/canary.png\">");
    let found = visit(browser, &tampered, &[]);
    assert!(found.fetched.is_empty(), "{:?}", found.fetched);
    assert!(found.console.iter().any(|line| line.contains("Content Security Policy")), "{:?}", found.console);
}

#[test]
fn a_hidden_drive_is_hidden_in_every_chart() {
    let Some(browser) = chromium() else { return };
    let (summary, series) = sample::run(3);
    // A script of the test clicks the button of the second drive. The policy allows the script because it is inside the page.
    let click = "<script>document.querySelector('.legend button[data-series=\"1\"]').click()</script></body>";
    let page = html(&summary, &series, None).replace("</body>", click);
    let document = visit(browser, &page, &[]).document;
    let classes = |index: usize| -> Vec<bool> {
        let marker = format!("data-series=\"{index}\" data-name=");
        let tags = document.split("<path ").filter(|tag| tag.contains(&marker));
        tags.map(|tag| tag.starts_with("class=\"series hidden\"")).collect()
    };
    assert!(classes(1).len() >= 7 && classes(1).iter().all(|hidden| *hidden));
    assert!(classes(0).iter().all(|hidden| !hidden));
}
