//! Model of the kernel's page cache in front of the core: it decides which blocks an application reads without a call
//! to the file system. It holds no bytes, for a load does not look at the bytes that it reads.
//!
//! Written and read blocks enter the cache; the least recently used block is evicted. Read-ahead follows Linux
//! (`page_cache_sync_ra`). A read that continues the last one reads at least 128 KiB. Any other read counts the cached
//! blocks right before its start. If they are more than the requested blocks, as many are read in addition, up to 128
//! KiB in total.
//!
//! Invariants:
//! 1. The cache never holds more blocks than its maximum.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::format::change::Inode;

/// Blocks that a sequential read reads at least: `read_ahead_kb` of Linux is 128.
const AHEAD_BLOCKS: u64 = 32;

/// Page cache with least-recently-used eviction.
#[derive(Debug)]
pub(super) struct PageCache {
    blocks_max: u64,
    /// Number of the last use of each block.
    used: BTreeMap<(Inode, u64), u64>,
    /// Block of each use.
    order: BTreeMap<u64, (Inode, u64)>,
    uses: u64,
}

impl PageCache {
    /// Returns an empty cache for `blocks_max` blocks.
    pub(super) fn new(blocks_max: u64) -> PageCache {
        PageCache { blocks_max, used: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// Notes a use of blocks of a file, and adds them to the cache.
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

    /// Returns the blocks among `blocks` that are not in the cache, as runs.
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

    /// Returns the number of blocks to read, with read-ahead, for `asked` blocks from `start` on, none of which is in
    /// the cache. `goes_on` says whether the read continues the last one.
    pub(super) fn reach(&self, inode: Inode, start: u64, asked: u64, goes_on: bool) -> u64 {
        if goes_on {
            return asked.max(AHEAD_BLOCKS);
        }
        let before = (1..=AHEAD_BLOCKS.min(start)).take_while(|back| self.used.contains_key(&(inode, start - back)));
        let history = before.count() as u64;
        if history > asked { asked.max(AHEAD_BLOCKS.min(history + asked)) } else { asked }
    }

    /// Removes all blocks of a file.
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
