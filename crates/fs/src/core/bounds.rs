//! Limits of the core.

use crate::device::queue::QueueLimits;
use crate::hot::Limits;

/// Limits of the core: memory, sizes of commands and records, intervals. Tests set them to their smallest values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Maximum number of bytes in memory that are not yet written to files (Singh 2014 §2.2.2: a buffer cache of 2 GB).
    pub cache_bytes: u64,
    /// Number of appended bytes of a file at which their write-back begins, while the program still appends.
    pub behind_bytes: u64,
    /// Maximum number of blocks that stay in memory after they were written, so that changes of them need no read.
    pub written_blocks: usize,
    /// Maximum number of pages of checksums in memory. A page has 1,020 checksums.
    pub checksum_pages: usize,
    /// Number of blocks of data that one command reads or writes.
    pub piece_blocks: u64,
    /// Maximum number of commands in flight on the device for a write of one file. With only one, the disk would lose a
    /// rotation between commands.
    pub pieces: usize,
    /// Maximum number of appends of one file to a stripe group in flight, each with up to `pieces` commands.
    pub appends: usize,
    /// Number of bytes of pending records at which the core commits them without a request.
    pub pending_bytes: usize,
    /// Interval in nanoseconds at which records are committed, and files written that were changed longer ago than
    /// `dirty_ns`.
    pub commit_ns: u64,
    /// Age in nanoseconds at which a change is due to be written.
    pub dirty_ns: u64,
    /// Maximum time in nanoseconds for which a write to a full drive waits until open files without a name are closed.
    pub closing_ns: u64,
    /// Percentage of the log in use at which a checkpoint is taken.
    pub log_percent: u64,
    /// Limits of the hot zone, apart from its size.
    pub hot: Limits,
    /// Limits of the queue of each device.
    pub queue: QueueLimits,
    /// Number of files that are copied to the hot zone before all of them are made durable together.
    pub hot_batch: usize,
    /// Upper bound of the bytes with which a record describes a copy in the hot zone. It always may describe one
    /// checksum or one piece of a file. A frame of the log is another bound.
    pub hot_record_bytes: u64,
    /// Upper bound of the bytes with which a record describes the extents of a file. It always may describe one extent.
    /// A frame of the log is another bound.
    pub extent_record_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        const SECOND_NS: u64 = 1_000_000_000;
        Bounds {
            cache_bytes: 2 << 30,
            behind_bytes: 16 << 20,
            written_blocks: 64 << 10,
            checksum_pages: 16 << 10,
            piece_blocks: 256,
            pieces: 4,
            appends: 4,
            pending_bytes: 1 << 20,
            commit_ns: 5 * SECOND_NS,
            dirty_ns: 30 * SECOND_NS,
            closing_ns: SECOND_NS / 5,
            log_percent: 40,
            hot: Limits { files: 64 << 10, half_ns: 600 * SECOND_NS, small_blocks: 8 },
            hot_batch: 16,
            hot_record_bytes: 64 << 10,
            extent_record_bytes: 64 << 10,
            queue: QueueLimits::default(),
        }
    }
}

impl Bounds {
    /// Returns the smallest limits with which the core works: it evicts, writes and takes checkpoints all the time.
    pub fn smallest() -> Bounds {
        Bounds {
            cache_bytes: 4096,
            behind_bytes: 1,
            written_blocks: 1,
            checksum_pages: 1,
            piece_blocks: 1,
            pieces: 1,
            appends: 1,
            pending_bytes: 1,
            closing_ns: 0,
            log_percent: 1,
            hot: Limits { files: 1, ..Bounds::default().hot },
            hot_batch: 1,
            hot_record_bytes: 1,
            extent_record_bytes: 1,
            queue: QueueLimits::SMALLEST,
            ..Bounds::default()
        }
    }
}
