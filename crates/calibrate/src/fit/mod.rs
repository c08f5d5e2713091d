//! Fits a profile to a measurement: overheads, settle times, seek curve, rotation and skews.
//!
//! ```text
//!  first half ──┬─ two requests of three: values are sought, by distributions ─► and request by request, where
//!               │                                                                the platter turns in step
//!               └─ one of three, held out: which of the changes are kept ──► those sought again with all three
//!  second half ──── judges
//! ```
//!
//! If values were sought by distributions alone, some twenty values would follow the chance of some thousand requests;
//! a correct profile came out worse. So a change is kept only if it reduces the loss of held-out requests, and single
//! requests are compared where that is possible ([`mod@judge`]).
//!
//! Invariants:
//! 1. A value keeps its number from the profile unless the held-out requests confirm a change.
//! 2. Equal measurements and profiles give equal results: nothing is random.

mod error;
mod judge;
mod search;
mod values;
mod written;

use imbrex_disk::Profile;

pub use self::error::FitError;
use self::judge::{Judged, Measure, Part, judge};
pub use self::search::Fitted;
use self::search::Search;
use crate::compare::Comparison;
use crate::measured::Measured;

/// Name and version of the format of the output of `imbrex fit --json`.
pub const SCHEMA: &str = "imbrex.fit/1";

/// Number of passes over all values, in each of the searches.
const ROUNDS: usize = 14;

/// Most searches: by distributions, request by request, and again with the kept changes.
const SEARCHES: usize = 3;

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
/// The measurement has fewer than 100 requests or does not suit the drive, the profile is invalid, or the drive cannot
/// be built or simulated.
pub fn fit(
    measured: &Measured,
    profile: &Profile,
    name: &str,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Fit, FitError> {
    if measured.requests.len() < 100 {
        let reason = format!("{} requests are too few to fit and to judge: 100 are needed", measured.requests.len());
        return Err(FitError::Measurement(reason));
    }
    let (first, second) = measured.halves();
    let base = profile.table();
    let before = (judge(profile, &first)?.whole(), judge(profile, &second)?.whole());
    let start = Search { profile, base: &base, measured: &first, values: values::values(profile, &base) };
    let mut round = 0;
    let (mut search, measure) = sought(&start, &mut || {
        progress(round, ROUNDS * SEARCHES);
        round += 1;
    })?;
    let fitted = search.fitted_values(measure)?;
    let profile = search.fitted()?;
    let toml = written::written(&base, &search.overrides(), profile.name.as_str(), name);
    let after = (search.judge()?.whole(), judge(&profile, &second)?.whole());
    Ok(Fit { fitted, first: (before.0, after.0), second: (before.1, after.1), profile, toml })
}

/// Returns the search with the values that the measurement confirms, and the measure by which they were sought.
fn sought<'a>(start: &Search<'a>, progress: &mut dyn FnMut()) -> Result<(Search<'a>, Measure), FitError> {
    let all: Vec<usize> = (0..start.values.len()).collect();
    let told_apart: Vec<usize> =
        all.iter().copied().filter(|&index| start.values[index].is_seen_by_distributions()).collect();
    let mut search = start.clone();
    search.run((Measure::Distributions, Part::Training), &told_apart, ROUNDS, progress)?;
    let mut measure = Measure::Distributions;
    if let Some(mut stepped) = in_step(start, &search)? {
        stepped.run((Measure::Pairs, Part::Training), &all, ROUNDS, progress)?;
        (search, measure) = (stepped, Measure::Pairs);
    }
    search.prune(measure)?;
    let kept = search.changed();
    search.renew_steps(start);
    search.run((measure, Part::All), &kept, ROUNDS, progress)?;
    Ok((search, measure))
}

/// Returns the start of the search request by request: the profile's values, or those found by distributions, whichever
/// have the smaller loss. Returns `None` if the platter turns in step with neither.
fn in_step<'a>(start: &Search<'a>, by_distributions: &Search<'a>) -> Result<Option<Search<'a>>, FitError> {
    let mut nearest: Option<(f64, &Search<'a>)> = None;
    for search in [start, by_distributions] {
        let judged: Judged = search.judge()?;
        let loss = judged.loss(Measure::Pairs, Part::Training);
        if judged.is_in_step() && nearest.is_none_or(|(least, _)| loss < least) {
            nearest = Some((loss, search));
        }
    }
    Ok(nearest.map(|(_, search)| {
        let mut search = search.clone();
        search.renew_steps(start);
        search
    }))
}
