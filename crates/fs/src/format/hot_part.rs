//! Parts of the hot zone on the drives of an array: in the conventional zones of a drive, or on the outer part of a
//! conventional disk, where its block numbers begin (Jin 2014 §II.D). The part of a drive is behind the superblocks and
//! the part's stamp, so it uses the rest of the zone that holds those. Whole zones of the array begin behind the part.

use super::hot_stamp::STAMP_BLOCK;
use crate::device::{Geometry, Kind};

/// First block of a drive that a part of the hot zone can use for files: the one after the two superblocks and the
/// stamp.
pub const PART_FIRST: u64 = STAMP_BLOCK + 1;
/// Divisor of the blocks of a drive: it gives at most half of them.
const SHARE: u64 = 2;

/// Part of the hot zone, the space for often read files, on one drive of an array, as it was laid out when the file
/// system was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotPart {
    /// Number of the drive in the array, counted from 0.
    pub drive: u8,
    /// Number of blocks of 4 KiB for files, from block [`PART_FIRST`] (3) of the drive on.
    pub blocks: u64,
}

impl HotPart {
    /// Returns the number of the first zone of the drive that has no block of the part, for zones of `zone_blocks`
    /// blocks.
    pub fn first_zone_behind(&self, zone_blocks: u64) -> u32 {
        u32::try_from((PART_FIRST + self.blocks).div_ceil(zone_blocks)).unwrap_or(u32::MAX)
    }
}

/// Returns the largest number of blocks of 4 KiB for files that a part of the hot zone can have on a drive of
/// `geometry`. The part takes at most half of the drive, and on a zoned drive only conventional zones. The first three
/// blocks are not for files. The result is 0 for a caveat disk.
pub fn room_on(geometry: &Geometry) -> u64 {
    let anywhere = match geometry.kind {
        Kind::Plain => geometry.blocks,
        Kind::Zoned { zone_blocks, conventional, .. } => u64::from(conventional) * zone_blocks,
        Kind::Caveat { .. } => 0,
    };
    anywhere.min(geometry.blocks / SHARE).saturating_sub(PART_FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_gives_its_conventional_zones_and_a_conventional_disk_its_outer_half() {
        let zoned = |conventional| Kind::Zoned { zone_blocks: 8, zones: 10, conventional, active_max: None };
        let room = |kind| room_on(&Geometry { blocks: 80, kind });
        assert_eq!([room(zoned(0)), room(zoned(1)), room(zoned(2)), room(zoned(10))], [0, 5, 13, 37]);
        assert_eq!([room(Kind::Plain), room(Kind::Caveat { isolation: 4, no_overlap: 1 })], [37, 0]);
        let first = |blocks| HotPart { drive: 0, blocks }.first_zone_behind(8);
        assert_eq!([first(1), first(5), first(6), first(13)], [1, 1, 2, 2]);
    }
}
