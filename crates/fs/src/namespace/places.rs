//! Names of each file: the way from a file to its directories. Only records with the data need this (store `log`).
//!
//! Invariants:
//! 1. Every name of a file is here once. The name given last comes first, and is the one in records.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::Namespace;
use super::table::Table;
use crate::format::change::Inode;

/// A name: its directory, and its cookie in that directory.
pub(super) type Place = (Inode, u64);

/// A [`Place`] as it is stored, in less memory: no directory has number 0.
type Kept = (NonZeroU32, u64);

/// Names of all files.
#[derive(Default, Debug)]
pub(super) struct Places {
    /// The name given last, by inode.
    first: Table<Kept>,
    /// The other names, for the few files with several. The name given last is at the end.
    more: BTreeMap<Inode, Vec<Place>>,
}

impl Places {
    /// Returns the name of a file that was given last.
    pub(super) fn get(&self, inode: Inode) -> Option<Place> {
        self.first.get(inode).map(|(directory, cookie)| (directory.get(), *cookie))
    }

    /// Adds a name of a file.
    pub(super) fn add(&mut self, inode: Inode, place: Place) {
        let before = self.get(inode);
        self.put(inode, Some(place));
        if let Some(before) = before.filter(|before| *before != place) {
            self.more.entry(inode).or_default().push(before);
        }
    }

    fn put(&mut self, inode: Inode, place: Option<Place>) {
        match place.and_then(|(directory, cookie)| Some((NonZeroU32::new(directory)?, cookie))) {
            Some(kept) => self.first.insert(inode, kept),
            None => self.first.remove(inode),
        };
    }

    /// Removes one name of a file. The name given last becomes the most recent of those left.
    pub(super) fn remove(&mut self, inode: Inode, place: Place) {
        let is_first = self.get(inode) == Some(place);
        let others = self.more.get_mut(&inode);
        if is_first {
            let next = others.and_then(Vec::pop);
            self.put(inode, next);
        } else if let Some(others) = others {
            others.retain(|other| *other != place);
        }
        if self.more.get(&inode).is_some_and(Vec::is_empty) {
            self.more.remove(&inode);
        }
    }

    /// Removes all names of a file.
    pub(super) fn forget(&mut self, inode: Inode) {
        self.first.remove(inode);
        self.more.remove(&inode);
    }
}

impl Namespace {
    /// Builds an index from each file to its names, and keeps it up to date from now on. [`Namespace::name_of`] needs
    /// the index.
    pub fn know_places(&mut self) {
        let mut places = Places::default();
        for (directory, node) in self.nodes_from(0) {
            for (cookie, entry) in node.directory().into_iter().flat_map(|names| names.entries_from(0)) {
                places.add(entry.inode, (directory, cookie));
            }
        }
        self.places = Some(places);
    }

    /// Returns the directory and the name that was given to file `inode` last, among the names that it still has.
    /// Returns `None` if the file has no name, or if there is no index ([`Namespace::know_places`]).
    pub fn name_of(&self, inode: Inode) -> Option<(Inode, &[u8])> {
        let (directory, cookie) = self.places.as_ref()?.get(inode)?;
        let (found, entry) = self.get(directory)?.directory()?.entries_from(cookie).next()?;
        (found == cookie).then_some((directory, &*entry.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_given_last_is_told_and_the_others_are_kept() {
        let mut places = Places::default();
        places.add(5, (1, 100));
        places.add(5, (2, 200));
        places.add(5, (2, 200));
        places.add(5, (3, 300));
        assert_eq!(places.get(5), Some((3, 300)));
        places.remove(5, (2, 200));
        places.remove(5, (3, 300));
        assert_eq!(places.get(5), Some((1, 100)));
        assert!(places.more.is_empty());
        places.remove(5, (1, 100));
        assert_eq!((places.get(5), places.get(900)), (None, None));
        places.add(5, (4, 400));
        places.add(5, (1, 100));
        places.forget(5);
        assert_eq!((places.get(5), places.more.len()), (None, 0));
    }
}
