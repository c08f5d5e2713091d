//! Buffers that transfers use again, so that none allocates.

use super::sectors::Block;

/// Buffers used again from one transfer to the next.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) sums: Vec<u32>,
    pub(super) changed: Vec<Changed>,
    pub(super) blocks: Vec<u8>,
    pub(super) order: Vec<usize>,
    /// Where blocks that lie side by side go on the medium, and where they begin in `blocks`.
    pub(super) runs: Vec<(u64, usize)>,
}

/// A block with new lines, not yet on the medium.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) slot: u64,
    pub(super) number: u64,
    pub(super) chunk: u64,
    pub(super) block: Block,
}
