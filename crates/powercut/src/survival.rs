//! The choice of the versions that survive a power cut.

use std::fmt;

use imbrex_testkit::Random;

use crate::log::FileId;

/// A unit of a disk that has several versions, of which a power cut leaves one: version 0 is the durable one, higher
/// versions are later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// An aligned block of a file: number of the file in the log, and number of the block in the file, from 0. The
    /// replay sets the size of a block.
    Block(FileId, u64),
    /// The length of the file of this number in the log.
    Len(FileId),
    /// One atomic change of file names that is not durable. The number counts these changes from 0, oldest first.
    Names(usize),
}

/// Rule that chooses, for every unit, the version that survives a power cut. A unit is a block or the length of a file,
/// or a change of names. Units are numbered from 0, in the order of [`Replay::pending`](crate::Replay::pending).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survival {
    /// The latest version of every block, file length and change of names survives.
    All,
    /// Only the durable version of every block, file length and change of names survives.
    None,
    /// The latest version of the unit of this number (from 0, in the order of `Replay::pending`), and the durable
    /// version of all others. A unit is a block or the length of a file, or a change of names.
    Alone(usize),
    /// The durable version of the unit of this number (from 0, in the order of `Replay::pending`), and the latest
    /// version of all others. A unit is a block or the length of a file, or a change of names.
    Missing(usize),
    /// For each unit, with probability 1 / `share` a random later version, and otherwise the durable version. A unit is
    /// a block or the length of a file, or a change of names.
    Random {
        /// Seed of the random choices.
        seed: u64,
        /// Inverse of the probability that a unit gets a later version: 1 for every unit, 0 for none.
        share: u64,
    },
}

impl Survival {
    /// Returns the rule that `seed` selects for a replay with `units` pending units. Each kind of rule occurs, random
    /// ones most often. If `units` is 0, a rule for one unit names unit 0.
    pub fn seeded(seed: u64, units: usize) -> Survival {
        let mut random = Random::new(seed ^ 0x5u64.rotate_left(60));
        let one = random.below(units.max(1) as u64) as usize;
        match random.below(12) {
            0 => Survival::All,
            1 => Survival::None,
            2 | 3 => Survival::Alone(one),
            4 | 5 => Survival::Missing(one),
            _ => Survival::Random { seed, share: [1, 2, 2, 4, 16][random.below(5) as usize] },
        }
    }

    /// Returns the number of the chosen version for each unit. `units` gives the number of each unit's latest version.
    pub(crate) fn pick(self, units: &[(Unit, usize)]) -> Vec<usize> {
        let latest = units.iter().map(|&(_, latest)| latest);
        match self {
            Survival::All => latest.collect(),
            Survival::None => vec![0; units.len()],
            Survival::Alone(one) => {
                latest.enumerate().map(|(index, latest)| if index == one { latest } else { 0 }).collect()
            }
            Survival::Missing(one) => {
                latest.enumerate().map(|(index, latest)| if index == one { 0 } else { latest }).collect()
            }
            Survival::Random { seed, share } => {
                let mut random = Random::new(seed);
                let mut version = |latest: usize| 1 + random.below(latest as u64) as usize;
                let mut coin = Random::new(seed ^ 0xc01u64.rotate_left(40));
                latest.map(|latest| if coin.one_in(share) { version(latest) } else { 0 }).collect()
            }
        }
    }
}

impl fmt::Display for Survival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Survival::All => write!(f, "everything survives"),
            Survival::None => write!(f, "nothing unsynced survives"),
            Survival::Alone(unit) => write!(f, "unit {unit} alone survives"),
            Survival::Missing(unit) => write!(f, "all but unit {unit} survives"),
            Survival::Random { share, .. } => write!(f, "one in {share} survives"),
        }
    }
}
