//! The choice of the versions that survive a power cut.

use std::fmt;

use imbrex_testkit::Random;

use crate::log::FileId;

/// A unit of a disk that has several versions, of which a power cut leaves one: version 0 is the durable one, higher
/// versions are later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A block of a file: file, and number of the block in the file from 0.
    Block(FileId, u64),
    /// The length of a file.
    Len(FileId),
    /// One change of names that is not durable, counted from 0, oldest first.
    Names(usize),
}

/// Rule that chooses, for every unit, the version that survives a power cut. Units are numbered from 0 as in
/// [`Replay::pending`](crate::Replay::pending).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survival {
    /// The latest version of every unit.
    All,
    /// The durable version of every unit.
    None,
    /// The latest version of the unit of this number, and the durable version of all others.
    Alone(usize),
    /// The durable version of the unit of this number, and the latest version of all others.
    Missing(usize),
    /// For each unit, with probability 1 / `share` a random later version, and otherwise the durable version.
    Random {
        /// Seed of the random choices.
        seed: u64,
        /// Inverse of the probability; 1 means that every unit gets a later version.
        share: u64,
    },
}

impl Survival {
    /// Returns the rule that `seed` selects for `units` units: each kind of rule occurs, random ones most often.
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
