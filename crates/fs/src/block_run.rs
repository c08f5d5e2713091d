//! A run of consecutive blocks of the data device: the unit in which stores allocate and free space, and in which other
//! parts name ranges of blocks.

/// A run of blocks of the data device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BlockRun {
    /// First block.
    pub start: u64,
    /// Number of blocks.
    pub blocks: u64,
}

impl BlockRun {
    /// Returns the number of the block after the run.
    pub fn end(&self) -> u64 {
        self.start + self.blocks
    }
}
