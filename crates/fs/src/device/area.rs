//! Area of a device in which each block can be rewritten in place: it holds metadata.
//!
//! On most devices the area is one run of blocks. On a caveat disk it consists of islands (Singh 2014 §4.3.1): DNOR + 1
//! used blocks, then DID unused ones, so that no write to an island destroys another island. A write of block i of an
//! island destroys blocks from i + 1 + DNOR on, which are behind the island. The last destroyed block is at most DID
//! behind the island.

use super::{BLOCK_BYTES, Device, DeviceFault};
use crate::executor::{BoundedOrdered, Cause};

/// Blocks read or written by one operation.
const PIECE_BLOCKS: u64 = 256;
/// Operations in flight at a time. With a single one a disk would lose a rotation between two operations.
const PIECES: usize = 32;

/// Area of a device: a run of blocks, or islands, that is, runs of blocks that are separated by unused ones. Its blocks
/// of 4 KiB are numbered from 0 without the unused ones.
#[derive(Clone)]
pub struct Area {
    device: Device,
    place: Place,
    /// First block that holds files. Operations from here on keep the cause of their task; those before are charged to
    /// metadata.
    files_from: u64,
}

/// Blocks of a device that form an area: one run, or islands of `island` used blocks, each followed by `gap` unused
/// ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// First block of the area, of 4 KiB, counted from the start of the device.
    pub first: u64,
    /// Number of usable blocks of 4 KiB of the area, in all islands together.
    pub blocks: u64,
    /// Number of usable blocks of 4 KiB of each island, a run of blocks between unused ones. It has no meaning if `gap`
    /// is 0: the area is then one run.
    pub island: u64,
    /// Number of unused blocks of 4 KiB after each island, a run of usable blocks; 0 if the area is one run.
    pub gap: u64,
}

impl Place {
    /// Returns the place of `blocks` consecutive blocks, from block `first` of the device on.
    pub const fn run(first: u64, blocks: u64) -> Place {
        Place { first, blocks, island: 1, gap: 0 }
    }

    /// Returns the place of `blocks` usable blocks in islands, from block 0 of a caveat disk on. An island has
    /// `no_overlap` (DNOR) + 1 blocks, and is followed by `isolation` (DID) unused blocks.
    pub const fn islands(blocks: u64, no_overlap: u64, isolation: u64) -> Place {
        Place { first: 0, blocks, island: no_overlap + 1, gap: isolation }
    }

    /// Returns the first block of the device after the place. The unused blocks of the last island belong to the place,
    /// and the last island is counted in full even if only a part of it is used.
    ///
    /// # Panics
    /// `gap` is not 0 and `island` is 0.
    pub fn end(&self) -> u64 {
        if self.gap == 0 {
            return self.first + self.blocks;
        }
        self.first + self.blocks.div_ceil(self.island) * (self.island + self.gap)
    }

    /// Returns the first block of the device after the place, with the unused blocks of the last island, or `None` if
    /// the computation overflows. For a place that was read from a device and not checked yet.
    ///
    /// # Panics
    /// `gap` is not 0 and `island` is 0.
    pub fn checked_end(&self) -> Option<u64> {
        if self.gap == 0 {
            return self.first.checked_add(self.blocks);
        }
        let whole = self.island.checked_add(self.gap)?;
        self.first.checked_add(self.blocks.div_ceil(self.island).checked_mul(whole)?)
    }

    /// Returns the block of the device at which block `block` of the area lies, and how many of `blocks` are contiguous
    /// there.
    fn run_at(&self, block: u64, blocks: u64) -> (u64, u64) {
        if self.gap == 0 {
            return (self.first + block, blocks);
        }
        let (island, within) = (block / self.island, block % self.island);
        (self.first + island * (self.island + self.gap) + within, blocks.min(self.island - within))
    }
}

impl Area {
    /// Returns the area of `device` that `place` describes. The whole area holds metadata.
    ///
    /// # Panics
    /// `place` ends behind the end of the device.
    pub fn new(device: Device, place: Place) -> Area {
        assert!(place.end() <= device.geometry().blocks, "{place:?} is not on {}", device.name());
        Area { device, place, files_from: u64::MAX }
    }

