//! A part of a device that can be rewritten in place, block by block: where metadata lie.
//!
//! On most devices it is a run of blocks. On a caveat disk it is made of islands (Singh 2014 §4.3.1): DNOR + 1 blocks that
//! are used, then DID that are not, so that no write on one of them destroys another: a write of block i of an island
//! destroys from i + 1 + DNOR on, which is behind the island, and no farther than DID behind it.

use super::{BLOCK_BYTES, Device, DeviceFault};
use crate::clock::{Cause, Together};

/// Blocks read or written at once.
const PIECE_BLOCKS: u64 = 256;
/// Pieces that the device is given at a time: between two of them it would turn once for nothing.
const PIECES: usize = 32;

/// The part.
#[derive(Clone)]
pub struct Area {
    device: Device,
    place: Place,
    /// From this block on it holds files: who reads and writes them is charged for it.
    files_from: u64,
}

/// Where its blocks lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its first block.
    pub first: u64,
    /// Its blocks.
    pub blocks: u64,
    /// Blocks of an island, and unused blocks behind each; no islands where the second is 0.
    pub island: u64,
    /// See `island`.
    pub gap: u64,
}

impl Place {
    /// A run of blocks.
    pub const fn run(first: u64, blocks: u64) -> Place {
        Place { first, blocks, island: 1, gap: 0 }
    }

    /// Islands on a caveat disk, from its first block on.
    pub const fn islands(blocks: u64, no_overlap: u64, isolation: u64) -> Place {
        Place { first: 0, blocks, island: no_overlap + 1, gap: isolation }
    }

    /// Blocks of the device up to its end, the unused ones included.
    pub fn end(&self) -> u64 {
        if self.gap == 0 {
            return self.first + self.blocks;
        }
        self.first + self.blocks.div_ceil(self.island) * (self.island + self.gap)
    }

    /// Returns the end of a place read from a device, or `None` on overflow.
    pub fn checked_end(&self) -> Option<u64> {
        if self.gap == 0 {
            return self.first.checked_add(self.blocks);
        }
        let whole = self.island.checked_add(self.gap)?;
        self.first.checked_add(self.blocks.div_ceil(self.island).checked_mul(whole)?)
    }

    /// Where `blocks` from `block` on lie: the first, and how many follow it there.
    fn run_at(&self, block: u64, blocks: u64) -> (u64, u64) {
        if self.gap == 0 {
            return (self.first + block, blocks);
        }
        let (island, within) = (block / self.island, block % self.island);
        (self.first + island * (self.island + self.gap) + within, blocks.min(self.island - within))
    }
}

impl Area {
    /// The area at `place` of `device`.
    pub fn new(device: Device, place: Place) -> Area {
        assert!(place.end() <= device.geometry().blocks, "{place:?} is not on {}", device.name());
        Area { device, place, files_from: u64::MAX }
    }

    /// The same, whose blocks from `block` on hold files.
    pub fn with_files_from(self, block: u64) -> Area {
        Area { files_from: block, ..self }
    }

    fn cause(&self, block: u64) -> Cause {
        if block < self.files_from { Cause::Metadata } else { Cause::Data }
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The first block from `block` on that may hold something other than zeros, or one behind its end.
    pub fn next_data(&self, block: u64) -> u64 {
        match self.place.gap {
            0 => self.device.next_data(self.place.first + block) - self.place.first,
            _ => block,
        }
    }

    /// Reads `blocks` from `block` on.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        self.check(block, blocks);
        self.device.clock().for_cause(self.cause(block), self.read_pieces(block, blocks)).await
    }

    async fn read_pieces(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        let mut bytes = Vec::with_capacity(blocks as usize * BLOCK_BYTES);
        let mut reads = Together::new(PIECES);
        for (at, count) in self.pieces(block, block + blocks) {
            if let Some(read) = reads.begin(self.device.read(at, count)).await {
                bytes.extend_from_slice(&read?);
            }
        }
        while let Some(read) = reads.next().await {
            bytes.extend_from_slice(&read?);
        }
        Ok(bytes)
    }

    /// Writes `bytes`, whole blocks, from `block` on.
    pub async fn write(&self, block: u64, bytes: &[u8]) -> Result<(), DeviceFault> {
        let blocks = (bytes.len() / BLOCK_BYTES) as u64;
        self.check(block, blocks);
        self.device.clock().for_cause(self.cause(block), self.write_pieces(block, blocks, bytes)).await
    }

    async fn write_pieces(&self, block: u64, blocks: u64, bytes: &[u8]) -> Result<(), DeviceFault> {
        let (mut writes, mut left, mut outcome) = (Together::new(PIECES), bytes, Ok(()));
        for (at, count) in self.pieces(block, block + blocks) {
            let (piece, rest) = left.split_at(count as usize * BLOCK_BYTES);
            left = rest;
            outcome = writes.begin(self.device.write(at, piece.to_vec())).await.unwrap_or(Ok(()));
            if outcome.is_err() {
                break;
            }
        }
        // The device has the others too, whatever became of one.
        while let Some(write) = writes.next().await {
            outcome = outcome.and(write);
        }
        outcome
    }

    /// Where the blocks from `next` to `end` lie, in pieces: the first block of each, and how many.
    fn pieces(&self, mut next: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + use<'_> {
        std::iter::from_fn(move || {
            let (at, count) = (next < end).then(|| self.place.run_at(next, (end - next).min(PIECE_BLOCKS)))?;
            next += count;
            Some((at, count))
        })
    }

    /// Makes durable what was written.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        self.device.clock().for_cause(Cause::Metadata, self.device.flush()).await
    }

    fn check(&self, block: u64, blocks: u64) {
        let end = self.place.blocks;
        assert!(block + blocks <= end, "blocks {block} to {} of an area of {end}", block + blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No write on an island destroys a block of any island, by the rule of Singh 2014 §3.2.
    #[test]
    fn islands_are_safe_from_each_other() {
        for (no_overlap, isolation) in [(0, 1), (6, 16), (6, 512), (3, 3)] {
            let place = Place::islands(5 * (no_overlap + 1) + 2, no_overlap, isolation);
            let used: Vec<u64> = (0..place.blocks).map(|block| place.run_at(block, 1).0).collect();
            for block in 0..place.blocks {
                for blocks in 1..=place.blocks - block {
                    let (first, count) = place.run_at(block, blocks);
                    let last = first + count - 1;
                    let destroyed = (first + 1 + no_overlap).max(last + 1)..=last + isolation;
                    assert!(used.iter().all(|at| !destroyed.contains(at)), "{place:?}: blocks {first} to {last}");
                    assert!(last + isolation < place.end());
                }
            }
        }
    }
}
