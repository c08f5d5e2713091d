//! Self-description of a store: name, layout rules and space usage.

/// Space usage of a store, in blocks unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Blocks that file data could occupy.
    pub blocks: u64,
    /// Blocks that hold live data.
    pub live: u64,
    /// Blocks that a new file could still allocate; reserved blocks are not among them.
    pub free: u64,
    /// Blocks that hold dead data until they are cleaned.
    pub dead: u64,
    /// Free blocks in runs too short to be written (Singh 2014 §4.4.3).
    pub unusable: u64,
    /// Number of runs of free blocks, or of empty zones.
    pub free_runs: u64,
    /// Length of the longest file that could be written in one piece.
    pub longest: u64,
    /// Blocks allocated since the mount.
    pub allocated: u64,
    /// Blocks freed since the mount.
    pub freed: u64,
    /// Record units written since the mount, and blocks written only for records. A record in a block that would
    /// otherwise be filled with zeros adds no such block.
    pub records: (u64, u64),
}

/// The name, the layout rules and the space usage of a store. The name, [`Describe::is_contiguous`] and
/// [`Describe::band_blocks`] are the same for the lifetime of the store.
pub trait Describe {
    /// Returns the name of the store.
    fn name(&self) -> &'static str;

    /// Returns whether a file must lie in one piece, with holes filled with zeros.
    fn is_contiguous(&self) -> bool;

    /// Returns the number of blocks of a band: no extent crosses the boundary of a band. Without bands, larger than any device.
    fn band_blocks(&self) -> u64;

    /// Returns the smallest number of blocks that are written together at `block`. A shorter write is padded. Returns 1
    /// on a store that can write each block alone.
    fn row_blocks(&self, block: u64) -> u64;

    /// Returns the space usage.
    fn usage(&self) -> Usage;
}
