//! File sizes as filebench draws them: gamma distributed with shape 1.5 (`cvar-gamma`, `gamma:1.5` in its
//! personalities).
//!
//! The distribution is stored as the means of 64 parts of equal probability, in thousandths of its mean. These are
//! integers, so the sizes are equal on all machines. The cumulative share has a closed form, with which the test
//! compares the table: P(x) = erf(√1.5x) − 2 √(1.5x/π) e^(−1.5x), for x in units of the mean.

use super::super::random::Choices;

const PARTS: [u64; 64] = [
    31, 69, 98, 125, 150, 174, 197, 220, 242, 264, 285, 307, 329, 350, 372, 393, 415, 437, 459, 481, 504, 526, 550,
    573, 597, 621, 645, 670, 695, 721, 748, 775, 803, 831, 860, 890, 921, 953, 985, 1019, 1054, 1091, 1129, 1168, 1209,
    1252, 1297, 1345, 1395, 1448, 1505, 1566, 1632, 1703, 1781, 1867, 1963, 2073, 2200, 2352, 2541, 2793, 3176, 4175,
];

/// Returns a random size in bytes, at least 1.
pub(super) fn gamma(choices: &mut Choices, mean: u64) -> u64 {
    let part = PARTS[choices.below(PARTS.len() as u64) as usize];
    (mean * part / 1000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns erf(x) by its series, which converges for every argument.
    fn erf(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        2.0 / std::f64::consts::PI.sqrt() * sum
    }

    fn share_below(x: f64) -> f64 {
        let t: f64 = 1.5 * x;
        erf(t.sqrt()) - 2.0 * (t / std::f64::consts::PI).sqrt() * (-t).exp()
    }

    #[test]
    fn each_part_lies_where_the_closed_form_has_it() {
        assert_eq!(PARTS.iter().sum::<u64>(), 64_000, "the mean is 1");
        for (number, part) in PARTS.iter().enumerate() {
            let share = share_below(*part as f64 / 1000.0) * 64.0;
            assert!(number as f64 <= share && share <= number as f64 + 1.0, "part {number}: {share}");
        }
    }
}
