//! Compares two sets of service times by the demerit figure of Ruemmler and Wilkes (1994, "An introduction to disk
//! drive modeling"): the root mean square of the horizontal distance between the two cumulative distributions.
//!
//! Invariants:
//! 1. A set compared with itself has the figure 0.
//! 2. The figure does not depend on the order of the times.

use serde::Serialize;

/// Comparison of the distributions of measured and simulated service times of requests.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Number of the measured service times.
    pub requests: u64,
    /// Mean of the measured service times, in nanoseconds, rounded down.
    pub mean_measured_ns: u64,
    /// Mean of the simulated service times, in nanoseconds, rounded down.
    pub mean_simulated_ns: u64,
    /// Demerit figure (Ruemmler and Wilkes 1994), in nanoseconds: the root mean square of the horizontal distance
    /// between the cumulative distributions of the measured and the simulated service times. 0 if they are equal.
    pub rms_ns: u64,
    /// Demerit figure (root mean square distance of the measured and simulated distributions) as a fraction of the mean
    /// of the measured service times: 0.05 is 5 %.
    pub rms_share: f64,
}

/// Compares the distributions of two sets of times in nanoseconds, which may differ in number: their means and the
/// demerit figure, the root mean square of the horizontal distance of the distributions. Sorts both slices. Returns
/// `None` if either is empty.
pub fn compare(measured_ns: &mut [u64], simulated_ns: &mut [u64]) -> Option<Comparison> {
    if measured_ns.is_empty() || simulated_ns.is_empty() {
        return None;
    }
    measured_ns.sort_unstable();
    simulated_ns.sort_unstable();
    let mean = |times: &[u64]| (times.iter().map(|&ns| ns as u128).sum::<u128>() / times.len() as u128) as u64;
    let count = measured_ns.len().max(simulated_ns.len());
    let squares: f64 = (0..count)
        .map(|index| {
            let distance = quantile(measured_ns, index, count) as f64 - quantile(simulated_ns, index, count) as f64;
            distance * distance
        })
        .sum();
    let rms = (squares / count as f64).sqrt();
    let mean_measured_ns = mean(measured_ns);
    Some(Comparison {
        requests: measured_ns.len() as u64,
        mean_measured_ns,
        mean_simulated_ns: mean(simulated_ns),
        rms_ns: rms.round() as u64,
        rms_share: rms / (mean_measured_ns as f64).max(1.0),
    })
}

/// Returns the time at step `index` of `count` equal steps through the sorted `times`.
fn quantile(times: &[u64], index: usize, count: usize) -> u64 {
    times[(index * times.len() / count).min(times.len() - 1)]
}
