//! Goal: each figure in the documentation can be read. Method: headless Chromium lays out all of them; a script finds texts
//! that overlap or leave the drawing, and lines with fewer than two visible points. A drawing with these faults proves that
//! the script finds them. Without Chromium, the tests print that and pass.

use std::path::PathBuf;

use imbrex_testkit::browser::chromium;
use imbrex_testkit::drawings::faults;

fn page(drawings: &str) -> String {
    format!("<!DOCTYPE html><html><head><meta charset=\"utf-8\"></head><body>{drawings}</body></html>")
}

#[test]
fn every_figure_can_be_read() {
    let Some(browser) = chromium() else { return };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures");
    let mut drawings = String::new();
    let mut count = 0;
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "svg")) {
        drawings += &std::fs::read_to_string(file).unwrap();
        count += 1;
    }
    assert!(count > 60, "{count} figures");
    let found = faults(browser, &page(&drawings), 1400);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_script_finds_each_fault() {
    let Some(browser) = chromium() else { return };
    let text = |x: u32, words: &str| format!("<text x=\"{x}\" y=\"50\" font-size=\"12\">{words}</text>");
    let drawing = format!(
        "<svg id=\"bad\" viewBox=\"0 0 200 100\" width=\"200\" height=\"100\">{}{}{}\
         <path class=\"series\" data-name=\"one\" d=\"M10 10\"/><path class=\"series\" data-name=\"two\" d=\"M10 10H10V10\"/>\
         <path class=\"series\" data-name=\"good\" d=\"M10 10H20V20\"/></svg>",
        text(10, "first"),
        text(15, "second"),
        text(190, "outside")
    );
    let found = faults(browser, &page(&drawing), 1400);
    assert_eq!(
        found,
        [
            "bad: texts overlap: first | second",
            "bad: the text leaves the frame: outside",
            "bad: fewer than two points: one",
            "bad: fewer than two points: two",
        ]
    );
}
