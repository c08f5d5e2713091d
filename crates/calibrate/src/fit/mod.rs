//! Fits a profile to a measurement: overheads, settle times, seek curve, rotation and skews.
//!
//! ```text
//!  first half ──┬─ all requests: rotation from phases, values and rotation from the edges of the waits
//!               ├─ two requests of three: values are sought, by distributions ─► and request by request, where
//!               │                                                                the platter turns in step
//!               ├─ one of three, held out: which of the changes are kept ──► those sought again with all three
//!               └─ all requests: intervals
//!  second half ──── judges
//! ```
//!
//! A search in small steps finds no rotation that is far from the profile's, so periods from 3,000 to 18,000 rpm are
//! tried first ([`mod@phase`], [`mod@posterior`]).
//!
//! If values were sought by distributions alone, some twenty values would follow the chance of some thousand requests;
//! a correct profile came out worse. So a change is kept only if it reduces the loss of held-out requests, and single
//! requests are compared where that is possible ([`mod@judge`]).
//!
//! Invariants:
//! 1. A value keeps its number from the profile unless the held-out requests confirm a change.
//! 2. Equal measurements and profiles give equal results: nothing is random.

mod ensemble;
mod error;
mod interval;
mod judge;
mod linear;
mod phase;
mod posterior;
mod response;
mod search;
mod values;
mod written;

use imbrex_disk::Profile;

pub use self::error::FitError;
use self::interval::{Interval, evidence};
use self::judge::{Judged, Measure, Part, judge};
use self::phase::{Phased, phased};
pub use self::search::Fitted;
use self::search::Search;
use self::values::Value;
use crate::compare::Comparison;
use crate::measured::Measured;

/// Name and version of the format of the output of `imbrex fit --json`.
pub const SCHEMA: &str = "imbrex.fit/1";

/// Number of passes over all values, in each of the searches.
const ROUNDS: usize = 14;

/// Most searches: by distributions from two starts, request by request, and again with the kept changes.
const SEARCHES: usize = 4;

/// Factor by which the loss over held-out requests must be smaller to prefer the estimate to a search from the profile.
/// Chance alone changes the loss of some thousand requests by a tenth.
const CLEARLY: f64 = 0.8;

/// Number of times that the posterior density is sampled before the searches, since slopes depend on the values.
const PASSES: usize = 2;

/// Number of steps in which the posterior density is sampled before the searches.
const STEPS_FIRST: usize = 600;

/// Number of steps in which the posterior density is sampled for the intervals.
const STEPS: usize = 1600;

/// Least number of requests that can be fitted.
const REQUESTS_MIN: usize = 40;

/// Result of fitting a profile to a measurement.
#[derive(Clone, Debug)]
pub struct Fit {
    /// All values of the profile that the fit could change, with the value before and after, whether it changed them or
    /// not.
    pub fitted: Vec<Fitted>,
    /// Comparisons of the measured with the simulated times of the first half of the requests: with the profile before
    /// and after the fit. The fit used this half.
    pub first: (Comparison, Comparison),
    /// Comparisons of the measured with the simulated times of the second half of the requests: with the profile before
    /// and after the fit. The fit did not use this half.
    pub second: (Comparison, Comparison),
    /// The profile with the values that the fit found.
    pub profile: Profile,
    /// The fitted profile as TOML, in which comments mark the changed values.
    pub toml: String,
}

/// Fits `profile`, with its default layer, to the first half of the requests of `measured`, and judges the result by
/// the second half. Of the first half, every third request only decides which changes are kept. `name` is the name of
/// the measurement's file, for a comment. `progress` receives the number of each round, from 0, and the greatest number
/// of rounds that the fit may need.
///
/// # Errors
///
/// The measurement has fewer than 40 requests or does not suit the drive, the profile is invalid, or the drive cannot
/// be built or simulated.
pub fn fit(
    measured: &Measured,
    profile: &Profile,
    name: &str,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Fit, FitError> {
    if measured.requests.len() < REQUESTS_MIN {
        let count = measured.requests.len();
        let reason = format!("{count} requests are too few to fit and to judge: {REQUESTS_MIN} are needed");
        return Err(FitError::Measurement(reason));
    }
    let (first, second) = measured.halves();
    let base = profile.table();
    let before = (judge(profile, &first)?.whole(), judge(profile, &second)?.whole());
    let start = Search { profile, base: &base, measured: &first, values: values::values(profile, &base) };
    let mut round = 0;
    let (search, phased) = sought(&start, &mut || {
        progress(round, ROUNDS * SEARCHES);
        round += 1;
    })?;
    let mut intervals = vec![None; search.values.len()];
    phased.iter().for_each(|value| intervals[value.index] = Some(value.interval));
    if let Some(evidence) = evidence(&search, &phased, STEPS)? {
        intervals = evidence.intervals;
    }
    let fitted = search.fitted_values(&intervals);
    let profile = search.fitted()?;
    let toml = written::written(&base, &search.overrides(), profile.name.as_str(), name);
    let after = (search.judge()?.whole(), judge(&profile, &second)?.whole());
    Ok(Fit { fitted, first: (before.0, after.0), second: (before.1, after.1), profile, toml })
}

/// Returns the search with the values that the measurement confirms, and those that phases determine.
fn sought<'a>(start: &Search<'a>, progress: &mut dyn FnMut()) -> Result<(Search<'a>, Vec<Phased>), FitError> {
    let (estimate, phased) = estimated(start)?;
    let phased_indices: Vec<usize> = phased.iter().map(|value| value.index).collect();
    let open: Vec<usize> = (0..start.values.len()).filter(|index| !phased_indices.contains(index)).collect();
    let mut plain = start.clone();
    move_phased(&mut plain, &phased);
    let mut search = by_distributions(&plain, &estimate, &open, progress)?;
    let mut measure = Measure::Distributions;
    if let Some(mut stepped) = in_step(&[start, &plain, &estimate, &search])? {
        let all: Vec<usize> = (0..start.values.len()).collect();
        let sought = if stepped.has_values_of(start) { &all } else { &open };
        stepped.renew_steps(start);
        stepped.run((Measure::Pairs, Part::Training), sought, ROUNDS, progress)?;
        (search, measure) = (stepped, Measure::Pairs);
    }
    let estimated = search.has_values_of(&estimate);
    search.prune(measure)?;
    if !estimated {
        let changed: Vec<usize> = search.changed().into_iter().filter(|index| open.contains(index)).collect();
        search.renew_steps(start);
        search.run((measure, Part::All), &changed, ROUNDS, progress)?;
    }
    Ok((search, phased))
}

