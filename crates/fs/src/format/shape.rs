//! The shape of an array: how it combines its drives, and the largest arrays that are possible.

use crate::device::{Geometry, Kind};

/// Largest number of drives of an array.
pub const DRIVES_MAX: usize = 16;
/// Largest number of parity columns: so many drives of an array may be lost.
pub const PARITY_MAX: u8 = 3;

/// How an array combines its drives, as chosen when the file system was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Zones of a stripe group that hold parity, and so the number of drives that may be lost.
    pub parity: u8,
    /// Maximum number of zones of a stripe group that hold data.
    pub width: u8,
    /// Blocks of a zone. A drive without zones is divided into zones of this size.
    pub zone_blocks: u64,
    /// Maximum number of stripe groups.
    pub groups: u32,
}

impl Shape {
    /// Returns the blocks of a zone that hold data or parity: all but the first, which holds the header.
    pub fn rows(&self) -> u64 {
        self.zone_blocks - 1
    }

    /// Returns the number of blocks from the beginning of one stripe group to the beginning of the next.
    pub fn stride(&self) -> u64 {
        u64::from(self.width) * self.rows()
    }

    /// Returns the number of blocks of all stripe groups.
    pub fn blocks(&self) -> u64 {
        u64::from(self.groups) * self.stride()
    }
}

/// Returns how many zones a drive of `geometry` has for an array with zones of `zone_blocks`, without its first `first`
/// zones.
pub fn zones_of(geometry: &Geometry, zone_blocks: u64, first: u32) -> u32 {
    let zones = match geometry.kind {
        Kind::Zoned { zones, .. } => u64::from(zones),
        _ => geometry.blocks / zone_blocks,
    };
    u32::try_from(zones).unwrap_or(u32::MAX).saturating_sub(first)
}
