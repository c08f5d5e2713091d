//! What the tests write: bytes that no drive can make smaller, the same at every run.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

/// Bytes to be written, as many as were ever asked for.
#[derive(Debug, Default)]
pub(super) struct Filler(Vec<u8>);

impl Filler {
    /// So many of them.
    pub fn bytes(&mut self, count: usize) -> &[u8] {
        if self.0.len() < count {
            self.0.resize(count, 0);
            fill(&mut self.0);
        }
        &self.0[..count]
    }
}

/// Fills `into` as [`Filler`] does.
pub(super) fn fill(into: &mut [u8]) {
    Xoshiro256StarStar::seed_from_u64(0x1b3e).fill_bytes(into);
}
