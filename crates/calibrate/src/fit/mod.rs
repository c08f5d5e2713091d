//! Fitting: overheads, settle times, seek curve, rotation and skews that bring a profile closest to a measurement.
//!
//! ```text
//!  first half ──┬─ two requests of three: values are sought, by distributions ─► and request by request, where
//!               │                                                                the platter turns in step
//!               └─ one of three, held out: which of the changes are kept ──► those sought again with all three
//!  second half ──── judges
//! ```
//!
//! Sought by distributions alone, some twenty values follow the chance of some thousand requests: a profile that was right
//! came out worse. So a change is kept only where requests that had no part in it are nearer for it, and where single
//! requests can be compared they are ([`mod@judge`]).
//!
//! Invariants:
//! 1. A value without a change that is borne out stays what the profile has.
//! 2. The same measurement and profile give the same result: nothing is drawn.

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

/// What `imbrex fit --json` prints begins with.
pub const SCHEMA: &str = "imbrex.fit/1";

/// Passes over all values, in each of the searches.
const ROUNDS: usize = 14;

/// Searches at most: by distributions, request by request, and again with what is kept.
const SEARCHES: usize = 3;

/// What a fit came to.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The values.
    pub fitted: Vec<Fitted>,
    /// The first half, before and after.
    pub first: (Comparison, Comparison),
    /// The second half, before and after.
    pub second: (Comparison, Comparison),
    /// The profile with the values.
    pub profile: Profile,
    /// Its text, the values marked.
    pub toml: String,
}

/// Fits `profile` to the first half of `measured`, which lies in the file `name`; `progress` is told the round.
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

/// The values that the measurement bears out, and the number they were sought by.
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

/// Where to begin request by request: with what the profile had, or with what distributions made of it, whichever is
/// nearer; none where the platter turns in step with neither.
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
