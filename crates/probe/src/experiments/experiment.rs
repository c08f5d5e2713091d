//! The description of an experiment, and the conditions under which an experiment tells nothing.

use crate::bench::Bench;
use crate::target::TargetError;
use crate::verdict::Verdict;

/// An experiment of the probe, as the registry lists it: one or more tests of Aghayev 2015, or one of our own.
pub struct Experiment {
    /// Name of the experiment, by which `--test` chooses it.
    pub name: &'static str,
    /// The question about the drive that the experiment answers.
    pub question: &'static str,
    /// Source of the experiment, such as the numbers of its tests in Aghayev 2015 §4.
    pub source: &'static str,
    /// Whether the experiment writes to the drive, which destroys data.
    pub writes: bool,
    /// Names of the experiments whose results this one needs; empty for none. They are chosen together with this one,
    /// and run first unless their `run_after` names this one. If the probe leaves one of them out, for example because
    /// it may not write, this one may run without its results.
    pub needs: &'static [&'static str],
    /// Names of the properties that the experiment may add to the verdict.
    pub properties: &'static [&'static str],
    /// Estimated duration on a real drive, in seconds. With a time budget, the experiment with most properties per
    /// second of this estimate runs first.
    pub about_s: u32,
    /// Function that returns the reason why the experiment would find nothing, given the properties known so far;
    /// `None` if it should run.
    pub skip_reason: fn(&Verdict) -> Option<&'static str>,
    /// Function that returns the name of another experiment that should run before this one, given the properties known
    /// so far; `None` for no such wish. It has no effect if the other one will not run.
    pub run_after: fn(&Verdict) -> Option<&'static str>,
    /// Function that runs the experiment and adds its results to the verdict. An error ends the experiment; results
    /// added before remain.
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
