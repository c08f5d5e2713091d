//! Promises that are not kept yet: what a cut may leave today, and must not. Each entry is as narrow as can be told from outside, is
//! counted wherever it explains an outcome, and goes when its promise is kept. Whatever none explains fails a test.

use imbrex_testkit::Value;
use imbrex_testkit::writer::Loss;

use crate::judge::Outcome;
use crate::rounds::{Grade, Rounds};

/// A promise that is not kept.
struct NotYet {
    /// Its name in the tables.
    name: &'static str,
    /// Whether a finding of the check comes of it.
    finding: fn(&Rounds<'_>, &str) -> bool,
    /// Whether a loss comes of it.
    loss: fn(&Rounds<'_>, &Loss) -> bool,
}

/// Without a volatile cache an answered write is durable.
fn is_durable_when_answered(rounds: &Rounds<'_>) -> bool {
    rounds.story.carrier.cache_bytes == 0
}

fn is_torn(rounds: &Rounds<'_>) -> bool {
    rounds.block_bytes < u64::from(rounds.story.carrier.sector_bytes)
}

const NOT_YET: [NotYet; 4] = [
    // "A check after a kill says whole": the two witnesses of a slot are written together, and a cut between them stays.
    NotYet {
        name: "slot witnesses",
        finding: |_, text| text.starts_with("the directory's entry of slot") || text.starts_with("the header of slot"),
        loss: |_, _| false,
    },
    // "What was acknowledged reads as it was written": a sector larger than the host's block is overwritten in place, and a
    // tear leaves neither the old nor the new.
    NotYet {
        name: "torn sectors",
        finding: |rounds, text| {
            is_torn(rounds)
                && (text.contains("do not hold what was written") || text.contains("cannot be read: damage"))
        },
        loss: |rounds, loss| is_torn(rounds) && loss.found.contains("do not match their checksum"),
    },
    // "Any write on a drive without a volatile cache is durable": zeros are lines of a table, which nothing flushes.
    NotYet {
        name: "write zeroes",
        finding: |_, _| false,
        loss: |rounds, loss| {
            is_durable_when_answered(rounds)
                && loss.allowed.first() == Some(&Value::Zeros)
                && loss.found.contains("version")
        },
    },
    // The same promise: a zone's pointer is recorded for FUA and flushes alone, and what lies past it reads as zeros.
    NotYet {
        name: "zone pointers",
        finding: |_, _| false,
        loss: |rounds, loss| {
            is_durable_when_answered(rounds) && rounds.story.carrier.is_zoned() && loss.found == "zeros"
        },
    },
];

/// Grades what a cut alone left.
pub fn grade(rounds: &Rounds<'_>, outcome: &Outcome) -> Grade {
    if outcome.is_good() {
        return Grade::Good;
    }
    let mut names = Vec::new();
    let findings = outcome.findings.iter().map(|text| NOT_YET.iter().find(|entry| (entry.finding)(rounds, text)));
    let losses = outcome.verdict.losses.iter().map(|loss| NOT_YET.iter().find(|entry| (entry.loss)(rounds, loss)));
    for entry in findings.chain(losses) {
        match entry {
            Some(entry) => names.push(entry.name),
            None => return Grade::Bad,
        }
    }
    names.sort_unstable();
    names.dedup();
    if outcome.refused.is_some() || names.is_empty() { Grade::Bad } else { Grade::NotYet(names) }
}
