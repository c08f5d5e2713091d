//! Memory for the lists of runs that have no room in the table of S-blocks: blocks of 2, 4, 8 … runs, cut from pages of each size. A
//! block that is free names the next free one, so that what is free takes no memory beside itself.
//!
//! Invariants:
//! 1. A block is in one list, or free.

use super::cached::PackedRun;

/// Runs of a page are 2 to this power; of one whose only block is larger, as many as the block has.
const PAGE_SIZE: u32 = 10;
/// The end of the free blocks.
const NO_BLOCK: u32 = u32::MAX;

/// The blocks of one size.
#[derive(Clone, Debug)]
struct Blocks {
    pages: Vec<Box<[PackedRun]>>,
    /// The free block that is taken next.
    free: u32,
}

/// The pool.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// By size: blocks of size n have 2^n runs.
    sizes: Vec<Blocks>,
}

/// How many blocks of `size` a page has: 2 to this power.
fn blocks_of_page(size: u32) -> u32 {
    PAGE_SIZE.saturating_sub(size)
}

impl Blocks {
    /// The page of a block of `size`, and where in it the block begins.
    #[inline]
    fn place(size: u32, block: u32) -> (usize, usize) {
        let blocks = blocks_of_page(size);
        ((block >> blocks) as usize, ((block & ((1 << blocks) - 1)) << size) as usize)
    }

    #[inline]
    fn block(&self, size: u32, block: u32) -> &[PackedRun] {
        let (page, start) = Blocks::place(size, block);
        &self.pages[page][start..start + (1 << size)]
    }

    #[inline]
    fn block_mut(&mut self, size: u32, block: u32) -> &mut [PackedRun] {
        let (page, start) = Blocks::place(size, block);
        &mut self.pages[page][start..start + (1 << size)]
    }

    fn put_free(&mut self, size: u32, block: u32) {
        let next = std::mem::replace(&mut self.free, block);
        self.block_mut(size, block)[0] = PackedRun::link(next);
    }

    #[cold]
    fn make_page(&mut self, size: u32) {
        let first = (self.pages.len() as u32) << blocks_of_page(size);
        self.pages.push(vec![PackedRun::NONE; 1 << PAGE_SIZE.max(size)].into());
        (first..first + (1 << blocks_of_page(size))).rev().for_each(|block| self.put_free(size, block));
    }
}

impl Pool {
    /// The runs that a block of `size` holds.
    pub fn runs_of(size: u32) -> usize {
        1 << size
    }

    /// The size of the blocks that hold so many runs.
    pub fn size_for(runs: usize) -> u32 {
        runs.next_power_of_two().trailing_zeros()
    }

    /// A block of `size`; what it holds is of no account.
    pub fn take(&mut self, size: u32) -> u32 {
        if self.sizes.len() <= size as usize {
            self.sizes.resize(size as usize + 1, Blocks { pages: Vec::new(), free: NO_BLOCK });
        }
        let blocks = &mut self.sizes[size as usize];
        if blocks.free == NO_BLOCK {
            blocks.make_page(size);
        }
        let block = blocks.free;
        blocks.free = blocks.block(size, block)[0].offset;
        block
    }

    /// Gives a block back.
    pub fn free(&mut self, size: u32, block: u32) {
        self.sizes[size as usize].put_free(size, block);
    }

    /// The runs of a block.
    #[inline]
    pub fn block(&self, size: u32, block: u32) -> &[PackedRun] {
        self.sizes[size as usize].block(size, block)
    }

    /// The runs of a block, to be changed.
    #[inline]
    pub fn block_mut(&mut self, size: u32, block: u32) -> &mut [PackedRun] {
        self.sizes[size as usize].block_mut(size, block)
    }

    /// The runs of a block, to be changed, and those of one of a smaller size.
    pub fn two_blocks(&mut self, size: u32, block: u32, smaller: u32, other: u32) -> (&mut [PackedRun], &[PackedRun]) {
        assert!(smaller < size, "blocks of {smaller} and {size}");
        let (below, from) = self.sizes.split_at_mut(size as usize);
        (from[0].block_mut(size, block), below[smaller as usize].block(smaller, other))
    }

    /// Bytes that it takes beside itself.
    pub fn measured_bytes(&self) -> u64 {
        let pages = self.sizes.iter().flat_map(|blocks| &blocks.pages);
        let pages: usize = pages.map(|page| size_of_val(page) + size_of_val(&**page)).sum();
        (pages + self.sizes.capacity() * size_of::<Blocks>()) as u64
    }

    /// Blocks that are in a list.
    #[cfg(test)]
    pub fn blocks_in_use(&self) -> usize {
        let in_use = |(size, blocks): (u32, &Blocks)| {
            let next = |block: &u32| (*block != NO_BLOCK).then(|| blocks.block(size, *block)[0].offset);
            let free = std::iter::successors(Some(blocks.free), next).count() - 1;
            (blocks.pages.len() << blocks_of_page(size)) - free
        };
        (0..).zip(&self.sizes).map(in_use).sum()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: blocks do not overlap, and what is free is used again. Method: blocks of every size, more than a page of each and some
    //! larger than one, each filled with its own number and read when all are.

    use super::*;

    const SIZES: std::ops::Range<u32> = 1..13;

    fn filled(pool: &mut Pool) -> Vec<(u32, u32)> {
        let take = |pool: &mut Pool, size| (size, pool.take(size));
        let taken: Vec<_> = SIZES.flat_map(|size| (0..600).map(move |_| size)).map(|size| take(pool, size)).collect();
        for (number, &(size, block)) in (0..).zip(&taken) {
            pool.block_mut(size, block).fill(PackedRun::link(number));
        }
        taken
    }

    #[test]
    fn blocks_hold_what_is_their_own() {
        let mut pool = Pool::default();
        let taken = filled(&mut pool);
        for (number, &(size, block)) in (0..).zip(&taken) {
            let runs = pool.block(size, block);
            assert_eq!(runs.len(), 1 << size);
            assert!(runs.iter().all(|run| run.offset == number), "block {block} of size {size}");
        }
        assert_eq!(pool.blocks_in_use(), 600 * SIZES.len());
        let bytes = pool.measured_bytes();
        taken.iter().for_each(|&(size, block)| pool.free(size, block));
        assert_eq!(pool.blocks_in_use(), 0);
        filled(&mut pool);
        assert_eq!(pool.measured_bytes(), bytes);
    }
}
