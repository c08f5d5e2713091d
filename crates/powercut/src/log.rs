//! The log of a program: its changes to the files of a folder, in order, and the bytes that it sent to its clients
//! meanwhile.
//!
//! Invariants:
//! 1. Events do not overlap: each began after the previous one had ended.
//! 2. All events, applied to the first contents, give the last ones ([`Log::last`]).

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::sparse::Sparse;

/// Number of a file in a log, from 0. It stays the same when the file is renamed.
pub type FileId = u32;

/// An event in the log of a program: a change of the files, a sync, or a send to a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A system call wrote bytes to a file.
    Write {
        /// Number of the file in the log, from 0. It stays the same when the file is renamed.
        file: FileId,
        /// Offset of the first written byte in the file, in bytes.
        offset: u64,
        /// The bytes written.
        bytes: Arc<[u8]>,
        /// Whether the bytes were durable when the call returned (`O_DSYNC`, `RWF_DSYNC`).
        is_durable: bool,
    },
    /// A range of a file was filled with zeros; the length of the file stays.
    Zero {
        /// Number of the file in the log, from 0. It stays the same when the file is renamed.
        file: FileId,
        /// Range of bytes in the file that was filled with zeros; the end is exclusive.
        range: Range<u64>,
    },
    /// The length of a file changed, without a write of bytes.
    Resize {
        /// Number of the file in the log, from 0. It stays the same when the file is renamed.
        file: FileId,
        /// New length of the file in bytes.
        len: u64,
    },
    /// Names of files changed in one atomic step: files were created, renamed, linked or unlinked.
    Names {
        /// Each changed name, as a path relative to the recorded folder, with the number of the file that it now names;
        /// `None` for a removed name.
        changes: Vec<(String, Option<FileId>)>,
    },
    /// A file was synced, or its sync failed.
    Sync {
        /// Number of the file in the log, from 0. It stays the same when the file is renamed.
        file: FileId,
        /// Range of bytes that was synced, without its end; `None` for all bytes and the length of the file.
        range: Option<Range<u64>>,
        /// Whether the sync failed. The kernel then treats the pages as clean, so a later sync does not write them.
        has_failed: bool,
    },
    /// A folder was synced: the names of files directly in it are durable.
    SyncNames {
        /// Path of the folder, relative to the recorded folder; empty for the recorded folder itself.
        folder: String,
    },
    /// All files and names were synced, as by `sync`.
    SyncAll,
    /// Bytes were sent to a client on a socket.
    Sent {
        /// Inode number of the socket, which identifies the socket.
        socket: u64,
        /// Total number of bytes sent on the socket since the start of the log, including these.
        total: u64,
    },
}

/// An event of a log, with the system call that caused it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name of the system call that caused the event, such as `pwrite64`; other text for events that no single call
    /// caused.
    pub call: &'static str,
    /// Change of the files, sync, or send.
    pub event: Event,
}

/// The contents and names of the files of a folder.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Contents of each file, by the number of the file. Includes files that have no name any more.
    pub files: BTreeMap<FileId, Sparse>,
    /// Number of the file of each name. Names are paths relative to the folder.
    pub names: BTreeMap<String, FileId>,
}

impl Disk {
    /// Returns the contents of the file with this name, or `None` if there is no such name.
    pub fn named(&self, name: &str) -> Option<&Sparse> {
        self.files.get(self.names.get(name)?)
    }

