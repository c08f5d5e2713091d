//! Intervals of the values of a profile, from samples of their posterior density, and the values that the measurement
//! contradicts.
//!
//! Invariants:
//! 1. A value has an interval only if the measurement narrows its range.
//! 2. A value keeps its number unless the measurement contradicts it.

use super::ensemble::Sample;
use super::error::FitError;
use super::linear::{inverse, minimize};
use super::phase::Phased;
use super::posterior::Posterior;
use super::response::{clock_step_ns, rows};
use super::search::Search;
use super::values::Value;

/// Share of the samples that lie outside of an interval, on each side.
const TAIL: f64 = 0.025;

/// Largest share of a value's range that its interval has; a wider one says nothing.
const SHARE_MAX: f64 = 0.5;

/// Largest share of the period that the interval of the rotation has.
const ROTATION_SHARE_MAX: f64 = 0.5;

/// A value whose standard deviation by least squares is more than this share of its range is known only as part of a
/// sum of values.
const WEAK: f64 = 0.1;

/// An interval that comes nearer to an end of the range than this share of its width reaches to the end.
const NEAR_END: f64 = 0.25;

/// Square of the number of standard deviations by which the measurement must contradict a value.
const CONTRADICTED: f64 = 8.0;

/// Standard deviations by which the distance of all values from the best ones must exceed its expectation before the
/// measurement contradicts them.
const EXCEEDED: f64 = 3.0;

/// Distance of a distribution from the expected one, times the root of its number, that chance exceeds once in twenty.
const CHANCE: f64 = 1.36;

/// Distance of the waits from the uniform distribution above which the model does not hold.
const MISFIT_MAX: f64 = 0.25;

/// An interval that contains the true value of 95 drives in 100, in the unit of the value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Returns the distance of `value` from the end of the interval that is farther away.
    pub(super) fn distance_from(self, value: f64) -> f64 {
        (value - self.low).abs().max((self.high - value).abs())
    }

    /// Returns the interval extended to `value` and to whole numbers at least 1 from it, since profiles have those.
    pub(super) fn with(self, value: f64) -> Interval {
        Interval { low: self.low.floor().min(value - 1.0), high: self.high.ceil().max(value + 1.0) }
    }

    /// Returns whether the interval contains `value`.
    pub(super) fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Intervals of the values of a search, and the density from which they follow.
pub(super) struct Evidence {
    /// The interval of each value; `None` if the measurement does not determine it.
    pub intervals: Vec<Option<Interval>>,
    /// Indices of the values of which the density was sampled, and the mean and the precision of that density, in units
    /// of the ranges and from the present values.
    indices: Vec<usize>,
    mean: Vec<f64>,
    precision: Vec<Vec<f64>>,
    /// Whether the density at the present values is improbably small.
    is_contradicted: bool,
}

/// Samples the posterior density of the values of `search` in `steps` steps, with the values in `phased`. Returns `None` if the measurement does not
/// suit the model: requests in flight together, or waits that are not uniform.
pub(super) fn evidence(search: &Search<'_>, phased: &[Phased], steps: usize) -> Result<Option<Evidence>, FitError> {
    let rows = rows(search)?;
    let period = phased.first().map(|rotation| rotation.interval);
    let Some(mut posterior) = Posterior::new(&rows, &search.values, clock_step_ns(search.measured), period) else {
        return Ok(None);
    };
    let mut samples = posterior.samples(steps);
    let (distance, count) = posterior.distance_from_uniform(&mean(&samples));
    if distance > MISFIT_MAX.max(CHANCE / (count as f64).sqrt()) {
        return Ok(None);
    }
    let expected = CHANCE / (count as f64).sqrt();
    if distance > expected {
        posterior.weight = (expected / distance).powi(2);
        samples = posterior.samples(steps);
    }
    let mut evidence = summary(search, &posterior, &samples);
    for value in phased {
        evidence.intervals[value.index] = Some(value.interval);
    }
    Ok(Some(evidence))
}

