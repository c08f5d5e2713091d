//! The page cache of a kernel in front of the core: which blocks of which files an application reads without asking the
//! file system. It holds no bytes, for a load does not look at what it reads.
//!
//! What is written stays in it, what is read comes into it, the block that was used longest ago leaves it. Reading ahead is
//! Linux's (`page_cache_sync_ra`): reading that goes on where it was takes in 128 KiB; else, where more blocks right before
//! lie in the cache than are asked for, as many more are read as lie there.
//!
//! Invariants:
//! 1. No more blocks are in it than it may hold.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::format::change::Inode;

/// Blocks that are read when reading goes on where it was: `read_ahead_kb` of Linux is 128.
const AHEAD_BLOCKS: u64 = 32;

/// The cache.
#[derive(Debug)]
pub(super) struct PageCache {
    blocks_max: u64,
    /// When each was last used.
    used: BTreeMap<(Inode, u64), u64>,
    /// Which was used when.
    order: BTreeMap<u64, (Inode, u64)>,
    uses: u64,
}

impl PageCache {
    /// A cache of so many blocks.
    pub(super) fn new(blocks_max: u64) -> PageCache {
        PageCache { blocks_max, used: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// Notes that blocks of a file are used, and so are there from now on.
    pub(super) fn use_blocks(&mut self, inode: Inode, blocks: Range<u64>) {
        for block in blocks {
            self.uses += 1;
            if let Some(before) = self.used.insert((inode, block), self.uses) {
                self.order.remove(&before);
            }
            self.order.insert(self.uses, (inode, block));
        }
        while self.used.len() as u64 > self.blocks_max {
            let (_, oldest) = self.order.pop_first().expect("each block that is there was used");
            self.used.remove(&oldest);
        }
    }

    /// The blocks among `blocks` that are not there, in runs.
    pub(super) fn missing(&self, inode: Inode, blocks: Range<u64>) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for block in blocks.filter(|block| !self.used.contains_key(&(inode, *block))) {
            match runs.last_mut() {
                Some(run) if run.end == block => run.end += 1,
                _ => runs.push(block..block + 1),
            }
        }
        runs
    }

    /// How many blocks are read for a run of `asked` that begins at `start`, none of which is there.
    pub(super) fn reach(&self, inode: Inode, start: u64, asked: u64, goes_on: bool) -> u64 {
        if goes_on {
            return asked.max(AHEAD_BLOCKS);
        }
        let before = (1..=AHEAD_BLOCKS.min(start)).take_while(|back| self.used.contains_key(&(inode, start - back)));
        let history = before.count() as u64;
        if history > asked { asked.max(AHEAD_BLOCKS.min(history + asked)) } else { asked }
    }

    /// Takes out all of a file.
    pub(super) fn forget(&mut self, inode: Inode) {
        let gone: Vec<(Inode, u64)> = self.used.range((inode, 0)..=(inode, u64::MAX)).map(|(key, _)| *key).collect();
        for key in gone {
            let use_number = self.used.remove(&key).expect("it was found just now");
            self.order.remove(&use_number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ahead_follows_what_lies_before() {
        let mut cache = PageCache::new(1000);
        cache.use_blocks(7, 10..13);
        let reach = |start, asked, goes_on| cache.reach(7, start, asked, goes_on);
        assert_eq!((reach(20, 2, false), reach(20, 2, true), reach(20, 40, true)), (2, 32, 40));
        assert_eq!(
            (reach(13, 2, false), reach(13, 3, false), reach(12, 2, false)),
            (5, 3, 2),
            "more than are asked for"
        );
        cache.use_blocks(7, 13..90);
        let cache = cache;
        assert_eq!(cache.reach(7, 90, 2, false), 32);
    }

    #[test]
    fn the_block_used_longest_ago_leaves_first() {
        let mut cache = PageCache::new(4);
        cache.use_blocks(7, 0..4);
        cache.use_blocks(7, 0..1);
        cache.use_blocks(8, 5..7);
        assert_eq!(cache.missing(7, 0..5), [1..3, 4..5]);
        assert_eq!(cache.missing(8, 4..8), [4..5, 7..8]);
        cache.forget(7);
        assert_eq!(cache.missing(7, 0..5), vec![0..5]);
        assert_eq!(cache.missing(8, 5..7), []);
    }
}
