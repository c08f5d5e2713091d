//! A table by inode number. Entries of small, dense numbers are in a vector. Entries of large, sparse numbers, as
//! crafted stores have them, are in a map. So the memory grows with the number of entries, not with the largest number.
//!
//! Invariants:
//! 1. The vector has at most [`SPARSE`] slots for each entry inserted so far, and [`FEW`] more.
//! 2. The map has no entry for the number behind the vector: [`Table::end`] is free.

use std::collections::BTreeMap;

use crate::format::change::Inode;

/// Maximum number of slots of the vector for each entry.
const SPARSE: usize = 4;
/// Slots that the vector may have in addition.
const FEW: usize = 1024;

/// Table of entries by inode number.
#[derive(Debug)]
pub(super) struct Table<T> {
    near: Vec<Option<T>>,
    far: BTreeMap<Inode, T>,
    /// Number of entries.
    count: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { near: Vec::new(), far: BTreeMap::new(), count: 0 }
    }
}

impl<T> Table<T> {
    /// Returns the entry of number `inode`.
    pub(super) fn get(&self, inode: Inode) -> Option<&T> {
        match self.near.get(inode as usize) {
            Some(found) => found.as_ref(),
            None => self.far.get(&inode),
        }
    }

    /// Returns the entry of number `inode` for changes.
    pub(super) fn get_mut(&mut self, inode: Inode) -> Option<&mut T> {
        match self.near.get_mut(inode as usize) {
            Some(found) => found.as_mut(),
            None => self.far.get_mut(&inode),
        }
    }

    /// Returns the number of entries.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns a free number: the one behind the numbers in the vector.
    pub(super) fn end(&self) -> usize {
        self.near.len()
    }

    /// Inserts an entry, and returns the entry that `inode` had before.
    pub(super) fn insert(&mut self, inode: Inode, what: T) -> Option<T> {
        let index = inode as usize;
        if index > self.near.len() && index >= SPARSE * (self.count + 1) + FEW {
            let before = self.far.insert(inode, what);
            self.count += usize::from(before.is_none());
            return before;
        }
        while self.near.len() <= index {
            self.grow();
        }
        let before = self.near[index].replace(what);
        self.count += usize::from(before.is_none());
        // Entries of the map may follow the vector without a gap now.
        while self.far.first_key_value().is_some_and(|(next, _)| *next as usize == self.near.len()) {
            self.near.extend(self.far.pop_first().map(|(_, next)| Some(next)));
        }
        before
    }

    /// Appends a slot to the vector, with the entry of the map for that number, if there is one.
    fn grow(&mut self) {
        let there = self.far.remove(&(self.near.len() as Inode));
        self.near.push(there);
    }

    /// Removes and returns the entry of number `inode`.
    pub(super) fn remove(&mut self, inode: Inode) -> Option<T> {
        let found = match self.near.get_mut(inode as usize) {
            Some(found) => found.take(),
            None => self.far.remove(&inode),
        };
        self.count -= usize::from(found.is_some());
        found
    }

    /// Returns all entries with numbers from `first` on, in order.
    pub(super) fn from(&self, first: Inode) -> impl Iterator<Item = (Inode, &T)> {
        let start = (first as usize).min(self.near.len());
        let near = self.near[start..].iter().enumerate();
        let near = near.filter_map(move |(at, found)| found.as_ref().map(|found| ((start + at) as Inode, found)));
        near.chain(self.far.range(first..).map(|(inode, found)| (*inode, found)))
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Compares the table with a map, for dense and for sparse numbers; the vector stays in proportion.
    #[test]
    fn it_is_what_a_map_says() {
        for seed in 0..40 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut below = |end: u64| random.next_u64() % end;
            let (mut table, mut map, mut put) = (Table::default(), BTreeMap::new(), 0);
            for step in 0..600u32 {
                let far = [1 + below(40), 1 + below(9000), u64::from(u32::MAX) - below(20), table.end() as u64];
                let inode = far[below(4) as usize] as Inode;
                if below(3) == 0 {
                    assert_eq!(table.remove(inode), map.remove(&inode), "seed {seed}");
                } else {
                    assert_eq!(table.insert(inode, step), map.insert(inode, step));
                    put += 1;
                }
                assert!(!map.contains_key(&(table.end() as Inode)), "seed {seed}: {} is free", table.end());
                assert!(table.end() <= SPARSE * (put + 1) + FEW + 1, "{} places for {put} files", table.end());
                assert_eq!(table.count(), map.len());
                let from = below(9000) as Inode;
                let found: Vec<(Inode, u32)> = table.from(from).map(|(inode, found)| (inode, *found)).collect();
                assert_eq!(found, map.range(from..).map(|(inode, found)| (*inode, *found)).collect::<Vec<_>>());
                assert_eq!(table.get(inode), map.get(&inode));
            }
        }
    }
}
