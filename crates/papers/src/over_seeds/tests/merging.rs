//! Goal: the merged report has one verdict, one text and one cell for all replications, and says where it has not.
//! Method: reports written here.

use super::super::merge::merged;
use crate::Results;
use crate::report::{ClaimKind, Report, Table, Verdict};

fn report(ours: &str, holds: bool) -> Report {
    let mut report = Report { method: "as written".into(), remarks: vec!["a remark".into()], ..Report::default() };
    report.claim(ClaimKind::Shape, "latency", "25 ms", ours, Some(holds));
    report
}

fn with_table(columns: [&str; 2], rows: &[[&str; 2]]) -> Report {
    let rows = rows.iter().map(|row| row.map(String::from).to_vec()).collect();
    let table = Table { heading: "measured".into(), columns: columns.map(String::from).to_vec(), rows };
    Report { tables: vec![table], ..Report::default() }
}

fn merge(reports: &[Report]) -> Report {
    merged("paper/figure", reports).expect("the reports have equal claims")
}

#[test]
fn verdicts_that_agree_stay_and_numbers_become_means() {
    let merged = merge(&[report("24.0 ms", true), report("25.0 ms", true), report("26.0 ms", true)]);
    let claim = &merged.claims[0];
    assert_eq!((claim.verdict, claim.ours.as_str()), (Verdict::Yes, "25.0 ± 2.5 ms"));
    assert_eq!(claim.verdicts, [Verdict::Yes; 3]);
    assert_eq!(claim.ours_by_seed, ["24.0 ms", "25.0 ms", "26.0 ms"]);
    assert_eq!(merged.seeds, Some(3));
    assert!(merged.tables.is_empty(), "{:?}", merged.tables);
    assert!(merged.remarks[0].contains("3 seeds"), "{:?}", merged.remarks);
    assert_eq!(merged.remarks[1..], ["a remark"]);
}

#[test]
fn verdicts_that_differ_depend_on_the_seed() {
    let merged = merge(&[report("24 ms", true), report("31 ms", false)]);
    assert_eq!(merged.claims[0].verdict, Verdict::DependsOnSeed);
    assert_eq!(merged.claims[0].verdicts, [Verdict::Yes, Verdict::No]);
    assert!(merged.remarks[1].contains("\"latency\" (shape): yes, no"), "{:?}", merged.remarks);
}

#[test]
fn a_claim_that_does_not_count_keeps_its_verdict_and_shows_the_difference() {
    let mut reports = [report("24 ms", true), report("31 ms", false)];
    reports.iter_mut().for_each(|report| report.claims[0].kind = ClaimKind::Fitted);
    let merged = merge(&reports);
    let claim = &merged.claims[0];
    assert_eq!(claim.verdict, Verdict::Yes);
    assert_eq!((claim.depends_on_seed(), claim.verdict_text().as_str()), (true, "yes; depends on the seed"));
    assert!(merged.remarks[1].contains("\"latency\" (fitted): yes, no"), "{:?}", merged.remarks);
}

#[test]
fn texts_that_differ_in_more_than_numbers_are_listed() {
    let merged = merge(&[report("none", true), report("2 of 15: w08", true)]);
    assert_eq!(merged.claims[0].ours, "none");
    let table = &merged.tables[0];
    assert_eq!(table.heading, "Over 2 seeds");
    assert_eq!(table.rows, [["latency", "first", "none"], ["latency", "first + 1", "2 of 15: w08"]]);
}

#[test]
fn other_claims_are_a_failure() {
    let other_kind = |mut report: Report| {
        report.claims[0].kind = ClaimKind::Derived;
        report
    };
    let mut longer = report("24 ms", true);
    longer.claim(ClaimKind::Shape, "one more", "", "", None);
    for other in [other_kind(report("24 ms", true)), longer] {
        let failure = merged("paper/figure", &[report("24 ms", true), other]).expect_err("the claims differ");
        assert!(failure.to_string().contains("paper/figure"), "{failure}");
    }
}

#[test]
fn cells_of_equal_tables_are_merged() {
    let columns = ["drive", "ms"];
    let merged = merge(&[with_table(columns, &[["2 TB", "10"]]), with_table(columns, &[["2 TB", "12"]])]);
    assert_eq!(merged.tables[0].rows, [["2 TB", "11 ± 13"]]);
    assert_eq!(merged.remarks.len(), 1, "{:?}", merged.remarks);
    let merged = merge(&[with_table(columns, &[["2 TB", "–"]]), with_table(columns, &[["2 TB", "12"]])]);
    assert_eq!(merged.tables[0].rows, [["2 TB", "–"]]);
    assert!(merged.remarks[1].contains("1 cell whose"), "{:?}", merged.remarks);
}

#[test]
fn a_table_of_another_shape_is_that_of_the_first_seed() {
    let first = with_table(["drive", "ms"], &[["a", "10"]]);
    for other in [with_table(["drive", "s"], &[["a", "10"]]), with_table(["drive", "ms"], &[["b", "10"]])] {
        let merged = merge(&[first.clone(), other]);
        assert_eq!(merged.tables, first.tables);
        assert!(merged.remarks[1].contains("\"measured\" is of the first seed"), "{:?}", merged.remarks);
    }
    let merged = merge(&[first.clone(), Report::default()]);
    assert_eq!(merged.tables, first.tables);
    assert!(merged.remarks[1].starts_with("The number of tables differs"), "{:?}", merged.remarks);
}

/// Goal: kept results of runs with one seed do not change. Method: the JSON form with and without seeds.
#[test]
fn json_has_the_new_fields_only_with_several_seeds() {
    let experiment = crate::all()[0];
    let json = |report: &Report| serde_json::to_value(Results::of(experiment, report)).expect("plain values");
    let one = json(&report("24 ms", true));
    assert_eq!((one.get("seeds"), one["claims"][0].get("verdicts")), (None, None));
    let many = json(&merge(&[report("24 ms", true), report("31 ms", false)]));
    assert_eq!(many["seeds"], 2);
    assert_eq!(many["claims"][0]["verdict"], "depends-on-seed");
    assert_eq!(many["claims"][0]["verdicts"], serde_json::json!(["yes", "no"]));
    assert_eq!(many["claims"][0]["ours_by_seed"], serde_json::json!(["24 ms", "31 ms"]));
}
