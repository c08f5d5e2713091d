//! Goal: no verdict changes unnoticed, and every page agrees with its results. Method: compare the results kept in the
//! documentation with the verdicts pinned here, including those that do not hold, and render the pages from the
//! results again. If a run gives other verdicts, `docs/reproduction/*.json` changes, and this test names the claims.
//!
//! `IMBREX_PIN_VERDICTS=1 cargo test -p imbrex-papers --test all verdicts::` rewrites the pinned file from the results.

use std::path::{Path, PathBuf};

use imbrex_papers::{Results, kept, page};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn results() -> Vec<Results> {
    kept(&docs()).expect("the results can be read")
}

/// Returns one line for each claim: experiment, kind, verdict, text.
fn verdicts(results: &[Results]) -> String {
    let line = |results: &Results| -> Vec<String> {
        let claims = results.claims.iter();
        claims
            .map(|claim| {
                format!("{} | {} | {} | {}\n", results.experiment, claim.kind.name(), claim.verdict.name(), claim.claim)
            })
            .collect()
    };
    results.iter().flat_map(line).collect()
}

#[test]
fn verdicts_of_all_claims_are_those_that_are_pinned() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts.txt");
    let found = verdicts(&results());
    if std::env::var_os("IMBREX_PIN_VERDICTS").is_some() {
        std::fs::write(&path, &found).expect("the pinned file can be written");
    }
    let pinned = std::fs::read_to_string(&path).expect("the pinned file is there");
    let differing: Vec<_> = found.lines().filter(|line| !pinned.lines().any(|other| other == *line)).collect();
    assert!(differing.is_empty(), "not as pinned:\n{}", differing.join("\n"));
    assert_eq!(found.lines().count(), pinned.lines().count(), "claims that are pinned are on no page");
}

#[test]
fn every_paper_s_experiment_has_results() {
    let results = results();
    for experiment in imbrex_papers::all() {
        let is_paper = !["costs/", "lab/", "validation/"].iter().any(|page| experiment.name.starts_with(page));
        let has_results = results.iter().any(|results| results.experiment == experiment.name);
        assert_eq!(has_results, is_paper, "{}", experiment.name);
    }
}

#[test]
fn pages_are_those_of_the_results() {
    let results = results();
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    for results in &results {
        let path = docs().join("reproduction").join(format!("{}.md", results.experiment.replace('/', "-")));
        assert!(text(&path) == results.page(), "{} is not made of its results", path.display());
    }
    assert!(text(&docs().join("reproduction.md")) == page(&results), "reproduction.md is not made of the results");
}
