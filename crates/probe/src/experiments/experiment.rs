//! What an experiment is, and for which drives it tells nothing.

use crate::bench::Bench;
use crate::target::TargetError;
use crate::verdict::Verdict;

/// An experiment, as the registry lists it.
pub struct Experiment {
    /// Its name, for `--test`.
    pub name: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// Number of the test in Aghayev 2015 §4, where it is one of those.
    pub source: &'static str,
    /// Whether it writes.
    pub writes: bool,
    /// The experiments that it rests on.
    pub needs: &'static [&'static str],
    /// The properties it may tell.
    pub tells: &'static [&'static str],
    /// How long it takes on a real drive, about: with a budget, what tells most for its time goes first.
    pub about_s: u32,
    /// Why it would tell nothing, given what is known; nothing if it would.
    pub is_idle: fn(&Verdict) -> Option<&'static str>,
    /// Another experiment that is better run before it, given what is known, if that is to be run at all.
    pub yields_to: fn(&Verdict) -> Option<&'static str>,
    /// Runs it.
    pub run: fn(&mut Bench<'_>) -> Result<(), TargetError>,
}

/// For experiments that concern drives with a cache of their own.
pub(super) fn only_for_cached(verdict: &Verdict) -> Option<&'static str> {
    match verdict.word("type") {
        Some("shingled") => None,
        Some(_) => Some("the drive is not shingled"),
        None => Some("the drive's type is not known"),
    }
}

/// For experiments that need a platter to turn.
pub(super) fn only_for_rotating(verdict: &Verdict) -> Option<&'static str> {
    verdict.number("rotation").is_none().then_some("nothing shows that a disk rotates behind it")
}
