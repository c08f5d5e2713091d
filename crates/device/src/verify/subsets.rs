//! Subsets of the unflushed blocks that survive a cut. With few blocks, every subset is tried. Otherwise: all, none,
//! each block alone or missing, the newest act or a part of it, and random subsets of the blocks written since the
//! last flush.
//!
//! Invariants:
//! 1. The same choice on the same medium gives the same image.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

use crate::media::crashing::Crashing;
use crate::media::memory::Memory;

/// Largest number of unflushed blocks for which every subset is tried.
const BLOCKS_EXHAUSTED: u64 = 6;
/// Number of random subsets if there are more blocks.
const SUBSETS_DRAWN: usize = 64;

/// A subset of the blocks written since the last flush, which survives a power cut. Blocks are numbered from 0, in the
/// order in which they were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survivors {
    /// All blocks written since the last flush.
    All,
    /// All blocks of all write operations except the newest, and the first so many blocks of the newest.
    Newest(u64),
    /// The blocks whose bit is set in this mask; bit 0 is block 0, the block written first.
    These(u64),
    /// All blocks except the block of this number, counted from 0 in the order of writing.
    Without(u64),
    /// Only the block of this number, counted from 0 in the order of writing.
    Only(u64),
    /// A random subset: each block survives with a probability of `eighths` / 8.
    Drawn {
        /// Seed of the random choice.
        seed: u64,
        /// Probability in eighths, from 0 to 8.
        eighths: u64,
    },
}

impl Survivors {
    /// Returns whether this is [`Survivors::All`].
    pub fn is_whole(&self) -> bool {
        *self == Survivors::All
    }

    /// Returns the contents of `medium` after a power cut that these blocks survive. The medium itself is unchanged.
    pub fn cut(self, medium: &Crashing) -> Memory {
        let (last, mut number) = (medium.acts().saturating_sub(1), 0);
        let mut random = match self {
            Survivors::Drawn { seed, .. } => SplitMix64::seed_from_u64(seed),
            _ => SplitMix64::seed_from_u64(0),
        };
        medium.cut(|act, index| {
            let block = number;
            number += 1;
            match self {
                Survivors::All => true,
                Survivors::Newest(blocks) => act < last || index < blocks,
                Survivors::These(mask) => mask >> block & 1 == 1,
                Survivors::Without(missing) => block != missing,
                Survivors::Only(only) => block == only,
                Survivors::Drawn { eighths, .. } => random.next_u64() % 8 < eighths,
            }
        })
    }
}

/// Returns the subsets to try on `medium`: all subsets of at most six blocks; of more blocks, a selection that includes
/// random ones.
///
/// # Panics
/// If nothing was written since the last flush.
pub fn of(medium: &Crashing, random: &mut impl RngCore) -> Vec<Survivors> {
    let (blocks, newest) = (medium.blocks(), medium.blocks_of(medium.acts() - 1));
    if blocks <= BLOCKS_EXHAUSTED {
        return (0..1 << blocks).map(Survivors::These).collect();
    }
    let mut subsets = vec![Survivors::All, Survivors::Drawn { seed: 0, eighths: 0 }];
    subsets.extend((0..newest).map(Survivors::Newest));
    subsets.extend((0..blocks).map(Survivors::Without));
    subsets.extend((0..blocks).map(Survivors::Only));
    subsets.extend(
        (0..SUBSETS_DRAWN).map(|index| Survivors::Drawn { seed: random.next_u64(), eighths: [1, 4, 7][index % 3] }),
    );
    subsets
}
