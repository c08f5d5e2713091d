//! Computes which values of a profile are compatible with a measurement: samples of their posterior density.
//!
//! The model of one request: measured time = base + wait + error. The base depends linearly on the values
//! ([`mod@super::response`]). The wait is uniform over a rotation, of period T. The error is normal. Its variance is
//! the sum of σ², of the square of a share of the request's time, and of the variance of rounding to the clock's step.
//! A rounding bias of up to half a step is possible. A small share of requests has any time at all.
//!
//! The edges of the uniform density determine the base and T: without errors, to about T / n from n requests. Such an
//! estimate has no normal distribution, so the posterior density is sampled. Densities are flat in the values within
//! their ranges, and flat in the logarithms of T and of the parameters of the error.
//!
//! Invariants:
//! 1. Equal rows and values give equal samples.

use super::ensemble::{Random, Sample, samples};
use super::interval::Interval;
use super::linear::{bounded_least_squares, draw, gram};
use super::response::{Row, Wait};
use super::values::Value;

/// Number of parameters besides the values: σ, share, share of stray requests, rounding bias.
const OTHERS: usize = 4;

/// Seed of the samples.
const SEED: u64 = 0x1a7e_11ed;

/// Most requests that are used; of more, a part is used at equal steps.
const ROWS_MAX: usize = 3000;

/// Most samples of which the parameters of the error are tried at other values.
const TRIED_MAX: usize = 500;

/// The ranges of the logarithms of σ (ns), of the error's share of a request's time, and of the share of strays.
const LOGARITHMS: [(f64, f64); 3] = [(0.0, 16.0), (-12.0, -0.7), (-9.2, -1.2)];

/// The data and the ranges of the posterior density.
pub(super) struct Posterior {
    rows: Vec<Row>,
    /// The values that have slopes, and the rotation. The slopes in `rows` are in this order.
    active: Vec<Value>,
    /// Indices of `active` among all values.
    indices: Vec<usize>,
    /// Index of the rotation in `active`.
    rotation: usize,
    clock_step_ns: f64,
    /// Density in which stray requests lie, 1/ns.
    stray_density: f64,
    /// Factor of the logarithm of the likelihood, at most 1; less if the waits are not uniform.
    pub weight: f64,
}

impl Posterior {
    /// Returns the posterior of `values`, given `rows` with a slope for each of them. Returns `None` if fewer than 16
    /// requests have uniform waits, or if no value is the rotation.
    ///
    /// The range of the rotation becomes `period`, if phases determine one.
    pub(super) fn new(
        rows: &[Row],
        values: &[Value],
        clock_step_ns: u64,
        period: Option<Interval>,
    ) -> Option<Posterior> {
        let rotation = values.iter().position(Value::is_rotation)?;
        let uniform = rows.iter().filter(|row| row.wait == Wait::Uniform).count();
        if uniform < 16 {
            return None;
        }
        let stride = rows.len().div_ceil(ROWS_MAX);
        let has_slope = |index: usize| rows.iter().any(|row| row.slopes[index].abs() > 1e-9);
        let indices: Vec<usize> = (0..values.len()).filter(|&index| index == rotation || has_slope(index)).collect();
        let chosen =
            |row: &Row| Row { slopes: indices.iter().map(|&index| row.slopes[index]).collect(), ..row.clone() };
        let mut active: Vec<Value> = indices.iter().map(|&index| values[index].clone()).collect();
        for value in active.iter_mut().filter(|value| value.is_rotation()) {
            if let Some(period) = period {
                (value.low, value.high) = (period.low, period.high);
            }
        }
        let longest = rows.iter().map(|row| row.measured_ns).fold(0.0, f64::max);
        Some(Posterior {
            rows: rows.iter().step_by(stride).map(chosen).collect(),
            active,
            rotation: indices.iter().position(|&index| index == rotation)?,
            indices,
            clock_step_ns: clock_step_ns as f64,
            stray_density: 1.0 / (2.0 * longest.max(2e7)),
            weight: 1.0,
        })
    }

    /// Returns the values, with slopes or the rotation, that points consist of.
    pub(super) fn active(&self) -> &[Value] {
        &self.active
    }

    /// Returns the indices of [`Posterior::active`] among all values.
    pub(super) fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// Draws samples in `steps` steps. The first coordinates of a point are the active values.
    pub(super) fn samples(&self, steps: usize) -> Vec<Sample> {
        let mut random = Random(SEED);
        let walkers = self.walkers(&mut random);
        samples(&walkers, steps, &mut random, &|point| self.density(point))
    }

