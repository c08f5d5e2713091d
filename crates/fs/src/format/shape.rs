//! The shape of an array: how it combines its drives, and the largest arrays that are possible.

use crate::device::{Geometry, Kind};

/// Largest number of drives of an array, spares not counted.
pub const DRIVES_MAX: usize = 16;
/// Largest number of parity zones of a stripe group: the number of drives of an array that may fail without loss of
/// data.
pub const PARITY_MAX: u8 = 3;

/// The way in which an array combines its drives, as chosen when the file system was made. A stripe group takes one
/// zone on each of several drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Number of zones of a stripe group that hold parity: as many drives may fail without loss of data.
    pub parity: u8,
    /// Maximum number of zones of a stripe group that hold data. A group is narrower if fewer drives have free zones.
    pub width: u8,
    /// Size of a zone in blocks of 4 KiB. A drive without zones is divided into zones of this size.
    pub zone_blocks: u64,
    /// Maximum number of stripe groups that exist at a time.
    pub groups: u32,
}

impl Shape {
    /// Returns the number of blocks of a zone that hold data or parity: all but the first, which holds the zone's
    /// header. It is the number of rows of a stripe group.
    pub fn rows(&self) -> u64 {
        self.zone_blocks - 1
    }

    /// Returns the distance, in data blocks, from the start of one stripe group to the start of the next in the
    /// numbering of the array's blocks. A narrower group uses only the first of them.
    pub fn stride(&self) -> u64 {
        u64::from(self.width) * self.rows()
    }

    /// Returns the number of block numbers of the array: the maximum number of stripe groups, times [`Shape::stride`].
    /// Parity blocks have no numbers.
    pub fn blocks(&self) -> u64 {
        u64::from(self.groups) * self.stride()
    }
}

/// Returns the number of whole zones of `zone_blocks` blocks on a drive of `geometry`, less its first `first` zones; 0
/// if it has no more than those. The zones of a zoned drive are taken to have that size.
pub fn zones_of(geometry: &Geometry, zone_blocks: u64, first: u32) -> u32 {
    let zones = match geometry.kind {
        Kind::Zoned { zones, .. } => u64::from(zones),
        _ => geometry.blocks / zone_blocks,
    };
    u32::try_from(zones).unwrap_or(u32::MAX).saturating_sub(first)
}
