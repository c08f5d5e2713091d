//! A medium in memory. Its pages are allocated on the first write. A clone shares pages until one of the two writes, so
//! cloning an image is cheap.
//!
//! Data in a lent block ([`Media::lend`]) is not copied: the medium keeps whole pages of the block. A block that was
//! overwritten completely is returned to the lender ([`Media::reclaim`]), because allocating memory costs more than
//! copying into memory in use.
//!
//! Zeros take no memory, except in pages with other bytes.
//!
//! Invariants:
//! 1. More than half of every kept block is in use, unless a clone of the medium shares it.

use std::io;
use std::sync::Arc;

use super::{Media, are_zeros};

/// Size of a page in bytes.
const PAGE_BYTES: usize = 64 << 10;

/// A page that was written.
#[derive(Clone, Debug)]
enum Page {
    /// A page in memory of its own.
    Own(Arc<[u8]>),
    /// A page in a lent block, from this byte of the block on.
    Kept(Arc<Vec<u8>>, usize),
}

impl Page {
    fn bytes(&self) -> &[u8] {
        match self {
            Page::Own(bytes) => bytes,
            Page::Kept(block, at) => &block[*at..at + PAGE_BYTES],
        }
    }
}

/// A medium in memory. A clone shares the memory of its original until one of the two is written.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pages: Vec<Option<Page>>,
    len: u64,
    /// Blocks lent until the next call of [`Media::lend`]; written data may lie in them.
    lent: Vec<Arc<Vec<u8>>>,
    /// Lent blocks that this medium has stopped using since the latest call of [`Media::lend`].
    unused: Vec<Arc<Vec<u8>>>,
}

impl Memory {
    /// Returns an empty medium of length 0.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Returns a medium that holds a copy of `bytes`, from byte 0 on.
    pub fn with(bytes: &[u8]) -> Memory {
        let mut memory = Memory::new();
        memory.write_at(0, bytes).expect("memory takes every write");
        memory
    }

    /// Returns the lent block that contains `from`, and the offset of `from` in it. Returns `None` if no block does, or
    /// if the whole pages of `from` would use half of the block or less.
    fn block_of(&self, offset: u64, from: &[u8]) -> Option<(Arc<Vec<u8>>, usize)> {
        let begin = (offset as usize).next_multiple_of(PAGE_BYTES);
        let kept_bytes = (offset as usize + from.len()).saturating_sub(begin) / PAGE_BYTES * PAGE_BYTES;
        let found = self.lent.iter().find(|block| {
            let (block, from) = (block.as_ptr_range(), from.as_ptr_range());
            block.start <= from.start && from.end <= block.end
        })?;
        let at = from.as_ptr().addr() - found.as_ptr().addr();
        (kept_bytes > 0 && is_enough(kept_bytes, found)).then(|| (found.clone(), at))
    }

    /// Replaces page number `page` by `new`. Returns the block of the old page if that lay in a lent block.
    fn replace(&mut self, page: usize, new: Page) -> Option<Arc<Vec<u8>>> {
        match self.pages[page].replace(new) {
            Some(Page::Kept(block, _)) => Some(block),
            _ => None,
        }
    }

    /// Handles a `block` that lost pages around number `page`. If too little of it is still in use, copies the rest; if
    /// nothing is, makes the block available for [`Media::reclaim`].
    fn settle(&mut self, page: usize, block: Arc<Vec<u8>>) {
        let users = Arc::strong_count(&block) - 1;
        if users > 0 && !is_enough(users * PAGE_BYTES, &block) {
            let reach = block.capacity() / PAGE_BYTES;
            let end = self.pages.len().min(page + reach + 1);
            for neighbour in self.pages[page.saturating_sub(reach)..end].iter_mut().flatten() {
                if matches!(neighbour, Page::Kept(of, _) if Arc::ptr_eq(of, &block)) {
                    *neighbour = Page::Own(neighbour.bytes().into());
                }
            }
        }
        if Arc::strong_count(&block) == 1 && !self.lent.is_empty() {
            self.unused.push(block);
        }
    }

    /// Writes zeros. Pages that have only zeros then take no memory.
    fn write_zeros(&mut self, offset: u64, from: &[u8]) {
        for_pages(offset, from.len(), |page, within, range| match self.pages.get_mut(page) {
            Some(slot @ Some(_)) if range.len() == PAGE_BYTES => {
                if let Some(Page::Kept(block, _)) = slot.take() {
                    self.settle(page, block);
                }
            }
            Some(Some(_)) => self.write_page(page, within, &from[range]),
            _ => {}
        });
    }

