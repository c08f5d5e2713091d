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

/// Returns whether answered writes are durable: the drive has no volatile cache.
fn is_durable_when_answered(rounds: &Rounds<'_>) -> bool {
    rounds.story.carrier.cache_bytes == 0
}

fn is_torn(rounds: &Rounds<'_>) -> bool {
    rounds.block_bytes < u64::from(rounds.story.carrier.sector_bytes)
}

/// Returns whether the drive goes on after a failed sync: those with a volatile cache do.
fn goes_on_after_failure(rounds: &Rounds<'_>) -> bool {
    rounds.is_after_failed_sync && !is_durable_when_answered(rounds)
}

const NOT_YET: [NotYet; 5] = [
    // "After the first failed sync every flush fails": a drive with a volatile cache answers the next one with success, and
    // what the failed one covered is lost, tables and directory as well.
    NotYet {
        name: "failed sync",
        finding: |rounds, _| goes_on_after_failure(rounds),
        loss: |rounds, _| goes_on_after_failure(rounds),
    },
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
pub fn grade(rounds: &Rounds<'_>, outcome: &Outcome, _: Option<&str>) -> Grade {
    if outcome.is_good() {
        return Grade::Good;
    }
    if outcome.refused.is_some() && !goes_on_after_failure(rounds) {
        return Grade::Bad;
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
    if names.is_empty() { Grade::Bad } else { Grade::NotYet(names) }
}

/// Grades what a cut left on a disk with a fault that hit `hit`: sectors and the whole image may have become unreadable, but
/// nothing else is read than may be there, and the check says damage.
pub fn grade_spoilt(_: &Rounds<'_>, outcome: &Outcome, hit: Option<&str>) -> Grade {
    let hit = hit.expect("a fault hit something");
    let is_lost = outcome.refused.is_some() || outcome.verdict.lost > 0;
    let is_wrong = outcome.wrong() > 0 || (is_lost && outcome.findings.is_empty());
    match (is_wrong, outcome.findings.is_empty()) {
        (false, false) => Grade::Good,
        // What is not in use may be as old as it likes.
        (false, true) if hit == "nothing in use" => Grade::Good,
        // "One block that is older than what was synced after it is damage": nothing says how old a block of a table is, so an older
        // one is believed, with the slots, sums and zeros that it had.
        _ if hit.contains("sector-table") => Grade::NotYet(vec!["older sector table"]),
        // The same promise: contents of the era that is open count as cut, though a flush made them durable.
        _ if hit.contains("contents") => Grade::NotYet(vec!["contents of the open era"]),
        // The same promise: a copy of a state that is whole is not compared with the others, and a record's second copy not
        // missed behind the records known to be durable. Neither loses anything.
        (false, true) if hit == "state" => Grade::NotYet(vec!["older state"]),
        (false, true) if hit == "journal" => Grade::NotYet(vec!["older copy of a record"]),
        _ => Grade::Bad,
    }
}
