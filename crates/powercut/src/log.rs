//! The log of a program: what it did to the files of a folder, in order, and what it sent to its clients meanwhile.
//!
//! Invariants:
//! 1. An event is complete: the event after it began after it ended.
//! 2. All events, applied to the first contents, give the last ones ([`Log::last`]).

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::sparse::Sparse;

/// Number of a file in a log, whatever its names.
pub type FileId = u32;

/// Something that was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Bytes were written, by whatever call.
    Write {
        /// To which file.
        file: FileId,
        /// Where.
        offset: u64,
        /// The bytes.
        bytes: Arc<[u8]>,
        /// Whether they were durable when the call returned (`O_DSYNC`, `RWF_DSYNC`).
        is_durable: bool,
    },
    /// Bytes became zeros; the length stays.
    Zero {
        /// Of which file.
        file: FileId,
        /// Which.
        range: Range<u64>,
    },
    /// The length changed.
    Resize {
        /// Of which file.
        file: FileId,
        /// Its new length.
        len: u64,
    },
    /// Names of files changed, in one act: created, renamed, linked, unlinked.
    Names {
        /// Each name with what it names now.
        changes: Vec<(String, Option<FileId>)>,
    },
    /// A file was synced, or its sync failed.
    Sync {
        /// Which file.
        file: FileId,
        /// Which bytes; nothing for all, with the length.
        range: Option<Range<u64>>,
        /// Whether the sync failed: its pages are clean then, and nobody knows what the disk has.
        has_failed: bool,
    },
    /// A folder was synced: the names in it are durable.
    SyncNames {
        /// Its path in the recorded folder, which is itself the empty one.
        folder: String,
    },
    /// Everything was synced.
    SyncAll,
    /// Bytes went out on a socket.
    Sent {
        /// Which, by the kernel's number.
        socket: u64,
        /// Bytes sent on it so far, these included.
        total: u64,
    },
}

/// An event with the call that made it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name of the system call.
    pub call: &'static str,
    /// What it did.
    pub event: Event,
}

/// Files with their names.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Contents, of files without a name as well.
    pub files: BTreeMap<FileId, Sparse>,
    /// What each name, relative to the folder, names.
    pub names: BTreeMap<String, FileId>,
}

impl Disk {
    /// Returns the contents of the file with this name.
    pub fn named(&self, name: &str) -> Option<&Sparse> {
        self.files.get(self.names.get(name)?)
    }

    /// Writes all named files into `folder`, over what is there.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        for (name, file) in &self.names {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a file lies in a folder"))?;
            self.files[file].save(&File::create(path)?)?;
        }
        Ok(())
    }

    /// Applies an event, as the host sees it while the power is on.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Write { file, offset, bytes, .. } => self.file(*file).write(*offset, bytes),
            Event::Zero { file, range } => self.file(*file).zero(range.clone()),
            Event::Resize { file, len } => self.file(*file).set_len(*len),
            Event::Names { changes } => changes.iter().for_each(|(name, file)| self.rename(name, *file)),
            Event::Sync { .. } | Event::SyncNames { .. } | Event::SyncAll | Event::Sent { .. } => {}
        }
    }

    /// Makes `name` name `file`, or nothing.
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

    /// Returns the first difference between two disks in words: names, lengths, contents.
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

/// What a program did.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The files before, all of them durable.
    pub first: Disk,
    /// What was done, in order.
    pub entries: Vec<Entry>,
}

impl Log {
    /// Returns the files after all events, as the host sees them.
    pub fn last(&self) -> Disk {
        let mut disk = self.first.clone();
        self.entries.iter().for_each(|entry| disk.apply(&entry.event));
        disk
    }

    /// Returns the number of events of each call.
    pub fn calls(&self) -> BTreeMap<&'static str, usize> {
        let mut calls = BTreeMap::new();
        self.entries.iter().for_each(|entry| *calls.entry(entry.call).or_default() += 1);
        calls
    }

    /// Returns for the socket on which most was sent the positions of its sends: bytes sent by then, position in the log.
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
