//! What power is cut of: devices, store, bounds, harm done to the drives afterwards, mistakes made on purpose.

use crate::core::{Bounds, HotOn, Sabotage};
use crate::device::Geometry;

/// Subsets of blocks chosen at random where there are too many to try all.
pub(super) const RANDOM_SUBSETS: usize = 64;

/// What is done to the drives of an array after a cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Harm {
    /// Nothing.
    None,
    /// These are missing.
    Lost(Vec<usize>),
    /// This one is as it was when half of what was done to all had been done.
    Stale(usize),
    /// A block of one of them is altered, chosen anew for each state.
    Altered,
    /// This copy of the metadata is missing.
    CopyLost(usize),
    /// A block of this copy of the metadata is altered, chosen anew for each state.
    CopyAltered(usize),
    /// A block of this device, or 512 bytes of one, are as they once were, chosen anew for each state: drives, and behind them
    /// copies of the metadata.
    WriteLost(usize),
}

/// What is cut.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The device, or each drive of the array.
    pub geometry: Geometry,
    /// How many drives there are.
    pub drives: usize,
    /// The devices with the metadata, where they have such.
    pub metadata: Vec<Geometry>,
    /// The store, if not the one of the device's kind.
    pub store: Option<&'static str>,
    /// Drives that may be lost.
    pub parity: u8,
    /// What is done after cuts, in turn.
    pub harms: Vec<Harm>,
    /// A device that dies in use, with how much it still does before that: a drive, or behind those a copy of the metadata. After
    /// a cut it is there again, as it was when it died.
    pub dies: Option<(usize, u64)>,
    /// Blocks of the hot zone.
    pub hot_blocks: u64,
    /// Where it lies.
    pub hot_on: HotOn,
    /// Options of the store.
    pub options: Vec<(String, String)>,
    /// Bounds of the core.
    pub bounds: Bounds,
    /// A mistake made on purpose.
    pub sabotage: Option<Sabotage>,
    /// For subsets at random.
    pub seed: u64,
    /// Subsets chosen at random for each cut with many blocks; fewer than 64 are quicker and see less.
    pub random_subsets: usize,
}

impl Trial {
    /// On `geometry` with the usual bounds.
    pub fn new(geometry: Geometry, options: Vec<(String, String)>) -> Trial {
        let bounds = Bounds { cache_bytes: 64 << 10, ..Bounds::default() };
        Trial {
            geometry,
            drives: 1,
            metadata: Vec::new(),
            store: None,
            parity: 0,
            harms: vec![Harm::None],
            dies: None,
            hot_blocks: 0,
            hot_on: HotOn::Metadata,
            options,
            bounds,
            sabotage: None,
            seed: 1,
            random_subsets: RANDOM_SUBSETS,
        }
    }
}
