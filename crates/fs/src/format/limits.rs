//! Limits of numbers on the devices that more than one part of the file system needs.

/// Exclusive upper bound of every counter stored on the media that only grows: generations, sequences, frames of the
/// log, checkpoints.
pub const COUNT_END: u64 = 1 << 63;
/// Counter value from which on a file system is not mounted for writing. Records, zone headers and stamps on the drives
/// with such a value are ignored. It is far below [`COUNT_END`], so no counter reaches that bound.
pub const COUNT_FAR: u64 = 1 << 62;
/// Number of checksums in a page of the table of checksums. A page is a block of 4 KiB, and each checksum covers one
/// block.
pub const PAGE_SUMS: u64 = 1020;
/// Smallest number of blocks of 4 KiB of the log, and of each slot for a checkpoint.
pub const LOG_BLOCKS_MIN: u64 = 16;
