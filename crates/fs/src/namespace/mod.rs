//! The namespace in memory: files by inode number, names by directory. Only [`Change`]s alter the namespace, both when
//! an operation makes them and when the log is replayed.
//!
//! A directory is one ordered map from *cookie* to name. A cookie is a keyed hash of the name, stored with the name. If
//! another name has that cookie, the new name gets one of the next, less than
//! [`COOKIES_TRIED`](crate::format::name::COOKIES_TRIED) away. So a name keeps its cookie after a remount, `readdir`
//! continues from a cookie, and lookup uses the same map.
//!
//! Invariants:
//! 1. [`Namespace::self_check`]: the file of every name exists, every file has as many links as names, and the
//!    directories form a tree below [`ROOT`].
//! 2. [`Namespace::encoded_bytes`] is an upper bound of the size of a checkpoint of the namespace.

mod check;
mod directory;
mod groups;
mod node;
mod numbers;
mod places;
mod table;

use std::collections::BTreeMap;

pub use self::directory::{Directory, Entry};
pub use self::groups::{DriveRecord, Groups, HotPartRecord};
pub use self::node::{Extents, Node};
use self::numbers::Numbers;
use self::table::Table;
use crate::error::FsError;
use crate::format::change::{Attributes, Change, Extent, Inode};
use crate::format::change::{ENTRY_BYTES, EXTENT_BYTES, GENERATIONS_BYTES, LIST_BYTES, NODE_BYTES, STRETCH_BYTES};
use crate::format::name::NAME_BYTES_MAX;

/// Inode number of the root directory.
pub const ROOT: Inode = 1;

/// The namespace in memory: all files and directories with names, attributes and extents, but not the contents of
/// files; also the stripe groups and drives of an array, and the parts of the hot zone on drives.
pub struct Namespace {
    /// Files by inode number; 0 is never used.
    nodes: Table<Node>,
    numbers: Numbers,
    encoded_bytes: u64,
    key: (u64, u64),
    groups: Groups,
    /// Names of each file, if [`Namespace::know_places`] was called.
    places: Option<places::Places>,
    /// Extents of the copies of files in the hot zone.
    hot: BTreeMap<Inode, Vec<Extent>>,
    /// Preallocated blocks of files.
    preallocated: BTreeMap<Inode, Extents>,
}

/// Preallocated blocks of a file without any.
static NONE: Extents = Extents::None;

impl Namespace {
    /// Returns an empty namespace, without a root directory. `key` is the SipHash key with which the names in
    /// directories are hashed to cookies, their positions in listings.
    pub fn new(key: u128) -> Namespace {
        let key = ((key >> 64) as u64, key as u64);
        Namespace {
            nodes: Table::default(),
            numbers: Numbers::default(),
            encoded_bytes: 0,
            key,
            groups: Groups::default(),
            places: None,
            hot: BTreeMap::new(),
            preallocated: BTreeMap::new(),
        }
    }

    /// Returns the preallocated blocks of file `inode`: blocks that were never written, for which space is reserved.
    /// They are empty if the file has none or does not exist. Their `start` is 0 if the store reserves no particular
    /// blocks.
    pub fn preallocated(&self, inode: Inode) -> &Extents {
        self.preallocated.get(&inode).unwrap_or(&NONE)
    }

    /// Returns every file with preallocated blocks, and these blocks, in ascending order of inode numbers.
    pub fn all_preallocated(&self) -> impl Iterator<Item = (Inode, &Extents)> {
        self.preallocated.iter().map(|(inode, extents)| (*inode, extents))
    }

    fn put_preallocated(&mut self, inode: Inode, (from, to): (u32, u32), extents: &[Extent]) {
        if self.get(inode).is_none() {
            return;
        }
        let mut all = self.preallocated.remove(&inode).unwrap_or_default();
        let before = stretch_bytes(&all);
        all.put(from, to, extents);
        self.add_bytes(stretch_bytes(&all), before);
        if all.blocks() > 0 {
            self.preallocated.insert(inode, all);
        }
    }

    /// Returns the extents of a file's copy in the hot zone, in the order of the file's blocks. They are empty if the
    /// file has no copy or does not exist. Their `start` is a block of the hot zone.
    pub fn hot_copy(&self, inode: Inode) -> &[Extent] {
        self.hot.get(&inode).map_or(&[], Vec::as_slice)
    }

