//! A run of consecutive blocks of the data device: the unit in which stores allocate and free space, and in which other
//! parts name ranges of blocks.

/// A run of consecutive blocks of 4 KiB of the data device, or of the hot zone if it is a run of that zone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BlockRun {
    /// First block of the run, counted from 0 at the start of the data device, or of the hot zone for a run there.
    pub start: u64,
    /// Number of blocks of the run, of 4 KiB each.
    pub blocks: u64,
}

impl BlockRun {
    /// Returns the number of the first block after the run: `start` + `blocks`.
    pub fn end(&self) -> u64 {
        self.start + self.blocks
    }
}
