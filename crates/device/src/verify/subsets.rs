//! Which blocks of a cut medium survive: all, none, each one alone or missing, the newest act or a part of it, and subsets
//! at random of all that was written since the last flush. Where there are few blocks, every subset.
//!
//! Invariants:
//! 1. The same choice of the same medium leaves the same image.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

use crate::media::crashing::Crashing;
use crate::media::memory::Memory;

/// Unflushed blocks of which every subset is tried.
const BLOCKS_EXHAUSTED: u64 = 6;
/// Subsets drawn of more.
const SUBSETS_DRAWN: usize = 64;

/// A subset of the blocks written since the last flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survivors {
    /// All of them.
    All,
    /// Those of the acts before the newest, and so many of the newest.
    Newest(u64),
    /// Those whose bit is set, in order over all acts.
    These(u64),
    /// All but this one.
    Without(u64),
    /// This one alone.
    Only(u64),
    /// Each by chance, so many times in eight.
    Drawn {
        /// What the chances are drawn from.
        seed: u64,
        /// Chances in eight.
        eighths: u64,
    },
}

impl Survivors {
    /// Whether nothing is lost.
    pub fn is_whole(&self) -> bool {
        *self == Survivors::All
    }

    /// What the cut leaves of `medium`.
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

/// The subsets to try of `medium`, on which something was written since the last flush.
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
