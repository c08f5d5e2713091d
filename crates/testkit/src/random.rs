//! Random numbers from a seed: SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
//!
//! Invariants:
//! 1. One seed gives one sequence of numbers, on every machine.

/// A SplitMix64 generator of 64-bit pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the generator with this seed; equal seeds give equal sequences.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next number, of 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a random number from 0 up to, not including, `bound`.
    ///
    /// # Panics
    ///
    /// Panics if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns true with a probability of 1 in `share`; never if `share` is 0.
    pub fn one_in(&mut self, share: u64) -> bool {
        share > 0 && self.below(share) == 0
    }
}

/// Returns a hash of a number: the one-to-one finalizer of SplitMix64, in which each bit of the input affects all bits
/// of the result.
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
