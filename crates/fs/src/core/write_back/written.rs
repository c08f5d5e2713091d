//! Cache of written blocks. An append, or a change of a part of a block, builds on them without reading the device
//! (Singh 2014 §2.2.2 keeps whole files in its buffer cache). Reads are not served from here: readers have the kernel's
//! page cache, and a scrub must see the contents of the device.
//!
//! Invariants:
//! 1. A block in the cache is equal to the stored block of its file, up to the end of the file.
//! 2. The cache has at most [`crate::core::Bounds::written_blocks`] blocks.
//! 3. `order` has each block once with the number of its last write, and at most twice as many entries as the cache may
//!    have blocks.

use std::collections::{BTreeMap, VecDeque};

use super::WriteBack;
use super::staged::{Block, Blocks};
use crate::core::CoreParts;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::Inode;

type Bytes = Box<[u8; BLOCK_BYTES]>;

/// Cache of the blocks that were written last.
pub(crate) struct Written {
    blocks_max: usize,
    /// Blocks by file and block of the file, each with the number of its write.
    blocks: BTreeMap<(Inode, u32), (u64, Bytes)>,
    /// Writes in order. An entry is stale if its block was written again since, or has left the cache.
    order: VecDeque<(u64, (Inode, u32))>,
    writings: u64,
}

impl Written {
    /// Creates a cache of at most `blocks_max` blocks.
    pub(crate) fn new(blocks_max: usize) -> Written {
        Written { blocks_max, blocks: BTreeMap::new(), order: VecDeque::new(), writings: 0 }
    }

    /// Adds blocks of a file, which are stored now, and evicts those that were written longest ago.
    pub(crate) fn keep(&mut self, inode: Inode, staged: Blocks) {
        for (at, block) in staged.into_each() {
            let key = (inode, at);
            match block {
                Block::Bytes(bytes) => {
                    self.writings += 1;
                    self.blocks.insert(key, (self.writings, bytes));
                    self.order.push_back((self.writings, key));
                }
                Block::Zeros => drop(self.blocks.remove(&key)),
            }
        }
        while self.blocks.len() > self.blocks_max {
            let (writing, oldest) = self.order.pop_front().expect("each block that is here was written");
            if is_current(&self.blocks, writing, oldest) {
                self.blocks.remove(&oldest);
            }
        }
        if self.order.len() > 2 * self.blocks_max {
            self.order.retain(|(writing, key)| is_current(&self.blocks, *writing, *key));
        }
    }

    /// Removes the blocks of a file from block `end` on.
    pub(crate) fn cut(&mut self, inode: Inode, end: u32) {
        let gone: Vec<_> = self.blocks.range((inode, end)..=(inode, u32::MAX)).map(|(key, _)| *key).collect();
        gone.iter().for_each(|key| drop(self.blocks.remove(key)));
    }

    /// Copies a block to `into`, and returns whether the cache has it.
    fn copy(&self, inode: Inode, at: u64, into: &mut [u8]) -> bool {
        let found = u32::try_from(at).ok().and_then(|at| self.blocks.get(&(inode, at)));
        found.is_some_and(|(_, bytes)| {
            into.copy_from_slice(&bytes[..]);
            true
        })
    }
}

/// Returns whether the cache has block `key` as of write number `writing`.
fn is_current(blocks: &BTreeMap<(Inode, u32), (u64, Bytes)>, writing: u64, key: (Inode, u32)) -> bool {
    blocks.get(&key).is_some_and(|(last, _)| *last == writing)
}

impl WriteBack<'_> {
    /// Reads blocks of a file as they are stored, for a change that builds on them. Blocks for which `is_replaced`
    /// returns true may get any contents.
    pub(in crate::core) async fn read_to_change(
        self,
        inode: Inode,
        first: u64,
        into: &mut [u8],
        is_replaced: impl Fn(u64) -> bool,
    ) -> Result<(), FsError> {
        let is_here = {
            let written = self.0.written.borrow();
            let mut blocks = (first..).zip(into.chunks_mut(BLOCK_BYTES));
            blocks.all(|(at, block)| is_replaced(at) || written.copy(inode, at, block))
        };
        if is_here {
            return Ok(());
        }
        self.0.files().read_stored(inode, first, into, true).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(blocks: &[(u32, u8)]) -> Blocks {
        let mut staged = Blocks::default();
        for (at, byte) in blocks {
            let block = if *byte == 0 { Block::Zeros } else { Block::Bytes(Box::new([*byte; BLOCK_BYTES])) };
            staged.insert(*at, block);
        }
        staged
    }

    fn found(written: &Written, inode: Inode) -> Vec<(u32, u8)> {
        let mut block = [0; BLOCK_BYTES];
        (0..10).filter_map(|at| written.copy(inode, u64::from(at), &mut block).then_some((at, block[7]))).collect()
    }

    #[test]
    fn the_newest_of_each_block_is_kept_until_others_need_the_room() {
        let mut written = Written::new(4);
        written.keep(7, staged(&[(0, 1), (1, 2), (5, 3)]));
        written.keep(7, staged(&[(1, 9), (5, 0)]));
        assert_eq!(found(&written, 7), [(0, 1), (1, 9)], "a hole is nothing that was written");
        written.keep(8, staged(&[(0, 4), (1, 5), (2, 6)]));
        assert_eq!((found(&written, 7), found(&written, 8).len()), (vec![(1, 9)], 3), "the oldest goes first");
        written.cut(8, 1);
        assert_eq!((found(&written, 7), found(&written, 8)), (vec![(1, 9)], vec![(0, 4)]));
        for round in 0..9 {
            written.keep(8, staged(&[(0, round + 10), (3, round + 20)]));
            assert!(written.order.len() <= 8, "stale entries: {:?}", written.order);
        }
        assert_eq!((found(&written, 7), found(&written, 8)), (vec![(1, 9)], vec![(0, 18), (3, 28)]));
        written.keep(9, staged(&[(0, 1), (1, 2)]));
        assert_eq!((found(&written, 7), found(&written, 8)), (vec![], vec![(0, 18), (3, 28)]));
    }

    #[test]
    fn none_are_kept_where_none_may_be() {
        let mut written = Written::new(0);
        written.keep(7, staged(&[(0, 1)]));
        assert_eq!(found(&written, 7), []);
    }
}
