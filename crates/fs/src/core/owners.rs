//! Owners of the blocks: which file has an extent, and where in the file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeBounds;

use crate::format::change::{Extent, Inode};

/// Owner of an extent: the file, and the first block of the extent in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// Inode number of the file.
    pub inode: Inode,
    /// First block of the extent: a block of 4 KiB, counted from 0 at the start of the file.
    pub at: u32,
}

/// Owner of each extent, by the first block of the extent on the device.
pub(in crate::core) struct Owners(RefCell<BTreeMap<u64, Owner>>);

impl Owners {
    pub(in crate::core) fn new(owners: BTreeMap<u64, Owner>) -> Owners {
        Owners(RefCell::new(owners))
    }

    /// Removes extents that no file has any more.
    pub(in crate::core) fn remove<'a>(&self, extents: impl IntoIterator<Item = &'a Extent>) {
        let mut owners = self.0.borrow_mut();
        for extent in extents {
            owners.remove(&extent.start);
        }
    }

    /// Adds extents of file `inode`.
    pub(in crate::core) fn add<'a>(&self, inode: Inode, extents: impl IntoIterator<Item = &'a Extent>) {
        let owner = |extent: &Extent| (extent.start, Owner { inode, at: extent.at });
        self.0.borrow_mut().extend(extents.into_iter().map(owner));
    }

    /// Returns the last extent that begins at block `block` or before it: its first block, and its owner.
    pub(in crate::core) fn at_or_before(&self, block: u64) -> Option<(u64, Owner)> {
        self.0.borrow().range(..=block).next_back().map(|(start, owner)| (*start, *owner))
    }

    /// Returns the extents that begin in `range`: the first block of each, and its owner.
    pub(in crate::core) fn beginning_in(&self, range: impl RangeBounds<u64>) -> Vec<(u64, Owner)> {
        self.0.borrow().range(range).map(|(start, owner)| (*start, *owner)).collect()
    }
}
