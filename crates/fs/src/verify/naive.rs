//! A file system as simple as possible, in memory: the reference with which the real one is compared.

use std::collections::BTreeMap;

use super::operation::{Operation, pattern};
use crate::core::Allocate;
use crate::error::FsError;

/// A file of the naive file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum File {
    /// A regular file, with all its bytes.
    Regular(Vec<u8>),
    /// A directory: its names, each with the number of its file.
    Directory(BTreeMap<String, u32>),
    /// A symbolic link, with the path that it points to.
    Symlink(String),
}

/// Attributes at a path that are compared with those of the naive file system. Sizes, owners, times and file contents
/// are not included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// File type and permissions, in the encoding of `st_mode`.
    pub mode: u32,
    /// Number of names of the file; for a directory, 2 plus the number of its subdirectories.
    pub links: u32,
    /// Target of a symbolic link; `None` for other files.
    pub target: Option<String>,
    /// First byte of extended attribute `user.a`; `None` if the file does not have it.
    pub attribute: Option<u8>,
    /// First of the file's paths in alphabetical order: equal for all hard links of a file.
    pub first_path: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Node {
    file: File,
    permissions: u32,
    attribute: Option<u8>,
}

/// The naive file system: a reference in memory, as simple as possible, that is never full and loses nothing. It has no
/// owners, no times, and only extended attribute `user.a`. The default has an empty root directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Naive {
    nodes: BTreeMap<u32, Node>,
    made: u32,
}

impl Default for Naive {
    fn default() -> Naive {
        let root = Node { file: File::Directory(BTreeMap::new()), permissions: 0o755, attribute: None };
        Naive { nodes: BTreeMap::from([(0, root)]), made: 0 }
    }
}

impl Naive {
    fn directory(&self, number: u32) -> Result<&BTreeMap<String, u32>, FsError> {
        match &self.nodes[&number].file {
            File::Directory(names) => Ok(names),
            _ => Err(FsError::NotDirectory),
        }
    }

    fn directory_mut(&mut self, number: u32) -> &mut BTreeMap<String, u32> {
        match self.nodes.get_mut(&number).map(|node| &mut node.file) {
            Some(File::Directory(names)) => names,
            other => panic!("{number} is no directory: {other:?}"),
        }
    }

