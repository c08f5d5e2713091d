//! Small statistics that the inference rests on. No threshold here is a time: all are shares of what was measured.

/// The value below which a share of `values` lies.
pub fn quantile(values: &[u64], share: f64) -> u64 {
    assert!(!values.is_empty(), "no values have no quantile");
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// The middle value.
pub fn median(values: &[u64]) -> u64 {
    quantile(values, 0.5)
}

/// The mean of `values` without the largest and smallest twentieth: outliers of a noisy host do not count.
pub fn trimmed_mean(values: &[u64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let cut = sorted.len() / 20;
    let kept = &sorted[cut..sorted.len() - cut];
    kept.iter().sum::<u64>() as f64 / kept.len() as f64
}

/// The densest narrow band of values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mode {
    /// Its middle.
    pub center: u64,
    /// The share of all values in it.
    pub share: f64,
}

/// The band of relative width `width` (0.1: ±5 %) that holds most values.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_densest_band_is_found() {
        let fixed: Vec<u64> = (0..100).map(|index| if index % 10 == 0 { 325_000 } else { 25_000 + index }).collect();
        let found = mode(&fixed, 0.1);
        assert!((0.89..0.91).contains(&found.share) && (25_000..25_100).contains(&found.center), "{found:?}");
        // Uniform over a rotation: a band of a tenth of its upper end holds no more than a tenth and a bit.
        let uniform: Vec<u64> = (1..=1000).map(|index| index * 10).collect();
        assert!(mode(&uniform, 0.1).share < 0.11);
    }

    #[test]
    fn outliers_leave_the_trimmed_mean_alone() {
        let mut values = vec![10; 99];
        values.push(1_000_000);
        assert_eq!(trimmed_mean(&values), 10.0);
        assert_eq!((median(&values), quantile(&values, 1.0)), (10, 1_000_000));
    }
}
