//! The experiments, one file each, in the order in which they run: cheap before dear, and what the later ones rest on
//! before them.

mod band_size;
mod cache_fill;
mod cache_place;
mod cleaning_kind;
mod cleaning_order;
mod drive_type;
mod filling;
mod journal;
mod mechanics;
mod rotation;
mod zones;

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

/// Every experiment.
pub fn all() -> &'static [&'static Experiment] {
    &[
        &rotation::EXPERIMENT,
        &mechanics::EXPERIMENT,
        &zones::EXPERIMENT,
        &drive_type::EXPERIMENT,
        &cleaning_kind::EXPERIMENT,
        &cache_place::EXPERIMENT,
        &cache_fill::EXPERIMENT,
        &cleaning_order::EXPERIMENT,
        &band_size::EXPERIMENT,
        &journal::EXPERIMENT,
    ]
}

/// The experiments named, and those that they rest on; all where none is named.
pub fn chosen(names: &[String]) -> Vec<&'static Experiment> {
    let mut wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    for experiment in all().iter().rev() {
        if wanted.contains(&experiment.name) {
            wanted.extend(experiment.needs);
        }
    }
    all().iter().copied().filter(|experiment| names.is_empty() || wanted.contains(&experiment.name)).collect()
}

/// For experiments that concern drives with a cache of their own.
fn only_for_cached(verdict: &Verdict) -> Option<&'static str> {
    match verdict.word("type") {
        Some("shingled") => None,
        Some(_) => Some("the drive is not shingled"),
        None => Some("the drive's type is not known"),
    }
}

/// For experiments that need a platter to turn.
fn only_for_rotating(verdict: &Verdict) -> Option<&'static str> {
    verdict.number("rotation").is_none().then_some("nothing shows that a disk rotates behind it")
}
