//! The bounds of an image at work: how much is kept in memory, and how much is done at once. Every cache and buffer of the
//! way that bytes take has its bound here, so that tests can set all of them to their smallest: then things are evicted,
//! prepared and replaced all the time, as on a drive of terabytes after a long day.
//!
//! Invariants:
//! 1. No bound changes what an image holds or promises, only how often it is read and written.

/// How much is kept and done at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Blocks of sector tables kept in memory; each covers 62 sectors.
    pub table_blocks: usize,
    /// Entries of the directory read at once.
    pub directory_batch: u64,
    /// The most slots that are prepared at once, durably, before the first of them is given to a chunk.
    pub slots_prepared: u64,
    /// Journal records read or written at once.
    pub journal_batch: usize,
    /// Records that a journal has before a checkpoint replaces it; four times the checkpoint before, where that is more.
    pub journal_before_checkpoint: u64,
    /// Bytes of contents read and summed at once.
    pub read_bytes: usize,
    /// Blocks of sector tables that were written and whose digests were not, at most.
    pub undigested_blocks: usize,
    /// Bytes of contents held back until their lines are durable, where a flush waits for a disk; and one write more.
    pub held_bytes: usize,
    /// Sector tables that an opening after a power cut tells the medium of before it reads them.
    pub tables_ahead: usize,
}

impl Bounds {
    /// The smallest that work.
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
