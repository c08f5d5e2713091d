//! The page as text: its required contents, its forbidden contents, and its reproducibility.

use imbrex_sim::results::{LatencyRatio, LatencyRatios};
use imbrex_sim::{DriveSeries, Summary};

use super::*;
use crate::sample;

#[test]
fn the_page_names_nothing_outside_itself() {
    let (summary, series) = sample::run(4);
    let page = html(&summary, &series, None);
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for word in ["http://", "https://", "src=", "url(http", "@import", "<link", "<img", "<iframe", "fetch("] {
        assert!(!without_names.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn no_text_of_the_input_becomes_markup() {
    let (mut summary, series) = sample::run(2);
    let hostile = "</script><script>alert(1)</script>&\"'";
    summary.workload.name = hostile.into();
    summary.drives[1].drive = hostile.into();
    summary.command.push(hostile.into());
    let page = html(&summary, &series, None);
    assert!(!page.contains("<script>alert"));
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn the_wall_clock_leaves_no_trace() {
    let (summary, series) = sample::run(3);
    let mut later = summary.clone();
    for drive in &mut later.drives {
        drive.wall_seconds = 77.25;
        drive.requests_per_second = 1.5;
    }
    assert!(html(&summary, &series, None) == html(&later, &series, None), "two runs give the same page");
}

#[test]
fn ten_drives_stay_under_a_megabyte() {
    let (summary, series) = sample::run(10);
    let page = html(&summary, &series, None);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn a_run_of_nothing_still_makes_a_page() {
    let (mut summary, series) = sample::run(1);
    summary.drives[0].latency_ratio = None;
    summary.drives[0].baseline = false;
    summary.drives[0].host = Default::default();
    summary.drives[0].medium_write_blocks.clear();
    let empty = DriveSeries {
        reads: Default::default(),
        writes: Default::default(),
        all: Default::default(),
        windows: vec![Default::default()],
        window_ns: 1,
        own_work: Vec::new(),
        own_work_window_ns: 1,
        head: Vec::new(),
        issues: Vec::new(),
    };
    let page = html(&summary, &[empty], None);
    assert!(page.contains("Comparison") && !page.contains("id=\"latency\"") && !page.contains("NaN"));
    assert!(html(&summary, &series, None).contains("id=\"latency\""));
}

#[test]
fn a_cell_shows_the_number_of_the_summary() {
    let (summary, series) = sample::run(2);
    let page = html(&summary, &series, None);
    let p99 = summary.drives[1].latency_ns.write.p99;
    assert!(page.contains(&format!("data-at=\"/drives/1/latency_ns/write/p99\" data-value=\"{p99}\"")));
    assert!(page.contains("✓ whole"), "integrity is told");
}

#[test]
fn a_command_is_quoted_as_one_would_type_it() {
    let words = ["imbrex", "simulate", "rw=randwrite,bs=4k; idle=2h", "it's"].map(String::from);
    assert_eq!(shell(&words), r"imbrex simulate 'rw=randwrite,bs=4k; idle=2h' 'it'\''s'");
}

#[test]
fn ratios_of_many_powers_are_drawn_on_a_logarithm() {
    let (mut summary, series): (Summary, Vec<DriveSeries>) = sample::run(2);
    let all = Some(LatencyRatio { mean: 400.0, p99: 400.0 });
    summary.drives[1].latency_ratio = Some(LatencyRatios { all, ..LatencyRatios::default() });
    let page = html(&summary, &series, None);
    let scatter = page.split("id=\"trade-scatter\"").nth(1).expect("it is drawn");
    assert!(scatter.contains("data-y=\"log10 "));
}
