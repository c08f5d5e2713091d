//! Buffers that transfers reuse to avoid allocation.

use super::sectors::Block;

/// Buffers that are reused by one transfer after another.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) sums: Vec<u32>,
    pub(super) changed: Vec<Changed>,
    pub(super) blocks: Vec<u8>,
    pub(super) order: Vec<usize>,
    /// For each run of adjacent blocks, its offset on the medium and its start in `blocks`.
    pub(super) runs: Vec<(u64, usize)>,
}

/// A block of a sector table with new lines that are not on the medium yet.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) slot: u64,
    pub(super) number: u64,
    pub(super) chunk: u64,
    pub(super) block: Block,
}
