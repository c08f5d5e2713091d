//! Tables 5.1 and 5.2 of the paper, as printed.

/// One column of a table of Singh 2014: the result for one allocation algorithm.
pub(super) struct Column {
    /// Name of the allocation algorithm, such as `best` for best fit.
    pub fit: &'static str,
    /// Over-allocation of the disk, in percent of the 262,144 blocks (of 4 KiB) of data, rounded as the paper prints
    /// it.
    pub extra_percent: u64,
    /// Size of the disk in blocks of 4 KiB.
    pub blocks: u64,
    /// Number of blocks of 4 KiB that the file system cannot use with this allocation algorithm.
    pub unusable: u64,
    /// Share of the unusable blocks in the blocks of the disk, in percent, as the paper prints it.
    pub unusable_percent: f64,
}

/// Table 5.1: DID of 16 blocks.
pub(super) const NEAR: [Column; 5] = [
    Column { fit: "best", extra_percent: 4, blocks: 272_642, unusable: 8_287, unusable_percent: 3.04 },
    Column { fit: "first", extra_percent: 5, blocks: 275_354, unusable: 8_437, unusable_percent: 3.06 },
    Column { fit: "next", extra_percent: 2, blocks: 267_399, unusable: 936, unusable_percent: 0.35 },
    Column { fit: "last-accessed", extra_percent: 2, blocks: 267_399, unusable: 1_166, unusable_percent: 0.44 },
    Column { fit: "worst", extra_percent: 5, blocks: 275_354, unusable: 819, unusable_percent: 0.30 },
];

/// Table 5.2: DID of 512 blocks. In the rows of unusable blocks, the columns of first and worst fit are exchanged in the
/// paper: 65,891 of 340,800 blocks are 19.33 %, and 62,005 of 327,693 are 18.92 %. They are here as printed.
pub(super) const FAR: [Column; 5] = [
    Column { fit: "best", extra_percent: 25, blocks: 327_693, unusable: 61_120, unusable_percent: 18.65 },
    Column { fit: "first", extra_percent: 25, blocks: 327_693, unusable: 65_891, unusable_percent: 19.33 },
    Column { fit: "next", extra_percent: 10, blocks: 288_371, unusable: 8_651, unusable_percent: 3.00 },
    Column { fit: "last-accessed", extra_percent: 10, blocks: 288_371, unusable: 6_708, unusable_percent: 2.33 },
    Column { fit: "worst", extra_percent: 30, blocks: 340_800, unusable: 62_005, unusable_percent: 18.92 },
];
