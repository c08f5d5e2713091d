//! A file in memory. Nodes are small, for there may be millions.

use std::collections::BTreeMap;

use super::directory::Directory;
use crate::format::change::{Attributes, Extent};
use crate::format::file_type::{DIRECTORY, FORMAT, REGULAR};

/// Extents of a file, in the order of the file's blocks and without overlaps. Most files have only one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Extents {
    /// No extents: no block of the file is stored. The file is empty, a single hole, or its data are only in memory.
    #[default]
    None,
    /// One extent.
    One(Extent),
    /// At least two extents.
    Many(Box<Vec<Extent>>),
}

impl Extents {
    /// Returns all extents, in ascending order of the file's blocks.
    pub fn as_slice(&self) -> &[Extent] {
        match self {
            Extents::None => &[],
            Extents::One(extent) => std::slice::from_ref(extent),
            Extents::Many(extents) => extents,
        }
    }

    /// Returns the extents, cut to the blocks of the file from `from` up to, and without, `to`, in ascending order.
    /// Extents outside of this range are left out.
    pub fn within(&self, from: u64, to: u64) -> impl Iterator<Item = Extent> + '_ {
        let all = self.as_slice();
        let first = all.partition_point(|extent| extent.end() <= from);
        let rest = all[first..].iter().take_while(move |extent| u64::from(extent.at) < to);
        rest.filter_map(move |extent| extent.within(from, to))
    }

    /// Returns the extent whose first block is block `at` of the file. Returns `None` if no extent begins there, even
    /// if one covers the block.
    pub fn beginning_at(&self, at: u32) -> Option<&Extent> {
        let all = self.as_slice();
        all.binary_search_by_key(&at, |extent| extent.at).ok().map(|number| &all[number])
    }

    /// Replaces the extents of the blocks from `from` up to, and without, `to` of the file by `pieces`; extents that
    /// reach over these bounds are cut. `pieces` lie within the range, in the order of the file's blocks; where there
    /// are none, a hole is left. If the number of extents does not change, the extents around the range are not moved
    /// in memory.
    pub fn put(&mut self, from: u32, to: u32, pieces: &[Extent]) {
        let mut all = match std::mem::take(self) {
            Extents::Many(all) => all,
            few => Box::new(few.as_slice().to_vec()),
        };
        let first = all.partition_point(|extent| extent.end() <= u64::from(from));
        let behind = all.partition_point(|extent| extent.at < to).max(first);
        let left = all[first..behind].first().and_then(|extent| extent.within(0, u64::from(from)));
        let right = all[first..behind].last().and_then(|extent| extent.within(u64::from(to), u64::MAX));
        all.splice(first..behind, left.into_iter().chain(pieces.iter().copied()).chain(right));
        *self = if all.len() > 1 { Extents::Many(all) } else { Extents::from(all.as_slice()) };
    }

    /// Returns the sum of the lengths of all extents, in blocks of 4 KiB.
    pub fn blocks(&self) -> u64 {
        self.as_slice().iter().map(|extent| u64::from(extent.blocks)).sum()
    }
}

impl From<&[Extent]> for Extents {
    fn from(extents: &[Extent]) -> Extents {
        match extents {
            [] => Extents::None,
            [extent] => Extents::One(*extent),
            _ => Extents::Many(Box::new(extents.to_vec())),
        }
    }
}

/// Parts of a node that few files have.
#[derive(Default, Debug)]
struct Extra {
    directory: Option<Directory>,
    target: Option<Box<[u8]>>,
    attributes: BTreeMap<Box<[u8]>, Box<[u8]>>,
}

/// File of any type, as the namespace holds it in memory: attributes, extents, target of a symbolic link, extended
/// attributes, and the names in a directory. Contents, and the file's own names, are not included.
#[derive(Debug)]
pub struct Node {
    /// Attributes of the file as last recorded; changes that are only in memory are not included.
    pub attributes: Attributes,
    /// Extents of the stored contents. Blocks of the file without an extent are holes, or their data are only in
    /// memory.
    pub extents: Extents,
    extra: Option<Box<Extra>>,
}

impl Node {
    /// Returns a new file with these attributes and without contents. If their `mode` has the type of a directory, the
    /// file is an empty directory.
    pub fn new(attributes: Attributes) -> Node {
        let mut node = Node { attributes, extents: Extents::None, extra: None };
        if node.is_directory() {
            node.extra().directory = Some(Directory::default());
        }
        node
    }

    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// Returns whether the file type in `mode` is that of a directory.
    pub fn is_directory(&self) -> bool {
        self.attributes.mode & FORMAT == DIRECTORY
    }

    /// Returns whether the file type in `mode` is that of a regular file.
    pub fn is_regular(&self) -> bool {
        self.attributes.mode & FORMAT == REGULAR
    }

    /// Returns the names that the file contains if it is a directory, and otherwise `None`.
    pub fn directory(&self) -> Option<&Directory> {
        self.extra.as_ref()?.directory.as_ref()
    }

    /// Returns the names that the file contains, for modification, if it is a directory, and otherwise `None`.
    pub fn directory_mut(&mut self) -> Option<&mut Directory> {
        self.extra.as_mut()?.directory.as_mut()
    }

    /// Returns the target path of the file if it is a symbolic link, and otherwise `None`.
    pub fn target(&self) -> Option<&[u8]> {
        self.extra.as_ref()?.target.as_deref()
    }

    /// Sets the target path of a symbolic link, and returns the former target, if there was one. The type of the file
    /// is not checked.
    pub fn set_target(&mut self, target: Box<[u8]>) -> Option<Box<[u8]>> {
        self.extra().target.replace(target)
    }

    /// Returns the value of the extended attribute `name`, or `None` if the file has no such attribute.
    pub fn attribute(&self, name: &[u8]) -> Option<&[u8]> {
        self.extra.as_ref()?.attributes.get(name).map(|value| &**value)
    }

    /// Returns names and values of all extended attributes, in byte order of the names.
    pub fn attributes_extended(&self) -> impl Iterator<Item = (&Box<[u8]>, &Box<[u8]>)> {
        self.extra.iter().flat_map(|extra| extra.attributes.iter())
    }

    /// Creates or replaces the extended attribute `name`. Returns its former value, or `None` if it did not exist.
    pub fn set_attribute(&mut self, name: Box<[u8]>, value: Box<[u8]>) -> Option<Box<[u8]>> {
        self.extra().attributes.insert(name, value)
    }

    /// Removes the extended attribute `name`. Returns its value, or `None` if it did not exist.
    pub fn drop_attribute(&mut self, name: &[u8]) -> Option<Box<[u8]>> {
        self.extra.as_mut()?.attributes.remove(name)
    }
}
