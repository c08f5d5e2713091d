//! The recorded folder: its files, identified by inode, and their names.
//!
//! Each file is held open. Its inode number therefore cannot be reused, and the file can be read after its last name is
//! removed. The folder is read again after each call that may change names, so the recorder need not resolve the paths
//! that the program passes.
//!
//! Invariants:
//! 1. `log.last()` equals `now`: every change of one is made to the other too.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::log::{Disk, Entry, Event, FileId, Log};
use crate::sparse::Sparse;

/// Device number and inode number.
type Inode = (u64, u64);

fn inode(facts: &Metadata) -> Inode {
    (facts.dev(), facts.ino())
}

/// A file of the recorded folder.
#[derive(Debug)]
pub(super) struct Tracked {
    /// The file, open for reading.
    pub(super) file: File,
    /// Whether the program has a shared mapping of the file, through which it can change the file without a call.
    pub(super) is_mapped: bool,
}

/// The recorded folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    pub(super) files: Vec<Tracked>,
    by_inode: BTreeMap<Inode, FileId>,
    /// Paths of the recorded folder and of the folders in it, relative to the recorded folder.
    folders: BTreeMap<Inode, String>,
    /// The files as the host sees them now.
    now: Disk,
    log: Arc<Mutex<Log>>,
}

impl Folder {
    /// Reads the folder. Its contents become the first contents of the log.
    pub(super) fn open(path: &Path, log: Arc<Mutex<Log>>) -> io::Result<Folder> {
        let mut folder = Folder {
            path: path.canonicalize()?,
            files: Vec::new(),
            by_inode: BTreeMap::new(),
            folders: BTreeMap::new(),
            now: Disk::default(),
            log,
        };
        for (name, inode, path) in folder.scan()? {
            let file = match folder.by_inode.get(&inode) {
                Some(&file) => file,
                None => folder.track(File::open(path)?)?,
            };
            folder.now.rename(&name, Some(file));
        }
        for (id, tracked) in (0..).zip(&folder.files) {
            folder.now.files.insert(id, Sparse::load(&tracked.file)?);
        }
        folder.log().first = folder.now.clone();
        Ok(folder)
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no thread panics while it holds the log")
    }

    /// Appends an event and returns its position.
    pub(super) fn push(&mut self, call: &'static str, event: Event) -> usize {
        self.now.apply(&event);
        let mut log = self.log();
        log.entries.push(Entry { call, event });
        log.entries.len() - 1
    }

    fn track(&mut self, file: File) -> io::Result<FileId> {
        let id = self.files.len() as FileId;
        self.by_inode.insert(inode(&file.metadata()?), id);
        self.files.push(Tracked { file, is_mapped: false });
        Ok(id)
    }

    /// Returns the number of the file with these metadata if it belongs to the folder.
    pub(super) fn find(&self, facts: &Metadata) -> Option<FileId> {
        self.by_inode.get(&inode(facts)).copied()
    }

    /// Returns the relative path of the folder with these metadata, if it is the recorded folder or lies in it.
    pub(super) fn find_folder(&self, facts: &Metadata) -> Option<&str> {
        self.folders.get(&inode(facts)).map(String::as_str)
    }

    /// Returns whether the file with these metadata lies on a file system that holds a part of the folder.
    pub(super) fn is_on(&self, facts: &Metadata) -> bool {
        self.folders.keys().any(|(device, _)| *device == facts.dev())
    }

    /// Returns every regular file below the folder, with relative name, inode and path.
    fn scan(&mut self) -> io::Result<Vec<(String, Inode, PathBuf)>> {
        let (mut found, mut left) = (Vec::new(), vec![(String::new(), self.path.clone())]);
        self.folders.clear();
        while let Some((prefix, path)) = left.pop() {
            self.folders.insert(inode(&fs::metadata(&path)?), prefix.clone());
            for entry in fs::read_dir(&path)? {
                let entry = entry?;
                let name = entry.file_name().into_string().map_err(|name| unfit(format!("the name {name:?}")))?;
                let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
                let facts = entry.metadata()?;
                match facts.file_type() {
                    kind if kind.is_dir() => left.push((name, entry.path())),
                    kind if kind.is_file() => found.push((name, inode(&facts), entry.path())),
                    kind => return Err(unfit(format!("{name}, a {kind:?}"))),
                }
            }
        }
        Ok(found)
    }

