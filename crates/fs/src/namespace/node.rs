//! A file in memory. Nodes are small, for there may be millions.

use std::collections::BTreeMap;

use super::directory::Directory;
use crate::format::change::{Attributes, Extent};
use crate::format::file_type::{DIRECTORY, FORMAT, REGULAR, SYMLINK};

/// Extents of a file. Most files have only one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Extents {
    /// No extents: the file is empty, or all zeros.
    #[default]
    None,
    /// One extent.
    One(Extent),
    /// Several extents, in the order of the file's blocks.
    Many(Box<Vec<Extent>>),
}

impl Extents {
    /// Returns all extents, in the order of the file's blocks.
    pub fn as_slice(&self) -> &[Extent] {
        match self {
            Extents::None => &[],
            Extents::One(extent) => std::slice::from_ref(extent),
            Extents::Many(extents) => extents,
        }
    }

    /// Returns the extents, or parts of them, from block `from` up to, and without, block `to` of the file.
    pub fn within(&self, from: u64, to: u64) -> impl Iterator<Item = Extent> + '_ {
        let all = self.as_slice();
        let first = all.partition_point(|extent| extent.end() <= from);
        let rest = all[first..].iter().take_while(move |extent| u64::from(extent.at) < to);
        rest.filter_map(move |extent| extent.within(from, to))
    }

    /// Returns the extent that begins with block `at` of the file.
    pub fn beginning_at(&self, at: u32) -> Option<&Extent> {
        let all = self.as_slice();
        all.binary_search_by_key(&at, |extent| extent.at).ok().map(|number| &all[number])
    }

    /// Replaces everything in blocks `from` to `to` (exclusive) of the file by `pieces`. While the number of extents
    /// stays equal, the extents around the range are not moved in memory. That matters since a file with very many
    /// extents is built by as many changes.
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

    /// Returns the number of blocks of all extents.
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

/// A file.
#[derive(Debug)]
pub struct Node {
    /// Attributes of the file.
    pub attributes: Attributes,
    /// Extents of the file's contents.
    pub extents: Extents,
    extra: Option<Box<Extra>>,
}

impl Node {
    /// Returns a new file without contents. A directory is empty.
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

    /// Returns whether the file is a directory.
    pub fn is_directory(&self) -> bool {
        self.attributes.mode & FORMAT == DIRECTORY
    }

    /// Returns whether the file is a regular file.
    pub fn is_regular(&self) -> bool {
        self.attributes.mode & FORMAT == REGULAR
    }

    /// Returns whether the file is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.attributes.mode & FORMAT == SYMLINK
    }

    /// Returns the names in the file, if it is a directory.
    pub fn directory(&self) -> Option<&Directory> {
        self.extra.as_ref()?.directory.as_ref()
    }

    /// Like [`Node::directory`], for changes.
    pub fn directory_mut(&mut self) -> Option<&mut Directory> {
        self.extra.as_mut()?.directory.as_mut()
    }

    /// Returns the target of the file, if it is a symbolic link.
    pub fn target(&self) -> Option<&[u8]> {
        self.extra.as_ref()?.target.as_deref()
    }

    /// Sets the target of a symbolic link, and returns the old one.
    pub fn set_target(&mut self, target: Box<[u8]>) -> Option<Box<[u8]>> {
        self.extra().target.replace(target)
    }

    /// Returns the value of an extended attribute.
    pub fn attribute(&self, name: &[u8]) -> Option<&[u8]> {
        self.extra.as_ref()?.attributes.get(name).map(|value| &**value)
    }

    /// Returns the extended attributes, in order of their names.
    pub fn attributes_extended(&self) -> impl Iterator<Item = (&Box<[u8]>, &Box<[u8]>)> {
        self.extra.iter().flat_map(|extra| extra.attributes.iter())
    }

    /// Sets an extended attribute, and returns its old value.
    pub fn set_attribute(&mut self, name: Box<[u8]>, value: Box<[u8]>) -> Option<Box<[u8]>> {
        self.extra().attributes.insert(name, value)
    }

    /// Removes an extended attribute, and returns its value.
    pub fn drop_attribute(&mut self, name: &[u8]) -> Option<Box<[u8]>> {
        self.extra.as_mut()?.attributes.remove(name)
    }
}
