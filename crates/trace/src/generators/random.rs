//! The random numbers of generators: one stream for each phase, from the workload's seed.
//!
//! Invariants:
//! 1. A stream depends on the seed and its ordinal alone; streams of one seed are unrelated, and so are those of
//!    neighbouring seeds (the seed is mixed before the ordinal is added).
//! 2. Bounded draws use the high half of a 128-bit product: their bias is below `bound / 2^64`, far under what any
//!    simulated count can show.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::quantity::Share;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Stream(Xoshiro256PlusPlus);

/// The finaliser of SplitMix64: a bijection whose every output bit depends on every input bit.
pub(super) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Stream {
    /// Stream number `ordinal` of `seed`.
    pub fn new(seed: u64, ordinal: u64) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(seed).wrapping_add(ordinal)))
    }

    /// A number in `0..bound`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.0.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A number in `[0, 1)`, of 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether an event of this probability happens. The certain and the impossible cost no draw.
    #[inline]
    pub fn chance(&mut self, share: Share) -> bool {
        share == Share::ALL
            || (share != Share::NONE && self.below(Share::MILLIONTHS as u64) < share.millionths() as u64)
    }

    /// A waiting time of this mean, exponentially distributed, in whole nanoseconds.
    pub fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
        (-(1.0 - self.unit()).ln() * mean_ns).round() as u64
    }

    /// A standard normal deviate (Marsaglia's polar method; the second of the pair is not kept).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }
}
