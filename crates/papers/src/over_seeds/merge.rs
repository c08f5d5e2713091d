//! One report of all replications of an experiment.
//!
//! Invariants:
//! 1. All replications judge the same claims in the same order; otherwise the merge fails.
//! 2. The verdict of a claim that counts is the one verdict of all replications, or *depends on the seed*.
//! 3. A text, cell, table or figure that is not merged is that of the first replication, and a remark or a table says
//!    so.

use imbrex::Failure;

use super::{figures, numbers};
use crate::report::{Claim, Report, Table, Verdict};

/// Returns the report of all replications of `experiment`, of which there are at least two.
///
/// # Errors
///
/// Two replications judge different claims.
pub(super) fn merged(experiment: &str, reports: &[Report]) -> Result<Report, Failure> {
    let [first, others @ ..] = reports else { panic!("there are no replications to merge") };
    let count = reports.len();
    for (number, other) in others.iter().enumerate() {
        check_equal(experiment, first, other, number + 1)?;
    }
    let claims: Vec<Claim> = (0..first.claims.len()).map(|index| claim(&of_all(reports, index))).collect();
    let unmerged = unmerged_texts(reports, count);
    let (mut tables, kept_tables) = tables(reports);
    let (figures, kept_figures) = figures::merged(reports);
    let mut remarks = vec![explained(count, unmerged.is_some())];
    remarks.extend(disagreements(&claims));
    remarks.extend(kept_tables);
    remarks.extend(kept_figures);
    remarks.extend(first.remarks.iter().cloned());
    tables.extend(unmerged);
    Ok(Report {
        method: first.method.clone(),
        claims,
        tables,
        figures,
        remarks,
        seeds: Some(u32::try_from(count).expect("at most 1,000")),
    })
}

/// Checks that replication `number` judges the claims of the first.
fn check_equal(experiment: &str, first: &Report, other: &Report, number: usize) -> Result<(), Failure> {
    let (ours, theirs) = (first.claims.len(), other.claims.len());
    if ours != theirs {
        let reason = format!("{experiment}: {ours} claims with the first seed, {theirs} with seed {}", number + 1);
        return Err(Failure::failed(reason).or_try("one seed: these reports cannot be merged"));
    }
    let is_other = |(one, two): &(&Claim, &Claim)| (&one.claim, one.kind) != (&two.claim, two.kind);
    let Some((one, two)) = first.claims.iter().zip(&other.claims).find(is_other) else { return Ok(()) };
    let shown = |claim: &Claim| format!("'{}' ({})", claim.claim, claim.kind.name());
    let reason =
        format!("{experiment}: the claim {} of the first seed is {} with seed {}", shown(one), shown(two), number + 1);
    Err(Failure::failed(reason).or_try("one seed: these reports cannot be merged"))
}

/// Returns claim `index` of all replications.
fn of_all(reports: &[Report], index: usize) -> Vec<&Claim> {
    reports.iter().map(|report| &report.claims[index]).collect()
}

/// Returns one claim for a claim of all replications.
fn claim(all: &[&Claim]) -> Claim {
    let verdicts: Vec<Verdict> = all.iter().map(|claim| claim.verdict).collect();
    let agree = verdicts.iter().all(|verdict| *verdict == verdicts[0]);
    let verdict = if agree || !all[0].kind.is_counted() { verdicts[0] } else { Verdict::DependsOnSeed };
    let texts = ours(all);
    Claim {
        ours: numbers::merged(&texts).unwrap_or_else(|| all[0].ours.clone()),
        verdict,
        verdicts,
        ours_by_seed: texts.iter().map(|text| text.to_string()).collect(),
        ..all[0].clone()
    }
}

fn ours<'a>(all: &[&'a Claim]) -> Vec<&'a str> {
    all.iter().map(|claim| claim.ours.as_str()).collect()
}

/// Returns a table of the claims whose texts differ in more than numbers, with the text of every replication; `None` if
/// there is no such claim.
fn unmerged_texts(reports: &[Report], count: usize) -> Option<Table> {
    let mut rows = Vec::new();
    for index in 0..reports[0].claims.len() {
        let all = of_all(reports, index);
        if numbers::merged(&ours(&all)).is_some() {
            continue;
        }
        for (number, one) in all.iter().enumerate() {
            rows.push(vec![one.claim.clone(), seed(number), one.ours.clone()]);
        }
    }
    let columns = ["claim", "seed", "ours"].map(String::from).to_vec();
    (!rows.is_empty()).then(|| Table { heading: format!("Over {count} seeds"), columns, rows })
}

