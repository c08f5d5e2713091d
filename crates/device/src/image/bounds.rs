//! Limits of an open image: sizes of its caches, buffers and batches. Every cache and buffer on the data path has its
//! limit here. Tests set all limits to their smallest. Then blocks are evicted and slots prepared all the time, as on a
//! drive of terabytes after heavy use.
//!
//! Invariants:
//! 1. No limit changes the contents of an image or its guarantees, only how often it is read and written.

/// Limits of an open image on memory and on the size of batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Largest number of 512-byte blocks of sector tables (checksums of sectors) cached in memory; each covers 62
    /// sectors.
    pub table_blocks: usize,
    /// Number of directory entries read at once when an image is opened. An entry says which chunk a slot of the file
    /// holds.
    pub directory_batch: u64,
    /// Largest number of slots (places for a chunk in the file) that are prepared at once. Their preparation is durable
    /// before the first of them is assigned to a chunk.
    pub slots_prepared: u64,
    /// Number of journal records read at once by a replay, or written at once by a checkpoint.
    pub journal_batch: usize,
    /// Number of records in the journal from which on a checkpoint is due. If four times the size of the latest
    /// checkpoint is more, that counts instead. A small journal may need a checkpoint earlier.
    pub journal_before_checkpoint: u64,
    /// Largest number of bytes of contents read and checksummed at once; at least one sector is.
    pub read_bytes: usize,
    /// Number of changed 512-byte blocks of sector tables whose digests are not written yet. Once there are this many,
    /// their digests are written without waiting for the next barrier.
    pub undigested_blocks: usize,
    /// Number of bytes of contents that may wait in memory until the checksums of their sectors are durable. Used on
    /// media whose flush waits for a disk. The buffer may exceed this by one write.
    pub held_bytes: usize,
    /// Number of sector tables that the recovery after a power cut announces to the medium before it reads them.
    pub tables_ahead: usize,
}

impl Bounds {
    /// The smallest limits that work; for tests.
    pub const SMALLEST: Bounds = Bounds {
        table_blocks: 1,
        directory_batch: 1,
        slots_prepared: 1,
        journal_batch: 1,
        journal_before_checkpoint: 1,
        read_bytes: 1,
        undigested_blocks: 1,
        held_bytes: 0,
        tables_ahead: 1,
    };
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            table_blocks: 32 << 10,
            directory_batch: 4096,
            slots_prepared: 64,
            journal_batch: 16 << 10,
            journal_before_checkpoint: 1 << 18,
            read_bytes: 64 << 10,
            undigested_blocks: 4096,
            held_bytes: 4 << 20,
            tables_ahead: 256,
        }
    }
}