    /// Returns the standard deviations of the active values by least squares, with ranges as weak knowledge.
    pub(super) fn least_squares_deviations(&self, rotation_ns: f64) -> Vec<f64> {
        let gram = self.scaled_gram(rotation_ns);
        let inverse = super::linear::inverse_diagonal(&gram);
        let ranges = self.active.iter().map(|value| value.high - value.low);
        inverse.iter().zip(ranges).map(|(variance, range)| variance.sqrt() * range).collect()
    }

    /// Returns the greatest distance between the distribution of the waits at `point` and the uniform one, and the
    /// number of waits.
    pub(super) fn distance_from_uniform(&self, point: &[f64]) -> (f64, usize) {
        let mut places: Vec<f64> = self
            .rows
            .iter()
            .filter(|row| row.wait == Wait::Uniform)
            .map(|row| {
                let (late, low, high) = self.parts(row, point);
                let rotation = point[self.rotation];
                (low * ramp(late / low) - high * ramp((late - rotation) / high)) / rotation
            })
            .collect();
        places.sort_by(f64::total_cmp);
        let count = places.len();
        let apart = places.iter().enumerate().map(|(index, place)| {
            let (below, above) = (index as f64 / count as f64, (index + 1) as f64 / count as f64);
            (place - below).abs().max((above - place).abs())
        });
        (apart.fold(0.0, f64::max), count)
    }

