//! Random choices of a load: equal seeds give equal choices.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Pseudo-random generator for the choices of a load.
#[derive(Clone, Debug)]
pub struct Choices(Xoshiro256PlusPlus);

impl Choices {
    /// Returns a generator with this seed. Equal seeds give equal choices.
    pub fn new(seed: u64) -> Choices {
        Choices(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a random number from 0 to `end` − 1. The probabilities of any two of them differ by at most 2⁻⁶⁴.
    ///
    /// # Panics
    /// `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "nothing is below 0");
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Returns a random value of `weighted`, a list of pairs of a value and its weight. The probability of a value is
    /// its weight divided by the sum of all weights.
    ///
    /// # Panics
    /// All weights are 0, or the list is empty.
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

    /// Returns `length` random bytes, which no program can compress.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}