    /// Writes a page or a part of it.
    fn write_page(&mut self, page: usize, within: usize, from: &[u8]) {
        if from.len() == PAGE_BYTES && !matches!(self.pages[page], Some(Page::Own(_))) {
            // A page that is written as a whole for the first time need not be zeroed.
            if let Some(block) = self.replace(page, Page::Own(from.into())) {
                self.settle(page, block);
            }
            return;
        }
        match &self.pages[page] {
            None => self.pages[page] = Some(Page::Own(std::iter::repeat_n(0, PAGE_BYTES).collect())),
            Some(kept @ Page::Kept(..)) => {
                let own = Page::Own(kept.bytes().into());
                let block = self.replace(page, own).expect("it was kept");
                self.settle(page, block);
            }
            Some(Page::Own(_)) => {}
        }
        let Some(Page::Own(bytes)) = &mut self.pages[page] else { unreachable!("it was just made its own") };
        Arc::make_mut(bytes)[within..within + from.len()].copy_from_slice(from);
    }
}

/// Returns whether `bytes` bytes in use are enough to keep `block`: more than half.
fn is_enough(bytes: usize, block: &Vec<u8>) -> bool {
    2 * bytes > block.capacity()
}

/// Calls `each` for every page that the range touches, with the page number, the offset in the page and the range of
/// the buffer.
fn for_pages(offset: u64, length: usize, mut each: impl FnMut(usize, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < length {
        let at = offset as usize + done;
        let within = at % PAGE_BYTES;
        let part = (PAGE_BYTES - within).min(length - done);
        each(at / PAGE_BYTES, within, done..done + part);
        done += part;
    }
}

impl Media for Memory {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        for_pages(offset, into.len(), |page, within, range| {
            let part = &mut into[range];
            match self.pages.get(page) {
                Some(Some(page)) => part.copy_from_slice(&page.bytes()[within..within + part.len()]),
                _ => part.fill(0),
            }
        });
        Ok(())
    }

    fn lend(&mut self, blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {
        self.lent.clear();
        self.unused.clear();
        self.lent.extend(blocks);
    }

    fn reclaim(&mut self) -> Option<Vec<u8>> {
        std::iter::from_fn(|| self.unused.pop()).find_map(Arc::into_inner)
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        let end = offset + from.len() as u64;
        if are_zeros(from) {
            self.write_zeros(offset, from);
            self.len = self.len.max(end);
            return Ok(());
        }
        let pages = (end as usize).div_ceil(PAGE_BYTES);
        if pages > self.pages.len() {
            self.pages.resize_with(pages, || None);
        }
        let block = self.block_of(offset, from);
        // An older block is handled after its last page here is replaced. If it were handled earlier, pages that are
        // about to be replaced would be copied.
        let mut left: Option<(usize, Arc<Vec<u8>>)> = None;
        for_pages(offset, from.len(), |page, within, range| match &block {
            Some((block, at)) if range.len() == PAGE_BYTES => {
                let older = self.replace(page, Page::Kept(block.clone(), at + range.start));
                if let Some((_, of)) =
                    left.take_if(|(_, of)| older.as_ref().is_none_or(|older| !Arc::ptr_eq(of, older)))
                {
                    self.settle(page, of);
                }
                left = older.map(|older| (page, older));
            }
            _ => self.write_page(page, within, &from[range]),
        });
        if let Some((page, of)) = left {
            self.settle(page, of);
        }
        self.len = self.len.max(end);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: usize = PAGE_BYTES;

    /// Returns how many bytes of kept blocks are unused, beyond the bytes in use. Invariant 1 says 0.
    fn wasted(memory: &Memory) -> usize {
        let mut kept: Vec<(usize, usize)> = Vec::new();
        for page in memory.pages.iter().flatten() {
            let Page::Kept(block, _) = page else { continue };
            let address = block.as_ptr().addr();
            match kept.iter_mut().find(|(known, _)| *known == address) {
                Some((_, left)) => *left = left.saturating_sub(2 * PAGE),
                None => kept.push((address, (block.capacity() + 1).saturating_sub(2 * PAGE))),
            }
        }
        kept.iter().map(|(_, left)| left).sum()
    }

    fn whole(memory: &mut Memory, length: usize) -> Vec<u8> {
        let mut bytes = vec![0xee; length];
        memory.read_at(0, &mut bytes).expect("it is memory");
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Compares with an array: writes with and without lent blocks, at any offset and length. A clone made in
        /// between keeps its contents.
        #[test]
        fn holds_what_was_written_whoever_owns_it(
            acts in prop::collection::vec((0usize..12 * PAGE, 1usize..6 * PAGE, 0usize..PAGE, any::<bool>(), any::<bool>()), 1..24),
            copied_at in 0usize..24,
        ) {
            let (mut memory, mut naive, mut copy) = (Memory::new(), vec![0; 18 * PAGE], None);
            for (number, (offset, length, skip, is_lent, at_page)) in acts.into_iter().enumerate() {
                if number == copied_at {
                    copy = Some((memory.clone(), naive.clone()));
                }
                let offset = if at_page { offset / PAGE * PAGE } else { offset };
                let block = Arc::new(vec![number as u8 + 1; skip + length]);
                if is_lent {
                    memory.lend(&mut std::iter::once(block.clone()));
                }
                memory.write_at(offset as u64, &block[skip..]).expect("it is memory");
                memory.lend(&mut std::iter::empty());
                naive[offset..offset + length].fill(number as u8 + 1);
                drop(block);
                if copy.is_none() {
                    prop_assert_eq!(wasted(&memory), 0);
                }
            }
            prop_assert!(whole(&mut memory, naive.len()) == naive);
            if let Some((mut copy, naive)) = copy {
                prop_assert!(whole(&mut copy, naive.len()) == naive);
            }
        }
    }

    #[test]
    fn zeros_take_no_memory() {
        let mut memory = Memory::new();
        memory.write_at(5 * PAGE as u64, &vec![0; 100 * PAGE]).expect("it is memory");
        assert_eq!((memory.len(), memory.pages.iter().flatten().count()), (105 * PAGE as u64, 0));
        memory.write_at(0, &vec![7; 3 * PAGE]).expect("it is memory");
        memory.write_at(PAGE as u64 - 5, &vec![0; PAGE + 10]).expect("it is memory");
        assert_eq!(memory.pages.iter().flatten().count(), 2, "the page between is gone");
        let expected = [vec![7; PAGE - 5], vec![0; PAGE + 10], vec![7; PAGE - 5]].concat();
        assert!(whole(&mut memory, 3 * PAGE) == expected);
    }

    #[test]
    fn pages_of_a_lent_block_are_kept_and_others_are_not() {
        let mut memory = Memory::new();
        let block = Arc::new(vec![7; 8 * PAGE]);
        memory.lend(&mut std::iter::once(block.clone()));
        memory.write_at(100, &block).expect("it is memory");
        // Seven whole pages lie in the block; the eighth is split. The loan is one more user of the block, the test
        // another.
        assert_eq!(Arc::strong_count(&block), 2 + 7);
        memory.lend(&mut std::iter::empty());
        memory.write_at(PAGE as u64, &[9]).expect("it is memory");
        assert_eq!(Arc::strong_count(&block), 1 + 6, "the page that was changed has become another");
        memory.write_at(3 * PAGE as u64 - 1, &[9; 2]).expect("it is memory");
        assert_eq!(Arc::strong_count(&block), 1 + 4, "with the test's own there are five users of eight pages");
        memory.write_at(4 * PAGE as u64, &[9]).expect("it is memory");
        assert_eq!(Arc::strong_count(&block), 1, "four are too few: the remaining pages are copied");
        let small = Arc::new(vec![5; 5 * PAGE]);
        memory.lend(&mut std::iter::once(small.clone()));
        memory.write_at(0, &small[..2 * PAGE]).expect("it is memory");
        assert_eq!(Arc::strong_count(&small), 2, "two of five pages are too few to keep it");
    }

    #[test]
    fn a_block_that_is_overwritten_goes_back_to_who_lends() {
        let mut memory = Memory::new();
        let write = |memory: &mut Memory, offset: usize, value: u8| {
            let block = Arc::new(vec![value; 8 * PAGE]);
            let address = block.as_ptr().addr();
            memory.lend(&mut std::iter::once(block.clone()));
            memory.write_at(offset as u64, &block).expect("it is memory");
            address
        };
        let first = write(&mut memory, 0, 1);
        assert!(memory.reclaim().is_none(), "nothing lay there before");
        let second = write(&mut memory, 8 * PAGE, 2);
        write(&mut memory, 4 * PAGE, 3);
        // Half of each block is too little to keep it: the other halves are copied.
        let mut unused = Vec::from_iter(std::iter::from_fn(|| memory.reclaim()));
        unused.sort_by_key(|block| block[0]);
        let addresses: Vec<usize> = unused.iter().map(|block| block.as_ptr().addr()).collect();
        assert_eq!(addresses, [first, second]);
        unused.iter_mut().for_each(|block| block.fill(9));
        let expected = [1u8, 3, 2].into_iter().zip([4, 8, 4]).flat_map(|(value, pages)| vec![value; pages * PAGE]);
        assert!(whole(&mut memory, 16 * PAGE).into_iter().eq(expected));
        write(&mut memory, 4 * PAGE, 4);
        memory.lend(&mut std::iter::empty());
        assert!(memory.reclaim().is_none(), "the loan is over");
    }
}