    /// Returns every file with a copy in the hot zone, and the extents of the copy, in ascending order of inode
    /// numbers.
    pub fn hot_copies(&self) -> impl Iterator<Item = (Inode, &[Extent])> {
        self.hot.iter().map(|(inode, extents)| (*inode, extents.as_slice()))
    }

    fn put_hot(&mut self, inode: Inode, extents: &[Extent]) {
        let before = if extents.is_empty() {
            self.hot.remove(&inode)
        } else if self.get(inode).is_some() {
            self.hot.insert(inode, extents.to_vec())
        } else {
            return;
        };
        self.add_bytes(list_bytes(extents), list_bytes(&before.unwrap_or_default()));
    }

    /// Returns the number of files of all types, including directories and files without a name.
    pub fn files(&self) -> u64 {
        self.nodes.count() as u64
    }

    /// Returns an upper bound of the size of a checkpoint of the namespace, in bytes, not counting the heat of files.
    pub fn encoded_bytes(&self) -> u64 {
        self.encoded_bytes + self.groups.encoded_bytes() + GENERATIONS_BYTES
    }

    /// Returns the state of the array with the data: stripe groups, drives, and parts of the hot zone. It is empty if
    /// the data are not on an array.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Returns the number behind the densely used numbers. No file has it.
    fn end(&self) -> Inode {
        (self.nodes.end() as Inode).max(ROOT + 1)
    }

    /// Returns the inode number and the generation that the next new file gets. The generation distinguishes files that
    /// have the same number one after the other. The pair is not reserved: the next call returns it again unless a
    /// change has used it.
    ///
    /// # Errors
    /// [`FsError::NoMetadataSpace`] if no inode number is free, or the number has no generation left.
    pub fn next_number(&self) -> Result<(Inode, u32), FsError> {
        self.numbers.next(self.end(), |inode| inode <= ROOT || self.get(inode).is_some())
    }

    /// Begins to give numbers to new files, after the mount has applied all changes from the checkpoint and the log.
    /// Generations, which distinguish files with equal numbers, are from now on above all that were given before the
    /// mount.
    pub fn begin_numbers(&mut self) {
        self.numbers.begin(self.end());
    }

    /// Returns a bound below which all generations lie that were ever given to files. A generation distinguishes files
    /// that have the same inode number one after the other.
    pub fn generations_below(&self) -> u64 {
        self.numbers.ceiling()
    }

    /// Returns the changes that recreate the parts of the namespace other than files: the bound of generations, if one
    /// was recorded, and the state of the array.
    pub fn describe_rest(&self) -> Vec<Change> {
        let ceiling = self.numbers.recorded().map(|below| Change::Generations { below });
        ceiling.into_iter().chain(self.groups.describe()).collect()
    }

    /// Returns file `inode`, or `None` if it does not exist.
    pub fn get(&self, inode: Inode) -> Option<&Node> {
        self.nodes.get(inode)
    }

    /// Returns file `inode`.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file does not exist.
    pub fn node(&self, inode: Inode) -> Result<&Node, FsError> {
        self.get(inode).ok_or(FsError::Stale)
    }

    /// Returns the names in directory `inode`.
    ///
    /// # Errors
    /// [`FsError::Stale`] if no such file exists, [`FsError::NotDirectory`] if it is no directory.
    pub fn directory(&self, inode: Inode) -> Result<&Directory, FsError> {
        self.node(inode)?.directory().ok_or(FsError::NotDirectory)
    }

    /// Returns all files and directories with inode numbers from `first` on, inclusive, in ascending order.
    pub fn nodes_from(&self, first: Inode) -> impl Iterator<Item = (Inode, &Node)> {
        self.nodes.from(first)
    }

