//! Limits of numbers on the devices that more than one part of the file system needs.

/// Exclusive upper bound of every lifetime counter: generations, sequences, frames, checkpoints.
pub const COUNT_END: u64 = 1 << 63;
/// A store with a counter of this size or more is not mounted for writing, and its records in the data are ignored. So no counter
/// reaches [`COUNT_END`].
pub const COUNT_FAR: u64 = 1 << 62;
/// Number of checksums in a page of the table of checksums.
pub const PAGE_SUMS: u64 = 1020;
/// Smallest number of blocks of the log.
pub const LOG_BLOCKS_MIN: u64 = 16;
