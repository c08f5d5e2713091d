//! The configuration of a power-cut check: devices, store, limits, harm to the drives after the cut, and deliberate faults.

use crate::core::{Bounds, HotOn, Sabotage};
use crate::device::Geometry;

/// Number of random subsets of blocks if there are too many blocks to try all subsets.
pub(super) const RANDOM_SUBSETS: usize = 64;

/// The harm that is done to the devices after a cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Harm {
    /// No harm.
    None,
    /// The drives with these numbers are missing.
    Lost(Vec<usize>),
    /// This drive is in the state that it had after half of the events of all devices.
    Stale(usize),
    /// A block of one drive is altered. The choice differs for each state.
    Altered,
    /// This copy of the metadata is missing.
    CopyLost(usize),
    /// A block of this copy of the metadata is altered. The choice differs for each state.
    CopyAltered(usize),
    /// A block of this device, or 512 bytes of the block, are in an earlier state. The choice differs for each state.
    /// Device numbers count the drives, and after them the copies of the metadata.
    WriteLost(usize),
}

/// The configuration of a power-cut check.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Geometry of the device, or of each drive of the array.
    pub geometry: Geometry,
    /// Number of drives.
    pub drives: usize,
    /// Devices for the metadata, if the drives do not hold the metadata.
    pub metadata: Vec<Geometry>,
    /// Name of the store, if not the default for the kind of device.
    pub store: Option<&'static str>,
    /// Number of drives that may be lost.
    pub parity: u8,
    /// Harms that are done after the cuts, in turn.
    pub harms: Vec<Harm>,
    /// A device that fails in use, and the number of events before that. Device numbers count the drives, and after
    /// them the copies of the metadata. After a cut the device is present again, in the state in which it failed.
    pub dies: Option<(usize, u64)>,
    /// Number of blocks of the hot zone.
    pub hot_blocks: u64,
    /// Devices on which the hot zone lies.
    pub hot_on: HotOn,
    /// Options of the store.
    pub options: Vec<(String, String)>,
    /// Limits of the core.
    pub bounds: Bounds,
    /// A deliberate fault, which the checker must detect.
    pub sabotage: Option<Sabotage>,
    /// Seed of the random subsets.
    pub seed: u64,
    /// Number of random subsets for each cut with many blocks. Fewer than 64 are quicker and find less.
    pub random_subsets: usize,
}

impl Trial {
    /// Creates a trial on `geometry` with the usual limits.
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
