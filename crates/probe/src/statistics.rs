//! Statistics for the inference. No threshold here is a time: all are shares of measured values.

/// Returns the quantile `share` (0 to 1) of `values`, which need not be sorted: the value at index `share` · (n - 1) of
/// the n sorted values, where the index is rounded. 0 gives the smallest value, and 1 the largest.
///
/// # Panics
///
/// If `values` is empty, or the index is beyond the last value, because `share` is above 1.
pub fn quantile(values: &[u64], share: f64) -> u64 {
    assert!(!values.is_empty(), "no values have no quantile");
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// Returns the median of `values`; of an even number of values, the upper of the two in the middle.
///
/// # Panics
///
/// If `values` is empty.
pub fn median(values: &[u64]) -> u64 {
    quantile(values, 0.5)
}

/// Returns the median of floating-point `values`; of an even number of values, the upper of the two in the middle.
///
/// # Panics
///
/// If `values` is empty.
pub fn middle(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "no values have no middle");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The densest group of values, found by [`mode`]: of all ranges of a given relative width, the one that holds most
/// values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mode {
    /// Median of the values in the densest range; of an even number, the lower of the two in the middle.
    pub center: u64,
    /// Fraction of all values that lie in the densest range: above 0, at most 1.
    pub share: f64,
}

/// Returns the range of relative width `width` that holds most of `values`. All values of a range differ from its
/// largest value by at most `width` times that value: 0.1 means about ±5 %. Of several such ranges, the one with the
/// smallest values is returned.
///
/// # Panics
///
/// If `values` is empty.
pub fn mode(values: &[u64], width: f64) -> Mode {
    assert!(!values.is_empty(), "no values have no mode");
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let (mut best, mut first) = ((0, 0), 0);
    for last in 0..sorted.len() {
        while (sorted[last] - sorted[first]) as f64 > width * sorted[last] as f64 {
            first += 1;
        }
        if last + 1 - first > best.1 - best.0 {
            best = (first, last + 1);
        }
    }
    let center = sorted[(best.0 + best.1 - 1) / 2];
    Mode { center, share: (best.1 - best.0) as f64 / sorted.len() as f64 }
}

/// Returns how closely `values` lie at one phase of `period`, which must not be 0: 1 if all differ by whole periods,
/// near 0 if their phases are spread evenly. It is the length of the mean of unit vectors at the phases.
///
/// # Panics
///
/// If `values` is empty.
pub fn coherence(values: &[f64], period: f64) -> f64 {
    assert!(!values.is_empty(), "no values have no phase");
    let phases = values.iter().map(|value| (value / period).fract() * std::f64::consts::TAU);
    let (sines, cosines) =
        phases.fold((0.0, 0.0), |(sines, cosines), phase| (sines + phase.sin(), cosines + phase.cos()));
    f64::hypot(sines, cosines) / values.len() as f64
}

/// Returns the signed distance of `value` from the nearest multiple of `period`: from -`period` / 2 to `period` / 2.
/// Halfway between two multiples, it is positive. `period` must be positive.
///
/// # Panics
///
/// If `period` is 0.
pub fn around(value: i64, period: i64) -> i64 {
    let rest = value.rem_euclid(period);
    if rest > period / 2 { rest - period } else { rest }
}

/// Returns the index ranges of the runs of set flags, in order, with exclusive ends. At most `gap` unset flags in a row
/// do not end a run. Each run begins and ends with a set flag.
pub fn runs(flags: &[bool], gap: usize) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for index in (0..flags.len()).filter(|&index| flags[index]) {
        match runs.last_mut() {
            Some(run) if index <= run.end + gap => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// Returns the index that best divides `flags` into unset ones before it and set ones from it on, and the weight of the
/// flags that contradict this division. A contradicting flag counts 1, or 3 if it equals `certain`, because such a flag
/// is not due to chance. Of equally good indices, the smallest is returned; it may be `flags.len()`.
pub fn change(flags: &[bool], certain: bool) -> (usize, usize) {
    let weight = |flag: bool| if flag == certain { 3 } else { 1 };
    let contradict = |from: usize| {
        let wrong = flags.iter().enumerate().filter(|(index, flag)| (*index >= from) != **flag);
        wrong.map(|(_, flag)| weight(*flag)).sum()
    };
    (0..=flags.len()).map(|from| (from, contradict(from))).min_by_key(|found| found.1).unwrap_or((0, 0))
}

/// Returns whether two numbers differ by at most the fraction `share` of the one with the greater absolute value.
pub fn is_near(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * one.abs().max(other.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_densest_band_is_found() {
        let fixed: Vec<u64> = (0..100).map(|index| if index % 10 == 0 { 325_000 } else { 25_000 + index }).collect();
        let found = mode(&fixed, 0.1);
        assert!((0.89..0.91).contains(&found.share) && (25_000..25_100).contains(&found.center), "{found:?}");
        // Uniform over a rotation: a range as wide as a tenth of its upper end holds little more than a tenth of the
        // values.
        let uniform: Vec<u64> = (1..=1000).map(|index| index * 10).collect();
        assert!(mode(&uniform, 0.1).share < 0.11);
    }

    #[test]
    fn times_at_one_phase_are_coherent() {
        assert!(coherence(&[3.0, 13.0, 43.0, 83.0], 10.0) > 0.999);
        assert!(coherence(&[0.0, 2.5, 5.0, 7.5], 10.0) < 0.001);
        // Delays of up to a fifth of a period blur the phase only a little.
        let late: Vec<f64> =
            (0..100).map(|index| f64::from(index) * 10.0 + f64::from(index * 37 % 20) / 10.0).collect();
        assert!((0.9..0.96).contains(&coherence(&late, 10.0)));
    }

    #[test]
    fn outliers_leave_the_middle_alone() {
        let mut values = vec![10; 99];
        values.push(1_000_000);
        assert_eq!((median(&values), quantile(&values, 1.0)), (10, 1_000_000));
        assert_eq!(middle(&[1.0, 9e9, 2.0]), 2.0);
    }

    #[test]
    fn phases_are_told_from_the_nearest_pass() {
        assert_eq!([around(12, 10), around(-1, 10), around(29, 10), around(5, 10)], [2, -1, -1, 5]);
    }

    #[test]
    fn runs_go_on_over_small_gaps() {
        let flags: Vec<bool> = ".##.###...##.#".chars().map(|flag| flag == '#').collect();
        assert_eq!(runs(&flags, 1), [1..7, 10..14]);
        assert_eq!(runs(&flags, 0), [1..3, 4..7, 10..12, 13..14]);
    }

    #[test]
    fn a_change_is_where_fewest_contradict() {
        assert_eq!(change(&[false, true, false, true, true, true], true), (1, 1));
        assert_eq!(change(&[false, true, false, true, true, true], false), (3, 1));
        assert_eq!((change(&[true, true], true), change(&[false, false], true)), ((0, 0), (2, 0)));
    }
}