fn summary(search: &Search<'_>, posterior: &Posterior, samples: &[Sample]) -> Evidence {
    let active = posterior.active();
    let mean = mean(samples);
    let rotation = active.iter().position(Value::is_rotation).expect("a posterior has the rotation");
    let deviations = posterior.least_squares_deviations(mean[rotation]);
    let mut intervals = vec![None; search.values.len()];
    for (at, (&index, value)) in posterior.indices().iter().zip(active).enumerate() {
        let weak = at != rotation && deviations[at] > WEAK * (value.high - value.low);
        intervals[index] = interval(value, samples.iter().map(|sample| sample.point[at]).collect(), weak);
    }
    let ranges: Vec<f64> = active.iter().map(|value| value.high - value.low).collect();
    let size = active.len();
    let mut covariance = vec![vec![0.0; size]; size];
    for sample in samples {
        let away: Vec<f64> = (0..size).map(|at| (sample.point[at] - mean[at]) / ranges[at]).collect();
        for i in 0..size {
            for j in 0..size {
                covariance[i][j] += away[i] * away[j] / samples.len() as f64;
            }
        }
    }
    // Of a normal density, the logarithm at the true values is less than at the best ones by half the number of values;
    // of one with sharp edges, by the number of values.
    let improbable = -(size as f64) - EXCEEDED * (size as f64).sqrt();
    Evidence {
        intervals,
        is_contradicted: posterior.density_at_present(samples) < improbable,
        indices: posterior.indices().to_vec(),
        mean: (0..size).map(|at| (mean[at] - active[at].now) / ranges[at]).collect(),
        precision: inverse(&covariance),
    }
}

fn mean(samples: &[Sample]) -> Vec<f64> {
    let mut mean = vec![0.0; samples[0].point.len()];
    for sample in samples {
        for (sum, at) in mean.iter_mut().zip(&sample.point) {
            *sum += at / samples.len() as f64;
        }
    }
    mean
}

/// Returns the interval of one value from its samples; `None` if it is too wide to say anything. A `weak` value is
/// known only as part of a sum, so that any share of the sum is possible: its interval contains all samples.
fn interval(value: &Value, mut drawn: Vec<f64>, weak: bool) -> Option<Interval> {
    drawn.sort_by(f64::total_cmp);
    let tail = if weak { 0.0 } else { TAIL };
    let place = |share: f64| drawn[((drawn.len() - 1) as f64 * share).round() as usize];
    let (mut low, mut high) = (place(tail), place(1.0 - tail));
    let width = high - low;
    if low - value.low < NEAR_END * width {
        low = value.low;
    }
    if value.high - high < NEAR_END * width {
        high = value.high;
    }
    let width_max =
        if value.is_rotation() { ROTATION_SHARE_MAX * place(0.5) } else { SHARE_MAX * (value.high - value.low) };
    (high - low <= width_max).then_some(Interval { low, high })
}

impl Evidence {
    /// Moves the fewest values by which the search agrees with the measurement. Each of them must be contradicted,
    /// given those moved before it.
    pub(super) fn move_contradicted(&self, search: &mut Search<'_>) {
        let active: Vec<&Value> = self.indices.iter().map(|&index| &search.values[index]).collect();
        let bounds: Vec<(f64, f64)> = active
            .iter()
            .map(|value| {
                let range = value.high - value.low;
                ((value.low - value.now) / range, (value.high - value.now) / range)
            })
            .collect();
        let size = active.len();
        let times = |at: &[f64], row: usize| -> f64 { (0..size).map(|j| self.precision[row][j] * at[j]).sum() };
        let linear: Vec<f64> = (0..size).map(|row| times(&self.mean, row)).collect();
        let cost = |at: &[f64]| {
            let away: Vec<f64> = at.iter().zip(&self.mean).map(|(at, mean)| at - mean).collect();
            (0..size).map(|row| away[row] * times(&away, row)).sum::<f64>()
        };
        // A wrong rotation would hide in the other values, so it must be contradicted by itself.
        let may_move = |at: usize| {
            let interval = self.intervals[self.indices[at]];
            !active[at].is_rotation() || interval.is_some_and(|interval| !interval.contains(active[at].now))
        };
        let (mut free, mut at) = (Vec::new(), vec![0.0; size]);
        let likely = size as f64 + EXCEEDED * (2.0 * size as f64).sqrt();
        while self.is_contradicted && cost(&at) > likely {
            let mut best: Option<(f64, usize, Vec<f64>)> = None;
            for index in (0..size).filter(|&index| !free.contains(&index) && may_move(index)) {
                let tried: Vec<usize> = free.iter().copied().chain([index]).collect();
                let mut moved = at.clone();
                minimize(&self.precision, &linear, &bounds, &tried, &mut moved);
                let reached = cost(&moved);
                if best.as_ref().is_none_or(|(least, ..)| reached < *least) {
                    best = Some((reached, index, moved));
                }
            }
            match best {
                Some((reached, index, moved)) if reached < cost(&at) - CONTRADICTED => {
                    free.push(index);
                    at = moved;
                }
                _ => break,
            }
        }
        for (position, &index) in self.indices.iter().enumerate().filter(|(position, _)| free.contains(position)) {
            let value = &mut search.values[index];
            value.now = (value.now + at[position] * (value.high - value.low)).clamp(value.low, value.high).round();
        }
    }
}
