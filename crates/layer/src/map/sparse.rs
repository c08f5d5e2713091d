//! A table with an item for everything on a drive, of which only what was touched takes memory: pages are made when an item of theirs
//! is first changed. A large drive is laid out at once, and its memory follows what is written.
//!
//! Invariants:
//! 1. An item that was never changed is what its owner says it is at first; the table knows nothing of it.

use std::ops::Range;

/// Items of a page.
const PAGE_ITEMS: usize = 64;

/// The table.
#[derive(Clone, Debug)]
pub struct Sparse<T> {
    pages: Vec<Option<Box<[T; PAGE_ITEMS]>>>,
    len: usize,
}

impl<T> Sparse<T> {
    /// A table of `len` items, none of them changed.
    pub fn new(len: usize) -> Sparse<T> {
        Sparse { pages: (0..len.div_ceil(PAGE_ITEMS)).map(|_| None).collect(), len }
    }

    /// How many items there are, changed or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Item `index`, unless its page is as at first.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.pages[index / PAGE_ITEMS].as_ref().map(|page| &page[index % PAGE_ITEMS])
    }

    /// Item `index`, to be changed; `first` says what an item is at first.
    #[inline]
    pub fn change(&mut self, index: usize, first: impl Fn(usize) -> T) -> &mut T {
        let page = index / PAGE_ITEMS;
        let items = self.pages[page].get_or_insert_with(|| made(page, first));
        &mut items[index % PAGE_ITEMS]
    }

    /// The items of all pages that were made, in order, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let made = self.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.as_ref()?)));
        let items = made.flat_map(|(number, page)| (number * PAGE_ITEMS..).zip(page.iter()));
        items.take_while(|&(index, _)| index < self.len)
    }

    /// All pages in order: the numbers of their items, and these unless they are as at first.
    #[inline]
    pub fn pages(&self) -> impl Iterator<Item = (Range<usize>, Option<&[T]>)> {
        self.pages.iter().enumerate().map(|(number, page)| {
            let first = number * PAGE_ITEMS;
            let numbers = first..self.len.min(first + PAGE_ITEMS);
            (numbers.clone(), page.as_ref().map(|items| &items[..numbers.len()]))
        })
    }

    /// Bytes of memory that it takes now, beside what its items take elsewhere.
    pub fn measured_bytes(&self) -> u64 {
        let made = self.pages.iter().flatten().count() * PAGE_ITEMS * size_of::<T>();
        (self.pages.capacity() * size_of::<Option<Box<[T; PAGE_ITEMS]>>>() + made) as u64
    }
}

#[cold]
fn made<T>(page: usize, first: impl Fn(usize) -> T) -> Box<[T; PAGE_ITEMS]> {
    let items: Box<[T]> = (page * PAGE_ITEMS..(page + 1) * PAGE_ITEMS).map(first).collect();
    items.try_into().unwrap_or_else(|_| unreachable!("a page has as many items as were made"))
}

#[cfg(test)]
mod tests {
    //! Goal: the table equals a vector, and takes memory for what was changed. Method: random changes on both.

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_vector(changes in prop::collection::vec((0usize..1000, 0usize..9), 0..12)) {
            let (mut sparse, mut twin) = (Sparse::new(1000), (0..1000).collect::<Vec<usize>>());
            for &(index, value) in &changes {
                *sparse.change(index, |index| index) = value;
                twin[index] = value;
            }
            for (index, &value) in twin.iter().enumerate() {
                prop_assert_eq!(sparse.get(index).copied().unwrap_or(index), value);
            }
            for (index, &value) in sparse.iter() {
                prop_assert_eq!(twin[index], value);
            }
            let mut next = 0;
            for (numbers, items) in sparse.pages() {
                prop_assert_eq!(numbers.start, next);
                next = numbers.end;
                let items = items.map_or_else(|| numbers.clone().collect(), Vec::from);
                prop_assert_eq!(&items, &twin[numbers]);
            }
            prop_assert_eq!(next, twin.len());
            let pages: std::collections::BTreeSet<usize> = changes.iter().map(|(index, _)| index / PAGE_ITEMS).collect();
            let made = pages.len() * PAGE_ITEMS * size_of::<usize>();
            prop_assert_eq!(sparse.measured_bytes() as usize, sparse.pages.capacity() * size_of::<usize>() + made);
        }
    }
}
