//! Mean of a figure over runs with different seeds, and its 95 % confidence interval.

use serde::{Deserialize, Serialize};

/// Quantiles 0.975 of Student's t distribution for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Mean of a figure over at least two runs that differ in the seed of the workload, with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Arithmetic mean of the figure over the runs, in the unit of the figure.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean, in the unit of the figure. The interval is `mean`
    /// ± `half_width_95`. It is computed with Student's t distribution, so it assumes that the figure is normally
    /// distributed over the seeds.
    pub half_width_95: f64,
    /// Least value of the figure in any of the runs.
    pub min: f64,
    /// Greatest value of the figure in any of the runs.
    pub max: f64,
}

impl Estimate {
    /// Returns the mean and the interval of `values`, the figure of each run. Returns `None` if there are fewer than
    /// two values.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        if values.len() < 2 {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        Some(Estimate {
            mean,
            half_width_95: quantile(values.len() - 1) * deviation / count.sqrt(),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// Returns whether the figure had one value in all runs.
    pub fn is_constant(&self) -> bool {
        self.min == self.max
    }
}

/// Returns the quantile 0.975 of Student's t distribution, within 0.001.
fn quantile(freedom: usize) -> f64 {
    match QUANTILES.get(freedom - 1) {
        Some(&quantile) => quantile,
        // The expansion for many degrees of freedom: the normal quantile z, plus (z³ + z) / 4ν, plus a term in 1 / ν².
        None => {
            let (z, freedom) = (1.959_964_f64, freedom as f64);
            z + (z.powi(3) + z) / (4.0 * freedom)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom.powi(2))
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the interval contains the true mean in 95 % of all cases. Method: closed forms, and samples of a known
    //! distribution.

    use super::*;

    /// For one degree of freedom the quantile is tan(0.475 π), for two it is 0.95 · √(2 / (4 · 0.975 · 0.025)).
    #[test]
    fn quantiles_are_those_of_the_closed_forms() {
        assert!((quantile(1) - (0.475 * std::f64::consts::PI).tan()).abs() < 0.001);
        assert!((quantile(2) - 0.95 * (2.0 / (4.0 * 0.975 * 0.025_f64)).sqrt()).abs() < 0.001);
        // Between the last entry of the table and 1.980, the value for 120 degrees in textbooks.
        assert!((quantile(31) - 2.0395).abs() < 0.001 && (quantile(120) - 1.980).abs() < 0.001);
    }

    #[test]
    fn one_value_has_no_interval_and_equal_values_have_one_of_width_zero() {
        assert_eq!(Estimate::of(&[3.0]), None);
        assert_eq!(Estimate::of(&[3.0, 3.0]), Some(Estimate { mean: 3.0, half_width_95: 0.0, min: 3.0, max: 3.0 }));
    }

    /// The sum of twelve uniform numbers has a nearly normal distribution with mean 6.
    #[test]
    fn nineteen_of_twenty_intervals_contain_the_truth() {
        // Knuth's 64-bit linear congruential generator; its high bits are used.
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as f64 / 2_f64.powi(32)
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>();
        for count in [2, 3, 5, 10, 40] {
            let holds = |_: &u32| {
                let values: Vec<f64> = (0..count).map(|_| normal()).collect();
                let estimate = Estimate::of(&values).expect("two or more");
                (estimate.mean - 6.0).abs() <= estimate.half_width_95
            };
            let held = (0..4000).filter(holds).count();
            // 3,800 are expected; the standard deviation is 14.
            assert!((3740..=3860).contains(&held), "{held} of 4000 with {count} values");
        }
    }
}
