//! The random numbers of generators: each phase has its own stream, derived from the workload's seed.
//!
//! Invariants:
//! 1. A stream depends only on the seed and its ordinal. Streams of one seed are unrelated, and so are streams of
//!    neighbouring seeds, because the seed is mixed before the ordinal is added.
//! 2. Bounded draws use the high half of a 128-bit product. Their bias is below `bound / 2^64`, far too small to see in
//!    any simulated count.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::quantity::Share;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Stream(Xoshiro256PlusPlus);

/// Mixes the bits of `value` with the finaliser of SplitMix64: a bijection in which every output bit depends on every
/// input bit.
pub(super) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Stream {
    /// Returns stream number `ordinal` of `seed`.
    pub(super) fn new(seed: u64, ordinal: u64) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(seed).wrapping_add(ordinal)))
    }

    /// Draws a number in `0..bound`.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((self.0.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Draws a number in `[0, 1)`, with 53 bits.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws whether an event of this probability happens. Probabilities 0 and 1 consume no random number.
    #[inline]
    pub(super) fn chance(&mut self, share: Share) -> bool {
        share == Share::ALL
            || (share != Share::NONE && self.below(Share::MILLIONTHS as u64) < share.millionths() as u64)
    }

    /// Draws an exponentially distributed waiting time with this mean, in whole nanoseconds.
    pub(super) fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        (-(1.0 - self.unit()).ln() * mean_ns).round() as u64
    }

    /// Draws a standard normal deviate. The method is Marsaglia's polar method; the second number of each pair is
    /// discarded.
    pub(super) fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }
}
