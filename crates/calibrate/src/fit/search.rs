//! The search: one value after the other, in steps that grow while they help and shrink while they do not.
//!
//! Invariants:
//! 1. No part of a search makes the number that it makes small larger on the requests it counts.
//! 2. The same measurement and profile give the same result: nothing is drawn.

use imbrex_disk::Profile;
use serde::Serialize;

use super::error::FitError;
use super::judge::{Judged, Measure, Part, judge};
use super::values::{Value, overrides};
use crate::measured::Measured;

/// A step is taken where the number falls by this much at least: less is chance.
const WORTH: f64 = 0.999;

/// A change is kept where the number over what was held out would be this much larger without it.
const KEPT: f64 = 1.02;

/// A value counts as determined where moving it makes the figure this much larger, and its square by that squared.
const RISE: f64 = 1.05;

/// A value that was fitted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fitted {
    /// The key in the profile; of a table of seeks, with the distance.
    pub key: String,
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// How far it can be moved until the figure is a twentieth larger; none where nothing shows it.
    pub within: Option<f64>,
}

/// Values on their way to what a measurement says.
#[derive(Clone)]
pub(super) struct Search<'a> {
    pub profile: &'a Profile,
    pub base: &'a toml::Table,
    pub measured: &'a Measured,
    pub values: Vec<Value>,
}

impl Search<'_> {
    /// What the profile makes of the measurement with the values as they are.
    pub fn judge(&self) -> Result<Judged, FitError> {
        judge(&self.fitted()?, self.measured)
    }

    /// The profile with the values.
    pub fn fitted(&self) -> Result<Profile, FitError> {
        Ok(self.profile.with(&self.overrides())?)
    }

    /// What the values set.
    pub fn overrides(&self) -> Vec<(String, String)> {
        overrides(&self.values, self.base)
    }

    /// Goes along the values of `indices` for `rounds` rounds; `progress` is told of each.
    pub fn run(
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

    /// Takes back, one after the other, the changes that what was held out does not bear out.
    pub fn prune(&mut self, measure: Measure) -> Result<(), FitError> {
        let mut now = self.loss(measure, Part::HeldOut)?;
        loop {
            let mut least: Option<(f64, usize)> = None;
            for index in self.changed() {
                let kept = self.values[index].now;
                self.values[index].now = self.values[index].before;
                let without = self.loss(measure, Part::HeldOut)?;
                self.values[index].now = kept;
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

    /// Gives every value the step that `start` has for it.
    pub fn renew_steps(&mut self, start: &Search<'_>) {
        for (value, first) in self.values.iter_mut().zip(&start.values) {
            value.step = first.step;
        }
    }

    /// What was fitted, and how well each value is determined.
    pub fn fitted_values(&mut self, measure: Measure) -> Result<Vec<Fitted>, FitError> {
        let count = self.values.len();
        let mut fitted = |index| {
            let within = self.within(index, measure)?;
            let value = &self.values[index];
            Ok(Fitted { key: value.name(), before: value.before, after: value.now, within })
        };
        (0..count).map(&mut fitted).collect()
    }

    /// The values that are no longer what the profile has.
    pub fn changed(&self) -> Vec<usize> {
        (0..self.values.len()).filter(|&index| self.values[index].now != self.values[index].before).collect()
    }

    /// The number with the values as they are; infinite where no such drive can be built.
    fn loss(&self, measure: Measure, part: Part) -> Result<f64, FitError> {
        match self.judge() {
            Ok(judged) => Ok(judged.loss(measure, part)),
            Err(FitError::Profile(_)) => Ok(f64::INFINITY),
            Err(error) => Err(error),
        }
    }

    /// Moves value `index` to where it helps. Returns the number that the search makes small, as it is then.
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

    /// How far value `index` can be moved until the figure is a twentieth larger; none where nothing shows it.
    fn within(&mut self, index: usize, measure: Measure) -> Result<Option<f64>, FitError> {
        let value = self.values[index].clone();
        let limit = self.loss(measure, Part::All)? * RISE * RISE;
        let mut width = (value.high - value.low) / 4096.0;
        while width < value.high - value.low {
            let mut rises = true;
            for direction in [1.0, -1.0] {
                let moved = value.now + direction * width;
                if (value.low..=value.high).contains(&moved) {
                    self.values[index].now = moved;
                    rises &= self.loss(measure, Part::All)? > limit;
                }
            }
            self.values[index].now = value.now;
            if rises {
                return Ok(Some(width));
            }
            width *= 2.0;
        }
        Ok(None)
    }
}
