//! A file in memory: as little as it can be, for there may be millions.

use std::collections::BTreeMap;

use super::directory::Directory;
use crate::format::change::{Attributes, Extent};

/// The part of a mode that tells the type.
pub const FORMAT: u32 = 0o170_000;
/// A regular file.
pub const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
pub(super) const SYMLINK: u32 = 0o120_000;

/// Whether a mode tells one of the seven types of files.
pub fn is_file_type(mode: u32) -> bool {
    const OTHERS: [u32; 4] = [0o010_000, 0o020_000, 0o060_000, 0o140_000];
    let kind = mode & FORMAT;
    matches!(kind, REGULAR | DIRECTORY | SYMLINK) || OTHERS.contains(&kind)
}

/// Where a file's contents lie. Most files lie in one piece.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Extents {
    /// Nowhere: it is empty, or all zeros.
    #[default]
    None,
    /// In one piece.
    One(Extent),
    /// In several, in order of the file.
    Many(Box<Vec<Extent>>),
}

impl Extents {
    /// All pieces, in order of the file.
    pub fn as_slice(&self) -> &[Extent] {
        match self {
            Extents::None => &[],
            Extents::One(extent) => std::slice::from_ref(extent),
            Extents::Many(extents) => extents,
        }
    }

    /// The pieces, or parts of them, in blocks `from` to `to` of the file.
    pub fn within(&self, from: u64, to: u64) -> impl Iterator<Item = Extent> + '_ {
        let all = self.as_slice();
        let first = all.partition_point(|extent| extent.end() <= from);
        let rest = all[first..].iter().take_while(move |extent| u64::from(extent.at) < to);
        rest.filter_map(move |extent| extent.within(from, to))
    }

    /// The piece that begins with block `at` of the file.
    pub fn beginning_at(&self, at: u32) -> Option<&Extent> {
        let all = self.as_slice();
        all.binary_search_by_key(&at, |extent| extent.at).ok().map(|number| &all[number])
    }

    /// Puts `pieces` in the place of what lies in blocks `from` to `to` of the file. What lies around them stays where it is in
    /// memory as long as there are as many pieces as before: a file of very many is told of in as many changes.
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

    /// Blocks in all pieces.
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

/// What few files have.
#[derive(Default, Debug)]
struct Extra {
    directory: Option<Directory>,
    target: Option<Box<[u8]>>,
    attributes: BTreeMap<Box<[u8]>, Box<[u8]>>,
}

/// A file.
#[derive(Debug)]
pub struct Node {
    /// What is known of it.
    pub attributes: Attributes,
    /// Where its contents lie.
    pub extents: Extents,
    extra: Option<Box<Extra>>,
}

impl Node {
    /// A new one.
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

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.attributes.mode & FORMAT == DIRECTORY
    }

    /// Whether it is a regular file.
    pub fn is_regular(&self) -> bool {
        self.attributes.mode & FORMAT == REGULAR
    }

    /// Whether it is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.attributes.mode & FORMAT == SYMLINK
    }

    /// What is in it, if it is a directory.
    pub fn directory(&self) -> Option<&Directory> {
        self.extra.as_ref()?.directory.as_ref()
    }

    /// The same, to be changed.
    pub fn directory_mut(&mut self) -> Option<&mut Directory> {
        self.extra.as_mut()?.directory.as_mut()
    }

    /// Where it points, if it is a symbolic link.
    pub fn target(&self) -> Option<&[u8]> {
        self.extra.as_ref()?.target.as_deref()
    }

    /// Lets it point to `target`; gives back what was there.
    pub fn set_target(&mut self, target: Box<[u8]>) -> Option<Box<[u8]>> {
        self.extra().target.replace(target)
    }

    /// An extended attribute.
    pub fn attribute(&self, name: &[u8]) -> Option<&[u8]> {
        self.extra.as_ref()?.attributes.get(name).map(|value| &**value)
    }

    /// Its extended attributes, in order of their names.
    pub fn attributes_extended(&self) -> impl Iterator<Item = (&Box<[u8]>, &Box<[u8]>)> {
        self.extra.iter().flat_map(|extra| extra.attributes.iter())
    }

    /// Sets an extended attribute; gives back what was there.
    pub fn set_attribute(&mut self, name: Box<[u8]>, value: Box<[u8]>) -> Option<Box<[u8]>> {
        self.extra().attributes.insert(name, value)
    }

    /// Removes an extended attribute; gives back what was there.
    pub fn drop_attribute(&mut self, name: &[u8]) -> Option<Box<[u8]>> {
        self.extra.as_mut()?.attributes.remove(name)
    }
}
