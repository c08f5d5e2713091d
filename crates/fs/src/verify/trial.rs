//! The configuration of a power-cut check: devices, store, limits, harm to the drives after the cut, and deliberate
//! faults.

use crate::core::{Bounds, HotOn, Sabotage};
use crate::device::Geometry;

/// Number of random subsets of blocks if there are too many blocks to try all subsets.
pub(super) const RANDOM_SUBSETS: usize = 64;

/// Harm that is done to the devices after a power cut, before the next mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Harm {
    /// The devices stay as the cut left them.
    None,
    /// The drives with these numbers, counted from 0, are missing.
    Lost(Vec<usize>),
    /// The drive with this number is in an earlier state: the durable state after half of the events of all devices
    /// before the cut.
    Stale(usize),
    /// One byte in a used block of one drive is altered. Drive and block are chosen at random for each state.
    Altered,
    /// The device with this copy of the metadata, counted from 0, is missing.
    CopyLost(usize),
    /// One byte in a used block of this copy of the metadata is altered. The block is chosen at random for each state.
    CopyAltered(usize),
    /// A block of the device with this number, or 512 bytes of the block, are in an earlier state, as if a write was
    /// lost. The block is chosen at random for each state. Device numbers count the drives from 0, and after them the
    /// copies of the metadata. Nothing is changed if no block with older contents is found in 64 attempts.
    WriteLost(usize),
}

/// Configuration of a power-cut check.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Size and kind of the drive, or of each drive of the array.
    pub geometry: Geometry,
    /// Number of drives with data, all of one size and kind. Devices with metadata alone do not count.
    pub drives: usize,
    /// Sizes and kinds of the devices with copies of the metadata; empty if the drive with the data holds the metadata.
    pub metadata: Vec<Geometry>,
    /// Name of the store; `None` for the default of the kind of device.
    pub store: Option<&'static str>,
    /// Number of parity zones in each stripe group: as many drives may be lost.
    pub parity: u8,
    /// Harms that are done after the cuts, one for each examined state, in turn. The list must not be empty.
    pub harms: Vec<Harm>,
    /// Number of a device that fails in use, and the number of its events after the first mount before it fails. Device
    /// numbers count the drives from 0, and after them the copies of the metadata. After a cut the device is present
    /// again, in the state in which it failed.
    pub dies: Option<(usize, u64)>,
    /// Number of blocks of 4 KiB of the hot zone; 0 for none.
    pub hot_blocks: u64,
    /// Devices on which the hot zone is: those with metadata, or the drives.
    pub hot_on: HotOn,
    /// Options of the store and of the hot zone for mkfs, as pairs of a key and a value.
    pub options: Vec<(String, String)>,
    /// Limits of the core's memory, queues and times.
    pub bounds: Bounds,
    /// Deliberate fault of the file system, which the checker must detect; `None` for a true check.
    pub sabotage: Option<Sabotage>,
    /// Seed of the random subsets of unflushed blocks and of the random harms.
    pub seed: u64,
    /// Number of random subsets of the unflushed blocks that are tried for each cut with more than 6 such blocks. Below
    /// 64 the subsets with one block missing are left out: the check is quicker and finds less.
    pub random_subsets: usize,
}

impl Trial {
    /// Returns a trial on a single drive of `geometry` that holds the metadata too, with the default store and its
    /// `options`, without a hot zone and without harm. The limits are the defaults, with a cache of 64 KiB.
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
