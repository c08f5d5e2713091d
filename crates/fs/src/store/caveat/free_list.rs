//! The free list (Singh 2014 §4.4.1): runs of free blocks, by address and by size. Adjacent runs coalesce. The classes
//! by size (§4.4.4, fig. 4.4) begin with runs under 1 MiB; each further class begins at twice the size of the one
//! before.

use std::collections::{BTreeMap, BTreeSet};

use crate::block_run::BlockRun;

/// Number of blocks in 1 MiB, where the second class begins.
const CLASS_BLOCKS: u64 = 256;

/// Runs of free blocks of a caveat disk, by address and by size. Adjacent runs are merged.
#[derive(Clone, Default, Debug)]
pub struct FreeList {
    by_address: BTreeMap<u64, u64>,
    /// Class, number of blocks, and first block of each run.
    by_size: BTreeSet<(u32, u64, u64)>,
}

/// Returns the class of a run of `blocks` blocks.
pub(super) fn class_of(blocks: u64) -> u32 {
    if blocks < CLASS_BLOCKS { 0 } else { 1 + (blocks / CLASS_BLOCKS).ilog2() }
}

impl FreeList {
    /// Returns all runs in ascending order of their first block.
    pub fn runs(&self) -> impl Iterator<Item = BlockRun> + '_ {
        self.by_address.iter().map(|(start, blocks)| BlockRun { start: *start, blocks: *blocks })
    }

    /// Returns the runs that contain `block` or begin after it, in ascending order. A run that contains `block` is
    /// returned whole, with its blocks before `block`.
    pub fn runs_from(&self, block: u64) -> impl Iterator<Item = BlockRun> + '_ {
        let around = self.by_address.range(..block).next_back().filter(|(start, blocks)| *start + *blocks > block);
        let first = around.map_or(block, |(start, _)| *start);
        self.by_address.range(first..).map(|(start, blocks)| BlockRun { start: *start, blocks: *blocks })
    }

    /// Returns the longest run of size class `class`; `None` if the class is empty. Class 0 has the runs below 1 MiB,
    /// and class n those from 2ⁿ⁻¹ MiB up to, and without, 2ⁿ MiB. Of equally long runs, the one with the highest
    /// address is returned.
    pub fn last_of_class(&self, class: u32) -> Option<BlockRun> {
        let (_, blocks, start) = self.by_size.range((class, 0, 0)..(class + 1, 0, 0)).next_back()?;
        Some(BlockRun { start: *start, blocks: *blocks })
    }

    /// Returns the shortest run of at least `blocks` blocks; `None` if there is none. Of equally short runs, the one
    /// with the lowest address is returned.
    pub fn smallest(&self, blocks: u64) -> Option<BlockRun> {
        let (_, blocks, start) = self.by_size.range((class_of(blocks), blocks, 0)..).next()?;
        Some(BlockRun { start: *start, blocks: *blocks })
    }

    /// Returns the number of blocks of the longest run; 0 if no block is free.
    pub fn longest(&self) -> u64 {
        self.by_size.last().map_or(0, |(_, blocks, _)| *blocks)
    }

    /// Returns whether all blocks of `run` are free. `run` must have at least one block.
    pub fn contains(&self, run: BlockRun) -> bool {
        self.around(run.start).is_some_and(|free| run.end() <= free.end())
    }

    /// Returns the free run that contains `block`.
    fn around(&self, block: u64) -> Option<BlockRun> {
        let (start, blocks) = self.by_address.range(..=block).next_back()?;
        (block < start + blocks).then_some(BlockRun { start: *start, blocks: *blocks })
    }

    fn add(&mut self, run: BlockRun) {
        if run.blocks > 0 {
            self.by_address.insert(run.start, run.blocks);
            self.by_size.insert((class_of(run.blocks), run.blocks, run.start));
        }
    }

    fn drop_run(&mut self, run: BlockRun) {
        self.by_address.remove(&run.start);
        self.by_size.remove(&(class_of(run.blocks), run.blocks, run.start));
    }

    /// Adds `run`, and merges it with the free runs directly before and after it. Does nothing if `run` has no blocks.
    ///
    /// # Panics
    /// A block of `run` is free already.
    pub fn insert(&mut self, run: BlockRun) {
        if run.blocks == 0 {
            return;
        }
        let mut joined = run;
        let before = self
            .by_address
            .range(..run.start)
            .next_back()
            .map(|(start, blocks)| BlockRun { start: *start, blocks: *blocks });
        if let Some(before) = before {
            assert!(before.end() <= run.start, "{run:?} is put in, and {before:?} is free already");
            if before.end() == run.start {
                self.drop_run(before);
                joined = BlockRun { start: before.start, blocks: before.blocks + run.blocks };
            }
        }
        let behind = self
            .by_address
            .range(run.start..)
            .next()
            .map(|(start, blocks)| BlockRun { start: *start, blocks: *blocks });
        if let Some(behind) = behind {
            assert!(run.end() <= behind.start, "{run:?} is put in, and {behind:?} is free already");
            if behind.start == run.end() {
                self.drop_run(behind);
                joined.blocks += behind.blocks;
            }
        }
        self.add(joined);
    }

    /// Removes the blocks of `run` from the free run that contains them. The rest of that run stays free. Does nothing
    /// if `run` has no blocks.
    ///
    /// # Panics
    /// Not all blocks of `run` are free.
    pub fn remove(&mut self, run: BlockRun) {
        if run.blocks == 0 {
            return;
        }
        let around = self.around(run.start).filter(|free| run.end() <= free.end());
        let Some(around) = around else { panic!("{run:?} is taken, and is not all free: invariant 1") };
        self.drop_run(around);
        self.add(BlockRun { start: around.start, blocks: run.start - around.start });
        self.add(BlockRun { start: run.end(), blocks: around.end() - run.end() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares the list with a bitmap: after any sequence of removals and insertions both have the same free
        /// blocks, and the list has the fewest possible runs.
        #[test]
        fn it_is_what_a_bitmap_says(steps in proptest::collection::vec((0u64..200, 1u64..40), 1..120)) {
            let (mut list, mut map) = (FreeList::default(), [true; 200]);
            list.insert(BlockRun { start: 0, blocks: 200 });
            for (start, blocks) in steps {
                let run = BlockRun { start, blocks: blocks.min(200 - start) };
                let part = &mut map[run.start as usize..run.end() as usize];
                if part.iter().all(|free| *free) {
                    prop_assert!(list.contains(run));
                    list.remove(run);
                    part.fill(false);
                } else if part.iter().all(|free| !*free) {
                    list.insert(run);
                    part.fill(true);
                }
                let mut expected = Vec::new();
                for (at, free) in map.iter().enumerate() {
                    match expected.last_mut() {
                        Some(BlockRun { start, blocks }) if *free && *start + *blocks == at as u64 => *blocks += 1,
                        _ if *free => expected.push(BlockRun { start: at as u64, blocks: 1 }),
                        _ => {}
                    }
                }
                prop_assert_eq!(list.runs().collect::<Vec<_>>(), expected.clone());
                let longest = expected.iter().map(|run| run.blocks).max().unwrap_or(0);
                prop_assert_eq!(list.longest(), longest);
                prop_assert_eq!(list.by_size.len(), expected.len());
            }
        }
    }

    #[test]
    fn classes_begin_at_a_mebibyte_and_double() {
        assert_eq!([1, 255, 256, 511, 512, 1023, 1024].map(class_of), [0, 0, 1, 1, 2, 2, 3]);
    }
}
