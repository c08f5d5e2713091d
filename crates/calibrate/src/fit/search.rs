//! The search changes one value after the other, in steps that grow while they help and shrink while they do not.
//!
//! Invariants:
//! 1. No part of a search increases the loss that it minimizes, over the requests that it uses.
//! 2. Equal measurements and profiles give equal results: nothing is random.

use imbrex_disk::Profile;
use serde::Serialize;

use super::error::FitError;
use super::interval::Interval;
use super::judge::{Judged, Measure, Part, judge};
use super::values::{Value, overrides};
use crate::measured::Measured;

/// Factor below which a step must reduce the loss: less is chance.
const WORTH: f64 = 0.999;

/// A change is kept if the loss over the held-out requests would grow by this factor without it.
const KEPT: f64 = 1.02;

/// A value of a profile that a fit could change, before and after the fit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fitted {
    /// Key of the value in the profile, such as `mechanics.settle_ns`. For a table of seeks, followed by the distance
    /// in cylinders at which the value is an offset.
    pub key: String,
    /// Value in the profile before the fit, in the unit of the key, mostly nanoseconds; a default of the fit if the
    /// profile lacks the key, and 0 for an offset of a table of seeks.
    pub before: f64,
    /// Value that the fit found, in the unit of the key. Equal to the value before if the fit did not change it.
    pub after: f64,
    /// Low end of the 95 % interval, in the unit of the key: about 95 of 100 such intervals contain the true value. `None` if the
    /// measurement does not determine the value.
    pub low: Option<f64>,
    /// High end of the 95 % interval, in the unit of the key; `None` like `low`.
    pub high: Option<f64>,
    /// Distance from `after` to the end of the interval that is farther away, in the unit of the key; `None` like `low`.
    pub within: Option<f64>,
}

/// A set of values during a search.
#[derive(Clone)]
pub(super) struct Search<'a> {
    pub profile: &'a Profile,
    pub base: &'a toml::Table,
    pub measured: &'a Measured,
    pub values: Vec<Value>,
}

impl Search<'_> {
    /// Replays the measurement on the profile with the present values.
    pub(super) fn judge(&self) -> Result<Judged, FitError> {
        judge(&self.fitted()?, self.measured)
    }

    /// Returns the profile with the present values.
    pub(super) fn fitted(&self) -> Result<Profile, FitError> {
        Ok(self.profile.with(&self.overrides())?)
    }

    /// Returns the overrides that set the present values in the profile.
    pub(super) fn overrides(&self) -> Vec<(String, String)> {
        overrides(&self.values, self.base)
    }

    /// Changes the values of `indices` for `rounds` rounds; calls `progress` in each.
    pub(super) fn run(
        &mut self,
        (measure, part): (Measure, Part),
        indices: &[usize],
        rounds: usize,
        progress: &mut dyn FnMut(),
    ) -> Result<(), FitError> {
        let mut best = self.loss(measure, part)?;
        for _ in 0..rounds {
            progress();
            for &index in indices {
                best = self.improve(index, best, measure, part)?;
            }
        }
        Ok(())
    }

    /// Reverts, one after the other, the changes that the held-out requests do not confirm.
    pub(super) fn prune(&mut self, measure: Measure) -> Result<(), FitError> {
        let mut now = self.loss(measure, Part::HeldOut)?;
        loop {
            let mut least: Option<(f64, usize)> = None;
            for index in self.changed() {
                let now = self.values[index].now;
                self.values[index].now = self.values[index].before;
                let without = self.loss(measure, Part::HeldOut)?;
                self.values[index].now = now;
                if least.is_none_or(|(so_far, _)| without < so_far) {
                    least = Some((without, index));
                }
            }
            match least {
                Some((without, index)) if without < now * KEPT => {
                    self.values[index].now = self.values[index].before;
                    now = without;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Resets the step of every value to that in `start`.
    pub(super) fn renew_steps(&mut self, start: &Search<'_>) {
        for (value, first) in self.values.iter_mut().zip(&start.values) {
            value.step = first.step;
        }
    }

    /// Returns all values, before and after, with their `intervals`, which are extended to the values after.
    pub(super) fn fitted_values(&self, intervals: &[Option<Interval>]) -> Vec<Fitted> {
        let fitted = |(value, interval): (&Value, &Option<Interval>)| {
            let whole = interval.map(|interval| interval.with(value.now));
            Fitted {
                key: value.name(),
                before: value.before,
                after: value.now,
                low: whole.map(|interval| interval.low),
                high: whole.map(|interval| interval.high),
                within: whole.map(|interval| interval.distance_from(value.now)),
            }
        };
        self.values.iter().zip(intervals).map(fitted).collect()
    }

    /// Returns the indices of the values that differ from the profile.
    pub(super) fn changed(&self) -> Vec<usize> {
        (0..self.values.len()).filter(|&index| self.values[index].now != self.values[index].before).collect()
    }

    /// Returns whether all values are those of `other`.
    pub(super) fn has_values_of(&self, other: &Search<'_>) -> bool {
        self.values.iter().zip(&other.values).all(|(value, other)| value.now == other.now)
    }

    /// Returns the loss with the present values; infinity if they give no valid profile.
    pub(super) fn loss(&self, measure: Measure, part: Part) -> Result<f64, FitError> {
        match self.judge() {
            Ok(judged) => Ok(judged.loss(measure, part)),
            Err(FitError::Profile(_)) => Ok(f64::INFINITY),
            Err(error) => Err(error),
        }
    }

    /// Moves value `index` by a step if that helps. Returns the loss afterwards.
    fn improve(&mut self, index: usize, best: f64, measure: Measure, part: Part) -> Result<f64, FitError> {
        let start = self.values[index].now;
        let step = self.values[index].step;
        for direction in [1.0, -1.0] {
            let tried = (start + direction * step).clamp(self.values[index].low, self.values[index].high);
            if tried == start {
                continue;
            }
            self.values[index].now = tried;
            let number = self.loss(measure, part)?;
            if number < best * WORTH {
                self.values[index].step = step * 1.5;
                return Ok(number);
            }
        }
        self.values[index].now = start;
        self.values[index].step = (step / 2.0).max(1.0);
        Ok(best)
    }
}