    /// Returns the greatest logarithm of the density at the present active values, with the parameters of the
    /// error in any of `samples`, less the greatest of all samples.
    pub(super) fn density_at_present(&self, samples: &[Sample]) -> f64 {
        let present: Vec<f64> = self.active.iter().map(|value| value.now.clamp(value.low, value.high)).collect();
        let stride = samples.len().div_ceil(TRIED_MAX).max(1);
        let with = |sample: &Sample| {
            let others = &sample.point[self.active.len()..];
            self.density(&present.iter().chain(others).copied().collect::<Vec<f64>>())
        };
        let here = samples.iter().step_by(stride).map(with).fold(f64::NEG_INFINITY, f64::max);
        here - samples.iter().map(|sample| sample.density).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the logarithm of the density at `point`, but for a constant.
    fn density(&self, point: &[f64]) -> f64 {
        let (values, others) = point.split_at(self.active.len());
        let inside = |(at, value): (&f64, &Value)| (value.low..=value.high).contains(at);
        let bias_max = self.clock_step_ns / 2.0;
        if !values.iter().zip(&self.active).all(inside)
            || !others.iter().zip(&LOGARITHMS).all(|(at, (low, high))| (*low..=*high).contains(at))
            || others[3].abs() > bias_max
        {
            return f64::NEG_INFINITY;
        }
        let (rotation, strays) = (values[self.rotation], others[2].exp());
        let reference = self.active[self.rotation].high;
        let mut sum = 0.0;
        for row in &self.rows {
            let (late, low, high) = self.parts(row, point);
            let density = match row.wait {
                Wait::Zero => (-0.5 * (late / low).powi(2)).exp() / (low * std::f64::consts::TAU.sqrt()),
                Wait::Uniform => (normal(late / low) - normal((late - rotation) / high)).max(0.0) / rotation,
                Wait::Unknown => (normal(late / low) - normal((late - rotation) / high)).max(0.0) / reference,
            };
            sum += ((1.0 - strays) * density + strays * self.stray_density).ln();
        }
        self.weight * sum - rotation.ln()
    }

    /// Returns the wait of a request, with its error, and the standard deviations of the error at a wait of zero and of
    /// a rotation.
    fn parts(&self, row: &Row, point: &[f64]) -> (f64, f64, f64) {
        let (values, others) = point.split_at(self.active.len());
        let moves = values.iter().zip(&self.active).zip(&row.slopes);
        let moved: f64 = moves.map(|((at, value), slope)| slope * (at - value.now)).sum();
        let base = row.base_ns + moved;
        let constant = (2.0 * others[0]).exp() + self.clock_step_ns.powi(2) / 12.0;
        let share = others[1].exp();
        let deviation = |time: f64| (constant + (share * time).powi(2)).sqrt();
        (row.measured_ns - base - others[3], deviation(base), deviation(base + values[self.rotation]))
    }

    /// Returns the starts of the walkers: around the least squares fit within the ranges.
    fn walkers(&self, random: &mut Random) -> Vec<Vec<f64>> {
        let (mut centre, rotation_ns) = self.start();
        for (at, value) in centre.iter_mut().zip(&self.active) {
            let margin = (value.high - value.low) * 1e-3;
            *at = at.clamp(value.low + margin, value.high - margin);
        }
        let gram = self.scaled_gram(rotation_ns);
        let count = 4 * (self.active.len() + OTHERS);
        let mut walkers = Vec::with_capacity(count);
        for _ in 0..count {
            let mut move_by = draw(&gram, random);
            let range = |value: &Value| value.high - value.low;
            let turning = &self.active[self.rotation];
            let (low, high) = (turning.low.max(0.8 * rotation_ns), turning.high.min(1.1 * rotation_ns));
            move_by[self.rotation] = (low + random.uniform() * (high - low) - centre[self.rotation]) / range(turning);
            let mut share = 1.0;
            let mut point: Vec<f64>;
            loop {
                let moved = centre.iter().zip(&move_by).zip(&self.active);
                point = moved.clone().map(|((at, by), value)| at + share * by * range(value)).collect();
                let inside = |(at, value): (&f64, &Value)| (value.low..=value.high).contains(at);
                if point.iter().zip(&self.active).all(inside) {
                    break;
                }
                share *= 0.8;
            }
            point.push(7.0 + 6.0 * random.uniform());
            point.push(-7.0 + 5.0 * random.uniform());
            point.push(-7.0 + 4.0 * random.uniform());
            point.push(self.clock_step_ns * (random.uniform() - 0.5));
            walkers.push(point);
        }
        walkers
    }

    /// Returns the values of a least squares fit within the ranges, and the period of rotation that has the variance of
    /// the remaining differences.
    fn start(&self) -> (Vec<f64>, f64) {
        let value = &self.active[self.rotation];
        let mut rotation_ns = value.now.clamp(value.low, value.high);
        let mut at: Vec<f64> = self.active.iter().map(|value| value.now).collect();
        for _ in 0..6 {
            let lateness = |row: &Row| match row.wait {
                Wait::Zero => row.measured_ns - row.base_ns,
                _ => row.measured_ns - row.base_ns - rotation_ns / 2.0,
            };
            at = bounded_least_squares(&self.rows, &self.active, self.rotation, &lateness);
            let mut left: Vec<f64> = self
                .rows
                .iter()
                .filter(|row| row.wait == Wait::Uniform)
                .map(|row| {
                    let moves = at.iter().zip(&self.active).zip(&row.slopes);
                    lateness(row) - moves.map(|((at, value), slope)| slope * (at - value.now)).sum::<f64>()
                })
                .collect();
            left.sort_by(f64::total_cmp);
            // Half of a uniform density lies between its quartiles, and strays beyond them have no weight.
            let quartiles = left[left.len() * 3 / 4] - left[left.len() / 4];
            rotation_ns = (2.0 * quartiles).clamp(value.low, value.high);
        }
        at[self.rotation] = rotation_ns;
        (at, rotation_ns)
    }

    /// Returns the precision of the active values by least squares, each in units of its range.
    fn scaled_gram(&self, rotation_ns: f64) -> Vec<Vec<f64>> {
        let variance = rotation_ns.powi(2) / 12.0;
        let mut gram = gram(&self.rows, &self.active);
        for (index, row) in gram.iter_mut().enumerate() {
            row.iter_mut().for_each(|entry| *entry /= variance);
            row[index] += 12.0;
        }
        gram
    }
}

/// Returns the integral of [`normal`] from negative infinity to `at`.
fn ramp(at: f64) -> f64 {
    at * normal(at) + (-0.5 * at * at).exp() / std::f64::consts::TAU.sqrt()
}

/// Returns the distribution function of the standard normal distribution, to about 1e-7 (Abramowitz and Stegun 1964,
/// 26.2.17).
fn normal(at: f64) -> f64 {
    if at.abs() > 6.0 {
        return if at > 0.0 { 1.0 } else { 0.0 };
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * at.abs());
    let sum =
        t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = sum * (-0.5 * at * at).exp() / std::f64::consts::TAU.sqrt();
    if at > 0.0 { 1.0 - tail } else { tail }
}