    /// Returns this area with a border between metadata and files. Reads and writes that begin at `block` or later keep
    /// the cause of their task; the others are charged to [`Cause::Metadata`]. Without this call the whole area holds
    /// metadata.
    pub fn with_files_from(self, block: u64) -> Area {
        Area { files_from: block, ..self }
    }

    fn cause(&self, block: u64) -> Cause {
        if block < self.files_from { Cause::Metadata } else { Cause::Data }
    }

    /// Returns the device that contains the area.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the first block at or after `block` that may hold bytes other than zeros. Both are counted from 0 within
    /// the area. The result may be behind the area if the rest of the area holds only zeros. In an area of islands
    /// (runs separated by unused blocks), and on a device that does not know its zeros, the result is `block`.
    pub fn next_data(&self, block: u64) -> u64 {
        match self.place.gap {
            0 => self.device.next_data(self.place.first + block) - self.place.first,
            _ => block,
        }
    }

    /// Reads `blocks` blocks of 4 KiB, from block `block` of the area on; 0 blocks read nothing.
    ///
    /// # Errors
    /// The device failed a read.
    ///
    /// # Panics
    /// The blocks are not all in the area.
    pub async fn read(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        self.check(block, blocks);
        self.device.executor().for_cause(self.cause(block), self.read_pieces(block, blocks)).await
    }

    async fn read_pieces(&self, block: u64, blocks: u64) -> Result<Vec<u8>, DeviceFault> {
        let mut bytes = Vec::with_capacity(blocks as usize * BLOCK_BYTES);
        let mut reads = BoundedOrdered::new(PIECES);
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

    /// Writes `bytes`, a whole number of blocks of 4 KiB, from block `block` of the area on. The bytes are durable only
    /// after a flush.
    ///
    /// # Errors
    /// The device failed a write. Some of the blocks may have been written.
    ///
    /// # Panics
    /// The blocks are not all in the area.
    pub async fn write(&self, block: u64, bytes: &[u8]) -> Result<(), DeviceFault> {
        let blocks = (bytes.len() / BLOCK_BYTES) as u64;
        self.check(block, blocks);
        self.device.executor().for_cause(self.cause(block), self.write_pieces(block, blocks, bytes)).await
    }

    async fn write_pieces(&self, block: u64, blocks: u64, bytes: &[u8]) -> Result<(), DeviceFault> {
        let (mut writes, mut left, mut outcome) = (BoundedOrdered::new(PIECES), bytes, Ok(()));
        for (at, count) in self.pieces(block, block + blocks) {
            let (piece, rest) = left.split_at(count as usize * BLOCK_BYTES);
            left = rest;
            outcome = writes.begin(self.device.write(at, piece.to_vec())).await.unwrap_or(Ok(()));
            if outcome.is_err() {
                break;
            }
        }
        // Operations that were already started continue, so their outcome is awaited.
        while let Some(write) = writes.next().await {
            outcome = outcome.and(write);
        }
        outcome
    }

    /// Yields the pieces of the device in which the blocks from `next` to before `end` lie: first block and number of
    /// blocks.
    fn pieces(&self, mut next: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + use<'_> {
        std::iter::from_fn(move || {
            let (at, count) = (next < end).then(|| self.place.run_at(next, (end - next).min(PIECE_BLOCKS)))?;
            next += count;
            Some((at, count))
        })
    }

    /// Makes all completed writes durable, of the area and of the rest of its device.
    ///
    /// # Errors
    /// The device failed the flush.
    pub async fn flush(&self) -> Result<(), DeviceFault> {
        self.device.executor().for_cause(Cause::Metadata, self.device.flush()).await
    }

    fn check(&self, block: u64, blocks: u64) {
        let end = self.place.blocks;
        assert!(block + blocks <= end, "blocks {block} to {} of an area of {end}", block + blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that no write to an island destroys a block of any island, by the rule of Singh 2014 §3.2.
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
