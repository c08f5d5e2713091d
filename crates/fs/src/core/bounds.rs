//! Limits of the core.

use crate::device::queue::QueueLimits;
use crate::hot::Limits;

/// Limits of a mounted file system: memory, sizes of commands and records, intervals. Tests set them to their smallest
/// values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Number of bytes of changes in memory from which on a writer first writes back the files changed longest ago
    /// (Singh 2014 §2.2.2: a buffer cache of 2 GB). 2 GiB by default.
    pub cache_bytes: u64,
    /// Number of appended bytes of a file in memory at which they are written to the device, while the program still
    /// appends. 16 MiB by default.
    pub behind_bytes: u64,
    /// Maximum number of blocks of 4 KiB that stay in memory after they were written, so that changes of parts of them
    /// need no read. They are blocks of all files together. 65,536 by default.
    pub written_blocks: usize,
    /// Maximum number of pages of the table of checksums in memory. A page has 4 KiB and the checksums of 1,020 blocks.
    /// 16,384 by default.
    pub checksum_pages: usize,
    /// Maximum number of data blocks of 4 KiB that one command reads or writes, 256 by default. On an array, the
    /// maximum of writes is rounded up to whole rows.
    pub piece_blocks: u64,
    /// Maximum number of commands in flight on the device for one read, or for one append, of a file. With only one,
    /// the disk would lose a rotation between commands. 4 by default.
    pub pieces: usize,
    /// Maximum number of appends of one file to stripe groups in flight, each with up to `pieces` commands. Only store
    /// `log` has more than one. 4 by default.
    pub appends: usize,
    /// Number of bytes of metadata records waiting in memory at which they are committed to the log, although no task
    /// asked for it. 1 MiB by default.
    pub pending_bytes: usize,
    /// Interval in nanoseconds at which files with changes older than `dirty_ns` are written back, and all metadata
    /// records are committed to the log. 5 seconds by default.
    pub commit_ns: u64,
    /// Age in nanoseconds of the first unwritten change of a file at which the file is written back without a request.
    /// 30 seconds by default.
    pub dirty_ns: u64,
    /// Maximum time in nanoseconds for which a write without space waits until open files without a name are closed.
    /// 0.2 seconds by default.
    pub closing_ns: u64,
    /// Percentage of the blocks of the log in use, 0 to 100, from which on a checkpoint is taken; 40 by default. A
    /// checkpoint is also taken when no more than a quarter of the log is free.
    pub log_percent: u64,
    /// Interval in nanoseconds, from the mount on, at which a checkpoint is taken if the log is in use, however little
    /// of it (Jin 2014 §II.D.1: "periodically"). Changes that come while a checkpoint is taken are in the log after it,
    /// so the next interval may end with a checkpoint too. `None`, the default, for no interval.
    pub checkpoint_ns: Option<u64>,
    /// Limits of the hot zone: number of files with known heat, half-life of heat, and size of a small file. The size
    /// of the zone is not among them.
    pub hot: Limits,
    /// Limits of the queue of each device: commands in flight, time after which a write goes before reads, and size of
    /// merged writes.
    pub queue: QueueLimits,
    /// Maximum number of files that are taken from the queue for promotion to the hot zone at a time. Their copies are
    /// made durable together. 16 by default; 0 counts as 1.
    pub hot_batch: usize,
    /// Maximum size in bytes of the checksums or extents in one record of a copy in the hot zone, 64 KiB by default. A
    /// record may always hold one of them. The size of a frame of the log, a group of records written at once, is
    /// another limit.
    pub hot_record_bytes: u64,
    /// Maximum size in bytes of the extents in one record of a file, 64 KiB by default. A record may always hold one
    /// extent. The size of a frame of the log, a group of records written at once, is another limit.
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
            checkpoint_ns: None,
            hot: Limits { files: 64 << 10, half_ns: 600 * SECOND_NS, small_blocks: 8 },
            hot_batch: 16,
            hot_record_bytes: 64 << 10,
            extent_record_bytes: 64 << 10,
            queue: QueueLimits::default(),
        }
    }
}

impl Bounds {
    /// Returns the smallest limits with which the file system works, for tests: it evicts, writes and takes checkpoints
    /// all the time. `commit_ns`, `dirty_ns`, `checkpoint_ns`, and the limits of the hot zone other than the number of
    /// files, keep their defaults.
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
