//! Goal: the ledger has a line for every claim of the results, and every line of the ledger is judged or says why not.
//! Method: read the tables of `docs/reproduction/ledger.md`, and compare them with the results kept beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use imbrex_papers::kept;

/// A line of the ledger: a sentence of a paper, and the claims that judge it.
struct Line {
    number: usize,
    section: String,
    sentence: String,
    /// Experiments, one for each claim; or the reason why there is no claim.
    judged_by: Vec<String>,
    /// Texts of the claims; empty if no claim judges the sentence.
    claims: Vec<String>,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Splits a row of a table in Markdown into its cells; `\|` is a bar within a cell.
fn cells(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{1}");
    inner.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

fn ledger() -> Vec<Line> {
    let text = std::fs::read_to_string(docs().join("reproduction/ledger.md")).expect("the ledger can be read");
    let parts = |cell: &str| cell.split("<br>").map(|part| part.trim().to_string()).collect::<Vec<_>>();
    let mut lines = Vec::new();
    // The table before the first heading of a paper has counts.
    let rows = text.lines().enumerate().skip_while(|(_, row)| !row.starts_with("## "));
    for (number, row) in rows.filter(|(_, row)| row.starts_with('|')) {
        let row = cells(row);
        if row[0] == "section" || row[0].starts_with("---") {
            continue;
        }
        assert_eq!(row.len(), 4, "line {}: four cells", number + 1);
        let claims = if row[3] == "–" { Vec::new() } else { parts(&row[3]) };
        let judged_by = parts(&row[2]).into_iter().map(|part| part.trim_matches('`').to_string()).collect();
        let (section, sentence) = (row[0].clone(), row[1].clone());
        lines.push(Line { number: number + 1, section, sentence, judged_by, claims });
    }
    lines
}

/// Returns the claims of the papers' experiments, as pairs of experiment and text.
fn claims() -> BTreeSet<(String, String)> {
    let results = kept(&docs()).expect("the results can be read");
    let of_papers = results.into_iter().filter(|results| !results.experiment.starts_with("later-drives/"));
    let pairs = of_papers.flat_map(|results| {
        let experiment = results.experiment;
        results.claims.into_iter().map(move |claim| (experiment.clone(), claim.claim))
    });
    pairs.collect()
}

#[test]
fn every_claim_has_a_sentence() {
    let lines = ledger();
    let pairs = lines.iter().flat_map(|line| line.judged_by.iter().cloned().zip(line.claims.iter().cloned()));
    let named: BTreeSet<(String, String)> = pairs.collect();
    let missing: Vec<_> = claims().into_iter().filter(|claim| !named.contains(claim)).collect();
    assert!(missing.is_empty(), "no line of the ledger names these claims: {missing:#?}");
}

#[test]
fn every_line_is_judged_or_says_why_not() {
    let claims = claims();
    for line in ledger() {
        let Line { number, section, sentence, judged_by, claims: named } = line;
        assert!(!section.is_empty() && !sentence.is_empty(), "line {number}: section and sentence");
        if section == "ours" {
            assert!(sentence.starts_with("(not in the paper)"), "line {number}: {sentence}");
        }
        if named.is_empty() {
            let [reason] = &judged_by[..] else { panic!("line {number}: one reason") };
            let is_reason = |word: &str| reason.strip_prefix(word).is_some_and(|rest| rest.trim().len() > 4);
            if let Some(place) = reason.strip_prefix("definition: ") {
                // A remark may follow the path.
                let path = docs().join("..").join(place.split([' ', ',', ';']).next().unwrap_or_default());
                assert!(path.exists(), "line {number}: there is no {place}");
                continue;
            }
            assert!(reason == "drawing" || is_reason("not run: "), "line {number}: «{reason}» is no reason");
            continue;
        }
        assert_eq!(judged_by.len(), named.len(), "line {number}: an experiment for each claim");
        for pair in judged_by.into_iter().zip(named) {
            assert!(claims.contains(&pair), "line {number}: no result has {pair:?}");
        }
    }
}