/// Returns the best of three by the distributions of the held-out requests: the result of a search from the profile, the
/// estimate, and the result of a search from the estimate. The earlier one is preferred, unless a later one is clearly
/// better.
fn by_distributions<'a>(
    plain: &Search<'a>,
    estimate: &Search<'a>,
    open: &[usize],
    progress: &mut dyn FnMut(),
) -> Result<Search<'a>, FitError> {
    let told_apart: Vec<usize> =
        open.iter().copied().filter(|&index| plain.values[index].is_seen_by_distributions()).collect();
    let searched = |start: &Search<'a>, progress: &mut dyn FnMut()| {
        let mut searched = start.clone();
        searched.run((Measure::Distributions, Part::Training), &told_apart, ROUNDS, progress)?;
        Ok::<_, FitError>(searched)
    };
    let mut best = searched(plain, progress)?;
    let mut least = best.loss(Measure::Distributions, Part::HeldOut)?;
    if estimate.has_values_of(plain) {
        return Ok(best);
    }
    for candidate in [estimate.clone(), searched(estimate, progress)?] {
        let loss = candidate.loss(Measure::Distributions, Part::HeldOut)?;
        if loss < least * CLEARLY {
            (best, least) = (candidate, loss);
        }
    }
    Ok(best)
}

/// Returns the search with the values moved that the measurement contradicts by the model of the posterior density, and
/// the values that phases determine.
fn estimated<'a>(start: &Search<'a>) -> Result<(Search<'a>, Vec<Phased>), FitError> {
    let mut search = start.clone();
    let mut phases = phased(&search, whole_range(&search))?;
    for _ in 0..PASSES {
        move_phased(&mut search, &phases);
        let Some(evidence) = evidence(&search, &phases, STEPS_FIRST)? else { break };
        evidence.move_contradicted(&mut search);
        let rotation = search.values.iter().position(Value::is_rotation).filter(|_| phases.is_empty());
        if let Some(interval) = rotation.and_then(|index| evidence.intervals[index]) {
            phases = phased(&search, interval)?;
        }
    }
    move_phased(&mut search, &phases);
    Ok((search, phases))
}

fn whole_range(search: &Search<'_>) -> Interval {
    let rotation = search.values.iter().find(|value| value.is_rotation()).expect("every profile has a rotation");
    Interval { low: rotation.low, high: rotation.high }
}

/// Sets the values that phases determine, unless their interval contains the present value.
fn move_phased(search: &mut Search<'_>, phases: &[Phased]) {
    for phased in phases {
        let value = &mut search.values[phased.index];
        if !phased.interval.contains(value.now) {
            value.now = phased.estimate.round();
        }
    }
}

/// Returns the one of `searches` with the smallest loss request by request in which the platter turns in step; an
/// earlier one, unless a later one is clearly better. Returns `None` if the platter is in step in none of them.
fn in_step<'a>(searches: &[&Search<'a>]) -> Result<Option<Search<'a>>, FitError> {
    let mut nearest: Option<(f64, &Search<'a>)> = None;
    for search in searches.iter().copied() {
        let judged: Judged = search.judge()?;
        let loss = judged.loss(Measure::Pairs, Part::Training);
        if judged.is_in_step() && nearest.is_none_or(|(least, _)| loss < least * CLEARLY) {
            nearest = Some((loss, search));
        }
    }
    Ok(nearest.map(|(_, search)| search.clone()))
}
