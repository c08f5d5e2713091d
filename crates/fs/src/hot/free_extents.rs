//! Free blocks of a part of the hot zone: runs by their first block, with adjacent runs merged.
//!
//! Invariants:
//! 1. No two runs touch or overlap, and [`FreeExtents::free_blocks`] is their sum.
//! 2. A block that is freed was not free before.

use std::collections::BTreeMap;

use crate::block_run::BlockRun;

/// Allocator of the blocks of one part of the hot zone: the metadata area, or the share of one drive. It holds the free
/// runs of blocks of 4 KiB.
pub struct FreeExtents {
    all: BlockRun,
    free: BTreeMap<u64, u64>,
    free_blocks: u64,
}

impl FreeExtents {
    /// Returns a part of the hot zone that consists of the blocks `all`, all of them free.
    pub fn new(all: BlockRun) -> FreeExtents {
        let free = (all.blocks > 0).then_some((all.start, all.blocks)).into_iter().collect();
        FreeExtents { all, free, free_blocks: all.blocks }
    }

    /// Returns the number of blocks of 4 KiB of this part of the hot zone, free and used ones.
    pub fn blocks(&self) -> u64 {
        self.all.blocks
    }

    /// Returns the number of the first block behind this part of the hot zone.
    pub fn end(&self) -> u64 {
        self.all.end()
    }

    /// Returns the number of free blocks of 4 KiB of this part of the hot zone.
    pub fn free_blocks(&self) -> u64 {
        self.free_blocks
    }

    /// Marks the blocks of `run`, in this part of the hot zone, as used.
    ///
    /// # Errors
    /// The run is empty, is not wholly in the part, or has blocks that are not free. Nothing is changed then. The text
    /// is a message for the user.
    pub fn claim(&mut self, run: BlockRun) -> Result<(), String> {
        let words = || format!("blocks {} to {} of the hot zone", run.start, run.start.saturating_add(run.blocks));
        let end = run.start.checked_add(run.blocks).filter(|end| *end <= self.all.end());
        if run.blocks == 0 || run.start < self.all.start || end.is_none() {
            return Err(format!("{} do not exist: the zone has {} to {}", words(), self.all.start, self.all.end()));
        }
        let around = self.free.range(..=run.start).next_back().map(|(start, blocks)| (*start, *blocks));
        let Some((start, blocks)) = around.filter(|(start, blocks)| start + blocks >= run.end()) else {
            return Err(format!("{} belong to two files", words()));
        };
        self.free.remove(&start);
        self.put(start, run.start - start);
        self.put(run.end(), start + blocks - run.end());
        self.free_blocks -= run.blocks;
        Ok(())
    }

    fn put(&mut self, start: u64, blocks: u64) {
        if blocks > 0 {
            self.free.insert(start, blocks);
        }
    }

    /// Allocates `blocks` blocks and returns their runs. Takes them from the free run with the lowest number that is
    /// long enough; if there is none, from the longest runs. Returns `None` if too few blocks are free, or if `blocks`
    /// is 0.
    pub fn take(&mut self, blocks: u64) -> Option<Vec<BlockRun>> {
        if blocks == 0 || blocks > self.free_blocks {
            return None;
        }
        let whole = self.free.iter().find(|(_, length)| **length >= blocks).map(|(start, _)| *start);
        let mut runs = Vec::new();
        let mut left = blocks;
        while left > 0 {
            let longest = || self.free.iter().max_by_key(|(start, length)| (**length, std::cmp::Reverse(**start)));
            let start = whole.or_else(|| longest().map(|(start, _)| *start)).expect("so many are free");
            let run = BlockRun { start, blocks: self.free[&start].min(left) };
            self.claim(run).expect("it is free");
            left -= run.blocks;
            runs.push(run);
        }
        Some(runs)
    }

    /// Frees the blocks of `run`, and merges them with adjacent free runs.
    ///
    /// # Panics
    /// Blocks of the run are free already, or more blocks would be free than the part has.
    pub fn free(&mut self, run: BlockRun) {
        let (mut start, mut blocks) = (run.start, run.blocks);
        if let Some((before, length)) = self.free.range(..run.end()).next_back().map(|(at, length)| (*at, *length)) {
            assert!(before + length <= run.start, "{run:?} of the hot zone is freed twice: invariant 2");
            if before + length == run.start {
                self.free.remove(&before);
                (start, blocks) = (before, length + blocks);
            }
        }
        blocks += self.free.remove(&run.end()).unwrap_or(0);
        self.put(start, blocks);
        self.free_blocks += run.blocks;
        assert!(self.free_blocks <= self.all.blocks, "{run:?} of {:?} of the hot zone is freed", self.all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{RngCore, SeedableRng};

    fn run(start: u64, blocks: u64) -> BlockRun {
        BlockRun { start, blocks }
    }

    /// Compares the free blocks with one mark per block.
    #[test]
    fn what_is_taken_is_nobody_elses() {
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(5);
        let (mut room, mut marks, mut held) = (FreeExtents::new(run(0, 50)), [false; 50], Vec::<BlockRun>::new());
        for _ in 0..5000 {
            let (wanted, is_free) = (1 + random.next_u64() % 9, random.next_u64() % 2 == 0);
            if is_free && !held.is_empty() {
                let freed = held.swap_remove((random.next_u64() % held.len() as u64) as usize);
                (freed.start..freed.end()).for_each(|block| marks[block as usize] = false);
                room.free(freed);
            } else if let Some(taken) = room.take(wanted) {
                assert_eq!(taken.iter().map(|run| run.blocks).sum::<u64>(), wanted);
                for block in taken.iter().flat_map(|run| run.start..run.end()) {
                    assert!(!std::mem::replace(&mut marks[block as usize], true), "block {block} is given twice");
                }
                held.extend(taken);
            } else {
                assert!((marks.iter().filter(|mark| !**mark).count() as u64) < wanted, "there was room");
            }
            assert_eq!(room.free_blocks(), marks.iter().filter(|mark| !**mark).count() as u64);
            let touch = room.free.iter().zip(room.free.iter().skip(1));
            assert!(touch.into_iter().all(|((start, length), (next, _))| start + length < *next), "{:?}", room.free);
        }
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        let mut room = FreeExtents::new(run(0, 10));
        assert!(room.claim(run(2, 3)).is_ok());
        for wrong in [run(4, 2), run(0, 3), run(2, 1), run(9, 2), run(u64::MAX, 2), run(5, 0)] {
            assert!(room.claim(wrong).is_err(), "{wrong:?}");
        }
        assert!(room.claim(run(5, 5)).is_ok() && room.claim(run(0, 2)).is_ok());
        assert_eq!((room.free_blocks(), room.take(1)), (0, None));
    }
}