    /// Returns the cookie, the position in listings, and the inode number of the file called `name` in `directory`.
    /// Returns `None` if there is no such name. The names `.` and `..` are not found.
    ///
    /// # Errors
    /// [`FsError::NameTooLong`] if `name` has more than 255 bytes, [`FsError::Stale`] if `directory` does not exist,
    /// [`FsError::NotDirectory`] if it is no directory.
    pub fn lookup(&self, directory: Inode, name: &[u8]) -> Result<Option<(u64, Inode)>, FsError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(FsError::NameTooLong);
        }
        Ok(self.directory(directory)?.lookup(self.key, name))
    }

    /// Returns a free cookie, a position in listings, for the new name `name` in `directory`. The caller has checked
    /// that the name does not exist there.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if all cookies that the name may have are in use, [`FsError::Stale`] if `directory` does
    /// not exist, [`FsError::NotDirectory`] if it is no directory.
    pub fn new_cookie(&self, directory: Inode, name: &[u8]) -> Result<u64, FsError> {
        self.directory(directory)?.new_cookie(self.key, name).ok_or(FsError::NoSpace)
    }

    /// Returns whether `inode` equals `above`, or is a directory somewhere below directory `above`. Returns false for
    /// any other file, as only directories have a parent.
    pub fn is_within(&self, inode: Inode, above: Inode) -> bool {
        let mut at = inode;
        for _ in 0..=self.nodes.count() {
            if at == above {
                return true;
            }
            match self.get(at) {
                Some(node) if at != ROOT => at = node.attributes.parent,
                _ => return false,
            }
        }
        false
    }

    /// Applies `change` to the namespace in memory. A change of a file or directory that does not exist is ignored,
    /// because a checkpoint that was taken while changes were made may contain one. Checksums and heat are no part of
    /// the namespace and are ignored.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Node { inode, attributes } => self.put_node(*inode, attributes),
            Change::DropNode { inode } => self.drop_node(*inode),
            Change::Entry { directory, cookie, inode, name } => {
                let entry = Entry { name: name.clone(), inode: *inode };
                let (added, place) = (ENTRY_BYTES + name.len() as u64, (*directory, *cookie));
                if let Some(directory) = self.directory_mut(*directory) {
                    let before = directory.insert(*cookie, entry);
                    if let Some(places) = &mut self.places {
                        before.iter().for_each(|before| places.remove(before.inode, place));
                        places.add(*inode, place);
                    }
                    self.add_bytes(added, before.map_or(0, |before| ENTRY_BYTES + before.name.len() as u64));
                }
            }
            Change::DropEntry { directory, cookie } => {
                let removed = self.directory_mut(*directory).and_then(|directory| directory.remove(*cookie));
                if let (Some(places), Some(entry)) = (&mut self.places, &removed) {
                    places.remove(entry.inode, (*directory, *cookie));
                }
                self.add_bytes(0, removed.map_or(0, |entry| ENTRY_BYTES + entry.name.len() as u64));
            }
            Change::Extents { inode, extents } => {
                if let Some(node) = self.node_mut(*inode) {
                    let before = list_bytes(node.extents.as_slice());
                    node.extents = Extents::from(extents.as_slice());
                    self.add_bytes(list_bytes(extents), before);
                }
            }
            Change::Stretch { inode, from, to, extents } => {
                if let Some(node) = self.node_mut(*inode) {
                    let before = list_bytes(node.extents.as_slice());
                    node.extents.put(*from, *to, extents);
                    let after = list_bytes(node.extents.as_slice());
                    self.add_bytes(after, before);
                }
            }
            Change::Preallocated { inode, from, to, extents } => self.put_preallocated(*inode, (*from, *to), extents),
            Change::Hot { inode, extents } => self.put_hot(*inode, extents),
            Change::Target { inode, target } => {
                if let Some(node) = self.node_mut(*inode) {
                    let before = node.set_target(target.clone()).map_or(0, |old| LIST_BYTES + old.len() as u64);
                    self.add_bytes(LIST_BYTES + target.len() as u64, before);
                }
            }
            Change::Attribute { inode, name, value } => {
                if let Some(node) = self.node_mut(*inode) {
                    let before = node.set_attribute(name.clone(), value.clone());
                    let before = before.map_or(0, |old| attribute_bytes(name, &old));
                    self.add_bytes(attribute_bytes(name, value), before);
                }
            }
            Change::DropAttribute { inode, name } => {
                let removed = self.node_mut(*inode).and_then(|node| node.drop_attribute(name));
                self.add_bytes(0, removed.map_or(0, |old| attribute_bytes(name, &old)));
            }
            Change::Group { group, layout } => self.groups.put_group(*group, layout),
            Change::DropGroup { group } => self.groups.drop_group(*group),
            Change::Drive { number, uuid, replaces } => {
                self.groups.put_drive(*number, DriveRecord { uuid: *uuid, replaces: *replaces });
            }
            Change::HotPart { part, drive, has_room, generation } => {
                let record = HotPartRecord { drive: *drive, has_room: *has_room, generation: *generation };
                self.groups.put_hot_part(*part, record);
            }
            Change::Sequence { below } => self.groups.put_sequence(*below),
            Change::Generations { below } => self.numbers.put_ceiling(*below),
            Change::Rows { groups } => self.groups.put_rows(groups),
            Change::Checksums { .. } | Change::Heat { .. } => {}
        }
    }

    fn add_bytes(&mut self, added: u64, removed: u64) {
        self.encoded_bytes = self.encoded_bytes + added - removed;
    }

    fn node_mut(&mut self, inode: Inode) -> Option<&mut Node> {
        self.nodes.get_mut(inode)
    }

    fn directory_mut(&mut self, inode: Inode) -> Option<&mut Directory> {
        self.node_mut(inode)?.directory_mut()
    }

    fn put_node(&mut self, inode: Inode, attributes: &Attributes) {
        self.numbers.take(inode, attributes.generation);
        if let Some(node) = self.nodes.get_mut(inode) {
            node.attributes = *attributes;
            return;
        }
        self.nodes.insert(inode, Node::new(*attributes));
        self.encoded_bytes += NODE_BYTES;
    }

    fn drop_node(&mut self, inode: Inode) {
        let Some(node) = self.nodes.remove(inode) else { return };
        if let Some(places) = &mut self.places {
            places.forget(inode);
        }
        let copy = self.hot.remove(&inode).unwrap_or_default();
        let preallocated = self.preallocated.remove(&inode).unwrap_or_default();
        self.encoded_bytes -= list_bytes(&copy) + stretch_bytes(&preallocated);
        self.numbers.release(inode, node.attributes.generation);
        self.encoded_bytes -= bytes_of(&node);
    }

    /// Appends to `changes` the changes that recreate file `inode`: attributes, extents, copy in the hot zone,
    /// preallocated blocks, target and extended attributes. Names in a directory are left out
    /// ([`Namespace::describe_names`]). Appends nothing if the file does not exist.
    pub fn describe(&self, inode: Inode, changes: &mut Vec<Change>) {
        let Some(node) = self.get(inode) else { return };
        changes.push(Change::Node { inode, attributes: node.attributes });
        if !node.extents.as_slice().is_empty() {
            changes.push(Change::Extents { inode, extents: node.extents.as_slice().to_vec() });
        }
        if let Some(extents) = self.hot.get(&inode) {
            changes.push(Change::Hot { inode, extents: extents.clone() });
        }
        if let Some(extents) = self.preallocated.get(&inode) {
            let extents = extents.as_slice().to_vec();
            changes.push(Change::Preallocated { inode, from: 0, to: u32::MAX, extents });
        }
        if let Some(target) = node.target() {
            changes.push(Change::Target { inode, target: target.into() });
        }
        for (name, value) in node.attributes_extended() {
            changes.push(Change::Attribute { inode, name: name.clone(), value: value.clone() });
        }
    }

    /// Appends to `changes` up to `count` names in directory `inode`, with cookies (positions in listings) from `from`
    /// on, inclusive, in ascending order. Returns the cookie from which to continue, or `None` if no name is left or
    /// `inode` is no directory.
    pub fn describe_names(&self, inode: Inode, from: u64, count: usize, changes: &mut Vec<Change>) -> Option<u64> {
        let directory = self.get(inode)?.directory()?;
        let mut entries = directory.entries_from(from);
        for (cookie, entry) in entries.by_ref().take(count) {
            changes.push(Change::Entry { directory: inode, cookie, inode: entry.inode, name: entry.name.clone() });
        }
        entries.next().map(|(cookie, _)| cookie)
    }
}

fn list_bytes(extents: &[Extent]) -> u64 {
    if extents.is_empty() { 0 } else { LIST_BYTES + extents.len() as u64 * EXTENT_BYTES }
}

fn stretch_bytes(extents: &Extents) -> u64 {
    if extents.as_slice().is_empty() { 0 } else { STRETCH_BYTES + extents.as_slice().len() as u64 * EXTENT_BYTES }
}

fn attribute_bytes(name: &[u8], value: &[u8]) -> u64 {
    LIST_BYTES + name.len() as u64 + value.len() as u64
}

fn bytes_of(node: &Node) -> u64 {
    let names = node.directory().into_iter().flat_map(|directory| directory.entries_from(0));
    let names: u64 = names.map(|(_, entry)| ENTRY_BYTES + entry.name.len() as u64).sum();
    let target = node.target().map_or(0, |target| LIST_BYTES + target.len() as u64);
    let attributes: u64 = node.attributes_extended().map(|(name, value)| attribute_bytes(name, value)).sum();
    NODE_BYTES + names + target + attributes + list_bytes(node.extents.as_slice())
}

#[cfg(test)]
mod tests;
