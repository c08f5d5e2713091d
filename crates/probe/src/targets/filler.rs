//! Generates the data that the tests write: bytes that no drive can compress, equal in every run.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

/// Buffer of data to write, as long as the longest request for data so far.
#[derive(Debug, Default)]
pub(super) struct Filler(Vec<u8>);

impl Filler {
    /// Returns the first `count` bytes of the data.
    pub(super) fn bytes(&mut self, count: usize) -> &[u8] {
        if self.0.len() < count {
            self.0.resize(count, 0);
            fill(&mut self.0);
        }
        &self.0[..count]
    }
}

/// Fills `into` with the data of a [`Filler`].
pub(super) fn fill(into: &mut [u8]) {
    Xoshiro256StarStar::seed_from_u64(0x1b3e).fill_bytes(into);
}
