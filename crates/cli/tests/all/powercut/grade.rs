//! Grades of outcomes. Promises that are not kept yet have names, which are counted where they explain an outcome. An
//! outcome that no name explains fails the test.

use super::judge::Outcome;
use super::rounds::{Grade, Rounds};

/// Grades the outcome of a cut without a fault.
pub(crate) fn grade(_: &Rounds<'_>, outcome: &Outcome, _: Option<&str>) -> Grade {
    if outcome.is_good() { Grade::Good } else { Grade::Bad }
}

/// Grades the outcome of a cut with a fault of the disk that hit `hit`. Sectors and the whole image may have become
/// unreadable, but a sector must not read as a value that it cannot hold, and the check must report damage.
pub(crate) fn grade_spoilt(_: &Rounds<'_>, outcome: &Outcome, hit: Option<&str>) -> Grade {
    let hit = hit.expect("a fault hit something");
    let is_lost = outcome.refused.is_some() || outcome.verdict.lost > 0;
    let is_wrong = outcome.wrong() > 0 || (is_lost && outcome.findings.is_empty());
    match (is_wrong, outcome.findings.is_empty()) {
        (false, false) => Grade::Good,
        // The age of unused bytes does not matter. A cut also leaves one copy of the state older than another; the
        // newest counts.
        (false, true) if hit == "nothing in use" || hit == "state" => Grade::Good,
        // The era was still open: the flush that covered the write was not answered, or another copy was used. No later
        // flush acknowledged the write.
        (false, true) => Grade::NotYet(vec!["not noticed, nothing lost"]),
        _ => Grade::Bad,
    }
}
