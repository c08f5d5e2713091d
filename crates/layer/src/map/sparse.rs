//! A table with an item for every number below a length, in which only changed pages take memory. A page is allocated
//! when one of its items is changed for the first time. So the table of a large drive is created quickly, and its
//! memory is proportional to the changed pages.
//!
//! Invariants:
//! 1. An item that was never changed has its initial value. The owner of the table computes that value; the table does
//!    not store it, except in pages with a changed item.

use std::ops::Range;

/// Number of items in a page.
const PAGE_ITEMS: usize = 64;

/// A table with an item for every index below a length, in pages of 64 items. A page takes memory only after one of its
/// items was changed. The caller computes the initial values of items.
#[derive(Clone, Debug)]
pub struct Sparse<T> {
    pages: Vec<Option<Box<[T; PAGE_ITEMS]>>>,
    len: usize,
}

impl<T> Sparse<T> {
    /// Returns a table of `len` items, none of which was changed: no page is allocated.
    pub fn new(len: usize) -> Sparse<T> {
        Sparse { pages: (0..len.div_ceil(PAGE_ITEMS)).map(|_| None).collect(), len }
    }

    /// Returns the number of items, changed or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the table has no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the item at `index`, or `None` if no item of its page of 64 was ever changed. Another item of the page
    /// may have been changed; then the result is the initial value of this one.
    ///
    /// # Panics
    ///
    /// If `index` lies past the last page.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.pages[index / PAGE_ITEMS].as_ref().map(|page| &page[index % PAGE_ITEMS])
    }

    /// Returns the item at `index` for a change. If its page is not allocated yet, allocates it and sets each of its 64
    /// items to its initial value, which `first` computes from the item's index (also of indices past the length of the
    /// table).
    ///
    /// # Panics
    ///
    /// If `index` lies past the last page.
    #[inline]
    pub fn change(&mut self, index: usize, first: impl Fn(usize) -> T) -> &mut T {
        let page = index / PAGE_ITEMS;
        let items = self.pages[page].get_or_insert_with(|| made(page, first));
        &mut items[index % PAGE_ITEMS]
    }

    /// Returns the items of all allocated pages with their indices, in order of index. They include items that still
    /// have their initial values; items of pages that are not allocated are left out.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let made = self.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.as_ref()?)));
        let items = made.flat_map(|(number, page)| (number * PAGE_ITEMS..).zip(page.iter()));
        items.take_while(|&(index, _)| index < self.len)
    }

    /// Returns every page in order: the range of the indices of its items, and the items. The items are `None` if the
    /// page is not allocated, so that all of them have their initial values.
    #[inline]
    pub fn pages(&self) -> impl Iterator<Item = (Range<usize>, Option<&[T]>)> {
        self.pages.iter().enumerate().map(|(number, page)| {
            let first = number * PAGE_ITEMS;
            let numbers = first..self.len.min(first + PAGE_ITEMS);
            (numbers.clone(), page.as_ref().map(|items| &items[..numbers.len()]))
        })
    }

    /// Returns the bytes of memory that the table takes now. Heap memory that the items own is not counted.
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
    //! Goal: the table equals a vector, and takes memory for changed pages only. Method: random changes on both.

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