    /// Returns the number of the file at `path`, relative to the root directory; 0 for the root directory itself.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if a name does not exist, [`FsError::NotDirectory`] if a name before the last is not a
    /// directory.
    pub fn find(&self, path: &str) -> Result<u32, FsError> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(0, |at, name| self.directory(at)?.get(name).copied().ok_or(FsError::NotFound))
    }

    fn parent<'a>(&self, path: &'a str) -> Result<(u32, &'a str), FsError> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let above = self.find(above)?;
        self.directory(above)?;
        Ok((above, name))
    }

    fn is_directory(&self, number: u32) -> bool {
        matches!(self.nodes[&number].file, File::Directory(_))
    }

    fn regular_mut(&mut self, path: &str) -> Result<&mut Vec<u8>, FsError> {
        let number = self.find(path)?;
        match self.nodes.get_mut(&number).map(|node| &mut node.file) {
            Some(File::Regular(bytes)) => Ok(bytes),
            Some(File::Directory(_)) => Err(FsError::IsDirectory),
            _ => Err(FsError::Invalid("not a regular file")),
        }
    }

    fn add(&mut self, path: &str, file: File, permissions: u32) -> Result<(), FsError> {
        let (above, name) = self.parent(path)?;
        if self.directory(above)?.contains_key(name) {
            return Err(FsError::Exists);
        }
        self.made += 1;
        let number = self.made;
        self.nodes.insert(number, Node { file, permissions, attribute: None });
        self.directory_mut(above).insert(name.into(), number);
        Ok(())
    }

    fn is_within(&self, number: u32, above: u32) -> bool {
        number == above
            || match &self.nodes[&above].file {
                File::Directory(names) => names.values().any(|inside| self.is_within(number, *inside)),
                _ => false,
            }
    }

    fn rename(&mut self, from: &str, to: &str, is_exchange: bool) -> Result<(), FsError> {
        let ((above, name), (new_above, new_name)) = (self.parent(from)?, self.parent(to)?);
        let number = *self.directory(above)?.get(name).ok_or(FsError::NotFound)?;
        let other = self.directory(new_above)?.get(new_name).copied();
        if is_exchange && other.is_none() {
            return Err(FsError::NotFound);
        }
        if other == Some(number) {
            return Ok(());
        }
        if self.is_directory(number) && self.is_within(new_above, number) {
            return Err(FsError::Invalid("into itself"));
        }
        if let (Some(other), true) = (other, is_exchange) {
            if self.is_directory(other) && self.is_within(above, other) {
                return Err(FsError::Invalid("into itself"));
            }
            self.directory_mut(above).insert(name.into(), other);
        } else {
            match other.map(|other| self.is_directory(other)) {
                Some(false) if self.is_directory(number) => return Err(FsError::NotDirectory),
                Some(true) if !self.is_directory(number) => return Err(FsError::IsDirectory),
                Some(true) if !self.directory(other.unwrap_or(0))?.is_empty() => return Err(FsError::NotEmpty),
                _ => {}
            }
            self.directory_mut(above).remove(name);
        }
        self.directory_mut(new_above).insert(new_name.into(), number);
        self.drop_unnamed();
        Ok(())
    }

    fn links(&self, number: u32) -> u32 {
        let names = |node: &Node| match &node.file {
            File::Directory(names) => names.values().filter(|inside| **inside == number).count() as u32,
            _ => 0,
        };
        self.nodes.values().map(names).sum()
    }

    fn drop_unnamed(&mut self) {
        let unnamed: Vec<u32> =
            self.nodes.keys().copied().filter(|number| *number != 0 && self.links(*number) == 0).collect();
        for number in unnamed {
            self.nodes.remove(&number);
        }
    }

    /// Performs `operation`. Operations without a visible effect, such as a checkpoint, do nothing. Errors within
    /// [`Operation::Together`] are ignored.
    ///
    /// # Errors
    /// The error of a POSIX file system for this operation; nothing is changed then.
    pub fn perform(&mut self, operation: &Operation) -> Result<(), FsError> {
        match operation {
            Operation::Create(path) => self.add(path, File::Regular(Vec::new()), 0o644),
            Operation::MakeDirectory(path) => self.add(path, File::Directory(BTreeMap::new()), 0o755),
            Operation::Symlink(path, target) => self.add(path, File::Symlink(target.clone()), 0o777),
            Operation::Write(path, offset, length, seed) | Operation::WriteOut(path, offset, length, seed) => {
                let bytes = self.regular_mut(path)?;
                let end = *offset as usize + length;
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset as usize..end].copy_from_slice(&pattern(*seed, *offset, *length));
                Ok(())
            }
            Operation::Truncate(path, size) => {
                self.regular_mut(path)?.resize(*size as usize, 0);
                Ok(())
            }
            Operation::Allocate(path, offset, length, what) => {
                let bytes = self.regular_mut(path)?;
                let (from, end) = (*offset as usize, (*offset + *length) as usize);
                if matches!(what, Allocate::Room | Allocate::Zeros) {
                    bytes.resize(bytes.len().max(end), 0);
                }
                let end = end.min(bytes.len());
                if !matches!(what, Allocate::Room | Allocate::RoomKeepingSize) && from < end {
                    bytes[from..end].fill(0);
                }
                Ok(())
            }
            Operation::Close(path) | Operation::Read(path) | Operation::Fsync(path) => self.find(path).map(drop),
            Operation::Sync | Operation::Checkpoint | Operation::Clean | Operation::Wait(_) | Operation::Remount => {
                Ok(())
            }
            Operation::Together(operations) => {
                // Each operation is on its own file, so their order does not matter. An operation on an absent file
                // fails and changes nothing.
                operations.iter().for_each(|operation| drop(self.perform(operation)));
                Ok(())
            }
            Operation::Rename(from, to) => self.rename(from, to, false),
            Operation::Exchange(from, to) => self.rename(from, to, true),
            Operation::Link(from, to) => {
                let number = self.find(from)?;
                let (above, name) = self.parent(to)?;
                if self.is_directory(number) {
                    return Err(FsError::Invalid("a directory has one name only"));
                }
                if self.directory(above)?.contains_key(name) {
                    return Err(FsError::Exists);
                }
                self.directory_mut(above).insert(name.into(), number);
                Ok(())
            }
            Operation::Unlink(path) => {
                let (above, name) = self.parent(path)?;
                let number = *self.directory(above)?.get(name).ok_or(FsError::NotFound)?;
                if self.is_directory(number) {
                    return Err(FsError::IsDirectory);
                }
                self.directory_mut(above).remove(name);
                self.drop_unnamed();
                Ok(())
            }
            Operation::RemoveDirectory(path) => {
                let (above, name) = self.parent(path)?;
                let number = *self.directory(above)?.get(name).ok_or(FsError::NotFound)?;
                if !self.directory(number)?.is_empty() {
                    return Err(FsError::NotEmpty);
                }
                self.directory_mut(above).remove(name);
                self.drop_unnamed();
                Ok(())
            }
            Operation::SetAttribute(path, value) => {
                let number = self.find(path)?;
                self.nodes.entry(number).and_modify(|node| node.attribute = Some(*value));
                Ok(())
            }
            Operation::Mode(path, mode) => {
                let number = self.find(path)?;
                self.nodes.entry(number).and_modify(|node| node.permissions = mode & 0o7777);
                Ok(())
            }
        }
    }

    /// Returns every path but that of the root directory, with the number of its file, in alphabetical order.
    pub fn paths(&self) -> BTreeMap<String, u32> {
        let mut paths = BTreeMap::new();
        self.collect(0, "", &mut paths);
        paths
    }

    fn collect(&self, at: u32, path: &str, paths: &mut BTreeMap<String, u32>) {
        let File::Directory(names) = &self.nodes[&at].file else { return };
        for (name, number) in names {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            self.collect(*number, &path, paths);
            paths.insert(path, *number);
        }
    }

    /// Returns the attributes that [`Shown`] has, by path, for every path but that of the root directory: file type,
    /// permissions, links, link target, and the first byte of extended attribute `user.a`.
    pub fn shown(&self) -> BTreeMap<String, Shown> {
        let paths = self.paths();
        let show = |number: u32| {
            let node = &self.nodes[&number];
            let (kind, target) = match &node.file {
                File::Regular(_) => (0o100_000, None),
                File::Directory(_) => (0o040_000, None),
                File::Symlink(target) => (0o120_000, Some(target.clone())),
            };
            let first_path = paths.iter().find(|(_, other)| **other == number).map(|(path, _)| path.clone());
            let below = |number: u32| match &self.nodes[&number].file {
                File::Directory(names) => names.values().filter(|inside| self.is_directory(**inside)).count() as u32,
                _ => 0,
            };
            let links = if kind == 0o040_000 { 2 + below(number) } else { self.links(number) };
            let first_path = first_path.unwrap_or_default();
            Shown { mode: kind | node.permissions, links, target, attribute: node.attribute, first_path }
        };
        paths.iter().map(|(path, number)| (path.clone(), show(*number))).collect()
    }

    /// Returns the bytes of the regular file with this number; `None` if the file is of another kind or does not exist.
    pub fn bytes(&self, number: u32) -> Option<&[u8]> {
        match &self.nodes.get(&number)?.file {
            File::Regular(bytes) => Some(bytes),
            _ => None,
        }
    }
}