/// Returns the name of the seed of a replication: `first`, `first + 1`.
fn seed(number: usize) -> String {
    if number == 0 { "first".into() } else { format!("first + {number}") }
}

/// Returns the remark that explains the numbers of a report over `count` seeds.
fn explained(count: usize, has_unmerged: bool) -> String {
    let listed = if has_unmerged {
        format!(" The table \"Over {count} seeds\" has the claims whose results differ in more than numbers.")
    } else {
        String::new()
    };
    format!(
        "The experiment ran with {count} seeds: each of its random choices has its own seed in the first run, and one \
         more in each further run. A number with ± is the mean over the seeds and half of the 95 % interval of the \
         mean, by Student's t distribution. Other numbers of claims and tables are equal with all seeds, unless a \
         remark says otherwise. A figure that differs between the seeds shows means, and the 95 % intervals as error \
         bars where there is room, unless a remark says otherwise. The further remarks are of the first seed.{listed}"
    )
}

/// Returns a remark with the claims on which the seeds disagree, and the verdict with each seed; `None` if they agree
/// on all claims.
fn disagreements(claims: &[Claim]) -> Option<String> {
    let depending = claims.iter().filter(|claim| claim.depends_on_seed());
    let told: Vec<String> = depending
        .map(|claim| {
            let verdicts: Vec<&str> = claim.verdicts.iter().map(|verdict| verdict.name()).collect();
            format!("\"{}\" ({}): {}", claim.claim, claim.kind.name(), verdicts.join(", "))
        })
        .collect();
    (!told.is_empty())
        .then(|| format!("Verdicts that depend on the seed, in the order of the seeds: {}.", told.join("; ")))
}

/// Returns the tables of all replications as one list, and remarks on the tables or cells that are of the first one.
fn tables(reports: &[Report]) -> (Vec<Table>, Vec<String>) {
    let first = &reports[0].tables;
    if reports.iter().any(|report| report.tables.len() != first.len()) {
        let remark = "The number of tables differs with the seed, so all tables are of the first seed.";
        return (first.clone(), vec![remark.into()]);
    }
    let mut remarks = Vec::new();
    let mut merged = Vec::new();
    for index in 0..first.len() {
        let all: Vec<&Table> = reports.iter().map(|report| &report.tables[index]).collect();
        let heading = &all[0].heading;
        match table(&all) {
            None => {
                merged.push(all[0].clone());
                remarks.push(format!(
                    "The table \"{heading}\" is of the first seed, since its rows or columns differ with the seed."
                ));
            }
            Some((table, unmerged)) => {
                merged.push(table);
                if unmerged > 0 {
                    let cells = if unmerged == 1 { "cell" } else { "cells" };
                    remarks.push(format!(
                        "In the table \"{heading}\", {unmerged} {cells} whose texts differ in more than numbers are of \
                         the first seed."
                    ));
                }
            }
        }
    }
    (merged, remarks)
}

/// Returns one table for a table of all replications, and the number of cells that could not be merged. Returns `None`
/// if heading, columns, or first cells of rows differ.
fn table(all: &[&Table]) -> Option<(Table, usize)> {
    let first = all[0];
    let shape = |table: &Table| -> Vec<(usize, Option<String>)> {
        table.rows.iter().map(|row| (row.len(), row.first().cloned())).collect()
    };
    let is_alike = |other: &&Table| {
        other.heading == first.heading && other.columns == first.columns && shape(other) == shape(first)
    };
    if !all.iter().all(is_alike) {
        return None;
    }
    let mut unmerged = 0;
    let mut merged = first.clone();
    for (row, cells) in merged.rows.iter_mut().enumerate() {
        for (column, cell) in cells.iter_mut().enumerate().skip(1) {
            let texts: Vec<&str> = all.iter().map(|table| table.rows[row][column].as_str()).collect();
            match numbers::merged(&texts) {
                Some(text) => *cell = text,
                None => unmerged += 1,
            }
        }
    }
    Some((merged, unmerged))
}