    /// Compares the names in the folder with the known names, and logs the changes.
    pub(super) fn names_changed(&mut self, call: &'static str) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for (name, inode, path) in self.scan()? {
            let file = match self.by_inode.get(&inode) {
                Some(&file) => file,
                None => self.new_file(File::open(path)?, &name)?,
            };
            names.insert(name, file);
        }
        let gone = self.now.names.keys().filter(|name| !names.contains_key(*name));
        let mut changes: Vec<_> = gone.map(|name| (name.clone(), None)).collect();
        let known = &self.now.names;
        let new = names.into_iter().filter(|(name, file)| known.get(name) != Some(file));
        changes.extend(new.map(|(name, file)| (name, Some(file))));
        if !changes.is_empty() {
            self.push(call, Event::Names { changes });
        }
        Ok(())
    }

    /// Begins to track a file that the program created.
    ///
    /// # Errors
    ///
    /// If the file has contents already.
    pub(super) fn new_file(&mut self, file: File, name: &str) -> io::Result<FileId> {
        if file.metadata()?.len() > 0 {
            return Err(unfit(format!("{name}, which came with contents from outside")));
        }
        self.track(file)
    }

    /// Returns whether `path`, the kernel's path of an open file, lies in the folder.
    pub(super) fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.path)
    }

    /// Logs every length that differs from the known one.
    pub(super) fn lengths_changed(&mut self, call: &'static str) -> io::Result<()> {
        for id in 0..self.files.len() as FileId {
            let len = self.files[id as usize].file.metadata()?.len();
            if len != self.len(id) {
                self.push(call, Event::Resize { file: id, len });
            }
        }
        Ok(())
    }

    /// Returns the known length of a file.
    pub(super) fn len(&self, file: FileId) -> u64 {
        self.now.files.get(&file).map_or(0, Sparse::len)
    }

    /// Logs the length of a file, and its contents where they differ from the known ones.
    pub(super) fn contents_changed(&mut self, call: &'static str, file: FileId) -> io::Result<()> {
        let found = Sparse::load(&self.files[file as usize].file)?;
        let known = self.now.files.get(&file).cloned().unwrap_or_default();
        if found.len() != known.len() {
            self.push(call, Event::Resize { file, len: found.len() });
        }
        for range in found.differences(&known) {
            let mut bytes = vec![0; (range.end.min(found.len()).saturating_sub(range.start)) as usize];
            found.read(range.start, &mut bytes);
            if !bytes.is_empty() {
                self.push(call, Event::Write { file, offset: range.start, bytes: bytes.into(), is_durable: false });
            }
        }
        Ok(())
    }

    /// Logs the changes that the program made through mappings.
    pub(super) fn mappings_changed(&mut self) -> io::Result<()> {
        for id in 0..self.files.len() as FileId {
            if self.files[id as usize].is_mapped {
                self.contents_changed("mmap", id)?;
            }
        }
        Ok(())
    }

    /// Returns a description of the first difference between the files and the end of the log.
    pub(super) fn difference(&mut self) -> io::Result<Option<String>> {
        let mut found = Disk::default();
        for (name, inode, _) in self.scan()? {
            match self.by_inode.get(&inode) {
                Some(&file) => found.names.insert(name, file),
                None => return Ok(Some(format!("{name}, a file that no call made"))),
            };
        }
        for (id, tracked) in (0..).zip(&self.files) {
            found.files.insert(id, Sparse::load(&tracked.file)?);
        }
        Ok(self.log().last().difference(&found))
    }
}

/// Returns the error for an operation that the recorder cannot follow.
pub(super) fn unfit(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("the recorder cannot follow {what}"))
}
