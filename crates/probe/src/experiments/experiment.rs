//! The description of an experiment, and the conditions under which an experiment tells nothing.

use crate::bench::Bench;
use crate::target::TargetError;
use crate::verdict::Verdict;

/// An experiment, as the registry lists it.
pub struct Experiment {
    /// Name, for `--test`.
    pub name: &'static str,
    /// The question that the experiment answers.
    pub question: &'static str,
    /// Number of the test in Aghayev 2015 §4, if it is one of those.
    pub source: &'static str,
    /// Whether the experiment writes.
    pub writes: bool,
    /// Names of the experiments whose results it needs.
    pub needs: &'static [&'static str],
    /// Names of the properties that it may find.
    pub properties: &'static [&'static str],
    /// Estimated duration on a real drive, seconds. With a time budget, the experiment with most properties per second
    /// goes first.
    pub about_s: u32,
    /// Returns the reason why the experiment would tell nothing about this drive, or `None` if it would tell something.
    pub skip_reason: fn(&Verdict) -> Option<&'static str>,
    /// Returns the name of another experiment that should run first, given the known properties, if that one is to run
    /// at all.
    pub run_after: fn(&Verdict) -> Option<&'static str>,
    /// Runs the experiment.
    pub run: fn(&mut Bench<'_>) -> Result<(), TargetError>,
}

/// Returns the reason to skip an experiment that needs a drive with a persistent cache, or `None` for a shingled drive.
pub(super) fn only_for_cached(verdict: &Verdict) -> Option<&'static str> {
    match verdict.word("type") {
        Some("shingled") => None,
        Some(_) => Some("the drive is not shingled"),
        None => Some("the drive's type is not known"),
    }
}

/// Returns the reason to skip an experiment that needs a rotating platter, or `None` for a drive with a known rotation.
pub(super) fn only_for_rotating(verdict: &Verdict) -> Option<&'static str> {
    verdict.number("rotation").is_none().then_some("nothing shows that a disk rotates behind it")
}
