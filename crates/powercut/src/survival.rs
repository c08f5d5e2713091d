//! The choice of the versions that survive a power cut.

use std::fmt;

use imbrex_testkit::Random;

use crate::log::FileId;

/// A unit of which a cut leaves one of several versions: the durable one, number 0, or a later one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A block of a file.
    Block(FileId, u64),
    /// The length of a file.
    Len(FileId),
    /// A change of names.
    Names(usize),
}

/// A choice of versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survival {
    /// The latest version of every unit.
    All,
    /// Only the durable version of every unit.
    None,
    /// The latest version of this unit, and the durable version of the others.
    Alone(usize),
    /// The durable version of this unit, and the latest version of the others.
    Missing(usize),
    /// A random later version of one unit in `share`, and the durable version of the others.
    Random {
        /// Seed of the choice.
        seed: u64,
        /// Inverse of the share of units with a later version; 1 means every unit.
        share: u64,
    },
}

impl Survival {
    /// Returns the choice that `seed` selects: every kind occurs, random ones most often.
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