    /// Writes all files that have a name into `folder`, and overwrites existing files of the same names. Files without
    /// a name are not written.
    ///
    /// # Errors
    /// A file or folder cannot be written.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        for (name, file) in &self.names {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a file lies in a folder"))?;
            self.files[file].save(&File::create(path)?)?;
        }
        Ok(())
    }

    /// Applies an event as the host sees its effect while the power is on. Syncs and sends change nothing.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Write { file, offset, bytes, .. } => self.file(*file).write(*offset, bytes),
            Event::Zero { file, range } => self.file(*file).zero(range.clone()),
            Event::Resize { file, len } => self.file(*file).set_len(*len),
            Event::Names { changes } => changes.iter().for_each(|(name, file)| self.rename(name, *file)),
            Event::Sync { .. } | Event::SyncNames { .. } | Event::SyncAll | Event::Sent { .. } => {}
        }
    }

    /// Makes `name` a name of `file`, which is created empty if it does not exist yet. The file that had this name
    /// loses it; other names of `file` stay. If `file` is `None`, removes the name. The contents of files stay in any
    /// case.
    pub fn rename(&mut self, name: &str, file: Option<FileId>) {
        match file {
            Some(file) => {
                self.file(file);
                self.names.insert(name.into(), file);
            }
            None => {
                self.names.remove(name);
            }
        }
    }

    fn file(&mut self, file: FileId) -> &mut Sparse {
        self.files.entry(file).or_default()
    }

    /// Returns a description of the first difference between two disks in names, lengths or contents, or `None` if they
    /// are equal. Files that only one of the disks has are compared by their names only.
    pub fn difference(&self, other: &Disk) -> Option<String> {
        if self.names != other.names {
            return Some(format!("names {:?} and {:?}", self.names, other.names));
        }
        self.files.iter().find_map(|(id, one)| {
            let two = other.files.get(id)?;
            let name = self.names.iter().find(|(_, file)| *file == id).map_or("(no name)", |(name, _)| name);
            if one.len() != two.len() {
                return Some(format!("{name}: {} and {} bytes", one.len(), two.len()));
            }
            one.differences(two).first().map(|range| format!("{name}: bytes {} to {}", range.start, range.end - 1))
        })
    }
}

/// The log of a recorded program: its changes to the files of a folder, and its sends to clients.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The files before the first event, all durable.
    pub first: Disk,
    /// The events of the program with their system calls, in the order in which the events took place.
    pub entries: Vec<Entry>,
}

impl Log {
    /// Returns the files after all events, as the host sees them while the power is on.
    pub fn last(&self) -> Disk {
        let mut disk = self.first.clone();
        self.entries.iter().for_each(|entry| disk.apply(&entry.event));
        disk
    }

    /// Returns the number of events by cause: the name of the system call, or another text for events that no single
    /// call caused.
    pub fn calls(&self) -> BTreeMap<&'static str, usize> {
        let mut calls = BTreeMap::new();
        self.entries.iter().for_each(|entry| *calls.entry(entry.call).or_default() += 1);
        calls
    }

    /// Returns the sends on the socket on which most bytes were sent, in order. Each is given as (total number of bytes
    /// sent on the socket so far, position in the log from 0). Empty if nothing was sent.
    pub fn sends(&self) -> Vec<(u64, usize)> {
        let mut sockets: BTreeMap<u64, Vec<(u64, usize)>> = BTreeMap::new();
        for (position, entry) in self.entries.iter().enumerate() {
            if let Event::Sent { socket, total } = entry.event {
                sockets.entry(socket).or_default().push((total, position));
            }
        }
        sockets.into_values().max_by_key(|sends| sends.last().map_or(0, |&(total, _)| total)).unwrap_or_default()
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Write { file, offset, bytes, is_durable } => {
                write!(
                    f,
                    "file {file}: {} bytes at {offset}{}",
                    bytes.len(),
                    if *is_durable { ", durable" } else { "" }
                )
            }
            Event::Zero { file, range } => write!(f, "file {file}: zeros at {} to {}", range.start, range.end),
            Event::Resize { file, len } => write!(f, "file {file}: {len} bytes long"),
            Event::Names { changes } => write!(f, "names {changes:?}"),
            Event::Sync { file, range, has_failed } => {
                write!(f, "file {file}: sync{}", if *has_failed { ", failed" } else { "" })?;
                range.as_ref().map_or(Ok(()), |range| write!(f, " of {} to {}", range.start, range.end))
            }
            Event::SyncNames { folder } => write!(f, "sync of the folder '{folder}'"),
            Event::SyncAll => write!(f, "sync of everything"),
            Event::Sent { socket, total } => write!(f, "socket {socket}: {total} bytes sent"),
        }
    }
}
