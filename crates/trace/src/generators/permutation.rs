//! A seeded bijection of `0..count` onto itself in constant memory. It is a four-round Feistel network over the next
//! power of four, applied repeatedly until the value lies below `count` (cycle walking). It replaces fio's random map,
//! which takes one bit per block.
//!
//! Invariants:
//! 1. `apply` is a bijection of `0..count`. A Feistel network is a bijection for any round function, and cycle walking
//!    restricts a bijection to a subset.
//! 2. The network's domain is below four times `count` (for `count` over 1), so cycle walking takes fewer than four
//!    steps on average.

use super::random::mix;

const ROUNDS: usize = 4;

/// 2^64 over the golden ratio, made odd.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection of `0..count`.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Returns the bijection of `0..count` that belongs to `seed`.
    pub(super) fn new(count: u64, seed: u64) -> Permutation {
        assert!(count > 0, "a permutation of nothing");
        let bits = u64::BITS - (count - 1).leading_zeros();
        let keys = std::array::from_fn(|round| mix(seed ^ mix(round as u64)));
        Permutation { count, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// Returns the number of values that are permuted.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the image of `index`.
    #[inline]
    pub(super) fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.count, "index {index} of a permutation of {}", self.count);
        let mut value = index;
        loop {
            value = self.network(value);
            if value < self.count {
                return value;
            }
        }
    }

    #[inline]
    fn network(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            // The top bits of a product depend on all bits of its factors; the low bits do not.
            (left, right) = (right, left ^ ((right ^ key).wrapping_mul(ODD) >> (u64::BITS - self.half_bits)));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    //! Goal: each value occurs exactly once, without visible order. Method: a table of the values hit, for counts near
    //! powers of two and four, where cycle walking is longest and shortest.

    use super::*;

    #[test]
    fn each_value_comes_exactly_once() {
        for count in [1, 2, 3, 4, 5, 15, 16, 17, 255, 256, 257, 1000, 4097] {
            for seed in 0..3 {
                let permutation = Permutation::new(count, seed);
                let mut hit = vec![false; count as usize];
                for index in 0..count {
                    let value = permutation.apply(index);
                    assert!(!hit[value as usize], "{value} twice, count {count}, seed {seed}");
                    hit[value as usize] = true;
                }
            }
        }
    }

    #[test]
    fn neighbours_are_scattered_and_seeds_differ() {
        let (first, second) = (Permutation::new(100_000, 1), Permutation::new(100_000, 2));
        let adjacent = (1..100_000).filter(|&i| first.apply(i) == first.apply(i - 1) + 1).count();
        let same = (0..100_000).filter(|&i| first.apply(i) == second.apply(i)).count();
        // Both counts have expectation 1 under a random permutation. A Poisson variable of mean 1 exceeds 10 once in a
        // hundred million draws.
        assert!(adjacent <= 10, "{adjacent} neighbours stayed neighbours");
        assert!(same <= 10, "{same} values go to the same place under two seeds");
    }

    #[test]
    fn steps_between_neighbours_are_those_of_random_places() {
        for seed in 0..4 {
            let (count, steps) = (1u64 << 31, 100_000u64);
            let permutation = Permutation::new(count, seed);
            let step = |index| permutation.apply(index).abs_diff(permutation.apply(index + 1)) as f64 / count as f64;
            let mean = (0..steps).map(step).sum::<f64>() / steps as f64;
            // The distance of two uniform positions has mean 1/3 and variance 1/18. Neighbouring distances share a
            // position, which adds twice their covariance of 1/180.
            let error = ((1.0 / 18.0 + 2.0 / 180.0) / steps as f64).sqrt();
            assert!((mean - 1.0 / 3.0).abs() <= 5.0 * error, "mean step {mean}");
            let near = (0..steps).filter(|&index| step(index) < 0.01).count() as f64;
            let expected = steps as f64 * (1.0 - 0.99f64 * 0.99);
            assert!(
                (near - expected).abs() <= 5.0 * (2.0 * expected).sqrt(),
                "{near} short steps, expected {expected}"
            );
        }
    }
}
