//! Random choices of a load: equal seeds give equal choices.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Generator of random choices.
#[derive(Clone, Debug)]
pub struct Choices(Xoshiro256PlusPlus);

impl Choices {
    /// Returns a generator with this seed.
    pub fn new(seed: u64) -> Choices {
        Choices(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a number from 0 to `end` − 1. The probabilities differ by no more than 2⁻⁶⁴ of `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "nothing is below 0");
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns one of `weighted`, with a probability in proportion to its weight.
    pub fn weighted<T: Copy>(&mut self, weighted: &[(T, u64)]) -> T {
        let all: u64 = weighted.iter().map(|(_, weight)| weight).sum();
        let mut left = self.below(all);
        for (value, weight) in weighted {
            if left < *weight {
                return *value;
            }
            left -= weight;
        }
        unreachable!("the chosen number is below the sum of the weights")
    }

    /// Returns random bytes, which do not compress.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}
