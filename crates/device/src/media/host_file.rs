//! The host's file in which a medium lies: its identity, whether it is still at its path, which parts were written
//! since a copy of it began, and the space reserved for it.
//!
//! A file is identified by its inode number and its birth time. Both stay the same when the file is renamed and when
//! the host reboots; device numbers may change at a reboot.
//!
//! Invariants:
//! 1. While writes are noted, each write is noted after its bytes are in the file. So if a part is copied after its
//!    note was taken, the copy has these bytes.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::UNIX_EPOCH;

use super::host_reserve::HostReserve;

/// Size in bytes of a part of a file, the unit in which [`HostFile`] records which areas were written.
pub const PART_BYTES: u64 = 64 << 10;

/// Identity of a file of the host: device, inode and birth time. It stays the same when the file is renamed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileIdentity {
    /// Number of the device on which the file lies; may change when the host reboots.
    pub device: u64,
    /// Number of the inode.
    pub inode: u64,
    /// Birth time in nanoseconds since 1970-01-01 UTC; 0 if the file system does not report one.
    pub born_ns: u64,
}

impl FileIdentity {
    /// Returns the identity of the file that `metadata` describes.
    pub fn of(metadata: &Metadata) -> FileIdentity {
        let born = metadata.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born_ns = born.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0));
        FileIdentity { device: metadata.dev(), inode: metadata.ino(), born_ns }
    }

    /// Returns whether `metadata` is of this file, by device and inode number.
    fn is(&self, metadata: &Metadata) -> bool {
        (self.device, self.inode) == (metadata.dev(), metadata.ino())
    }
}

/// Relation of an opened file to the path at which it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// The file is still at its path. Also used for devices, and if the relation cannot be determined.
    InPlace,
    /// The file has no name any more: its data is lost once it is closed.
    Removed,
    /// The file has another name, and no file is at its former path.
    Renamed,
    /// Another file is at the path; the opened file was renamed or removed.
    Replaced,
}

impl Placement {
    /// Returns the name of this value in machine-readable output, such as `in-place`.
    pub fn name(self) -> &'static str {
        match self {
            Placement::InPlace => "in-place",
            Placement::Removed => "removed",
            Placement::Renamed => "renamed",
            Placement::Replaced => "replaced",
        }
    }

    /// Returns a sentence that warns users about the file that was opened at `path`, or `None` for
    /// [`Placement::InPlace`].
    pub fn warning(self, path: &Path) -> Option<String> {
        let path = path.display();
        match self {
            Placement::InPlace => None,
            Placement::Removed => {
                Some(format!("{path} was removed while it is in use: its data are lost once it is closed"))
            }
            Placement::Renamed => Some(format!("{path} was renamed while it is in use: data go to the renamed file")),
            Placement::Replaced => Some(format!(
                "another file is at {path}: data are written to the file that was there before, which is lost once it \
                 is closed unless it has another name"
            )),
        }
    }
}

/// An opened file of the host, with its identity, a record of written parts, and a reserve of disk space.
#[derive(Debug)]
pub struct HostFile {
    file: File,
    path: PathBuf,
    identity: FileIdentity,
    is_noting: AtomicBool,
    /// One bit for each part that was written.
    notes: Mutex<Vec<u64>>,
    reserve: HostReserve,
}

impl HostFile {
    /// Returns a `HostFile` with a duplicate of the handle `file`, which was opened at `path`.
    ///
    /// # Errors
    /// The metadata of the file cannot be read, its handle cannot be duplicated, or the working directory is unknown.
    pub fn new(file: &File, path: &Path) -> io::Result<HostFile> {
        let identity = FileIdentity::of(&file.metadata()?);
        Ok(HostFile {
            file: file.try_clone()?,
            // Absolute, because a process in the background may change its working directory.
            path: std::path::absolute(path)?,
            identity,
            is_noting: AtomicBool::new(false),
            notes: Mutex::default(),
            reserve: HostReserve::default(),
        })
    }

    /// Returns the handle of the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the absolute path at which the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity that the file had when it was opened.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Returns whether the file is still at its path, was removed, renamed or replaced. Devices count as in place, and
    /// so do files for which this cannot be determined.
    pub fn placement(&self) -> Placement {
        let Ok(own) = self.file.metadata() else { return Placement::InPlace };
        if !own.is_file() {
            return Placement::InPlace;
        }
        let at_path = std::fs::metadata(&self.path);
        match at_path {
            Ok(found) if self.identity.is(&found) => Placement::InPlace,
            Ok(_) => Placement::Replaced,
            Err(_) if own.nlink() == 0 => Placement::Removed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Placement::Renamed,
            Err(_) => Placement::InPlace,
        }
    }

    /// Reserves `bytes` bytes of the host's disk, or an eighth of the free space if that is less. The reserve is
    /// released when the disk becomes full, so that requests in progress can complete. It never shrinks. Does nothing
    /// for devices, and ignores failures.
    pub fn reserve_space(&self, bytes: u64) {
        self.reserve.grow_to(&self.file, &self.path, bytes);
    }

    /// Writes all of `bytes` at byte `offset` of the file. If the disk or the quota is full, releases the reserved
    /// space and tries once more. Does not record the write; [`HostFile::note_write`] does.
    ///
    /// # Errors
    /// The write fails; a part of the bytes may have been written.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.file.write_all_at(bytes, offset) {
            Err(error) if is_full(error.kind()) && self.release_reserve() => self.file.write_all_at(bytes, offset),
            outcome => outcome,
        }
    }

    /// Releases the reserved space, on a full disk. Returns whether any was reserved.
    fn release_reserve(&self) -> bool {
        self.reserve.release()
    }

    /// Frees the reserved space for good: from now on, a write to a full disk fails at once.
    pub fn drop_reserve(&self) {
        self.reserve.give_up();
    }

    /// Returns whether a write found the disk full and released the reserved space, and [`HostFile::check_disk_space`]
    /// has not reserved it again. Always false without a reserve.
    pub fn is_disk_full(&self) -> bool {
        self.reserve.is_released()
    }

    /// Returns a sentence that tells users that the disk is full. Returns `None` unless a write found the disk full and
    /// the reserved space was not reserved again since.
    pub fn full_disk_warning(&self) -> Option<String> {
        let path = self.path.display();
        self.is_disk_full().then(|| format!("the disk of {path} is full: nothing more is written until there is room"))
    }

    /// Reserves the space again after the disk was full. Returns `Ok` at once if it was not full. Makes at most ten
    /// attempts per second; a call in between returns the error without an attempt.
    ///
    /// # Errors
    /// The disk is still full. If the reservation fails for another reason, returns `Ok`, and there is no reserve any
    /// more.
    pub fn check_disk_space(&self) -> io::Result<()> {
        self.reserve.restore(&self.path)
    }

    /// Releases the advisory lock on the file, so that other processes can open it. To be called after the last write.
    ///
    /// # Errors
    /// The operating system fails to unlock the file.
    pub fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Starts to record the parts of the file (64 KiB each, [`PART_BYTES`]) that are written, with an empty record.
    pub fn begin_notes(&self) {
        self.lock().clear();
        self.is_noting.store(true, Ordering::SeqCst);
    }

    /// Stops recording writes, and discards the record.
    pub fn end_notes(&self) {
        self.is_noting.store(false, Ordering::SeqCst);
        *self.lock() = Vec::new();
    }

    /// Records a write of `length` bytes at byte `offset`, if recording is on. Does nothing for a length of 0.
    pub fn note_write(&self, offset: u64, length: u64) {
        if !self.is_noting.load(Ordering::SeqCst) || length == 0 {
            return;
        }
        let mut notes = self.lock();
        for part in offset / PART_BYTES..=(offset + length - 1) / PART_BYTES {
            let word = (part / 64) as usize;
            if notes.len() <= word {
                notes.resize(word + 1, 0);
            }
            notes[word] |= 1 << (part % 64);
        }
    }

    /// Returns the ranges of bytes written since the previous call or [`HostFile::begin_notes`], in ascending order,
    /// and clears the record. The ranges are whole parts of 64 KiB ([`PART_BYTES`]), so they may reach past the end of
    /// the file; adjacent parts are joined. Empty if no recording is on.
    pub fn take_notes(&self) -> Vec<Range<u64>> {
        let notes = std::mem::take(&mut *self.lock());
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (word, bits) in (0..).zip(notes) {
            for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                let start = (word * 64 + bit) * PART_BYTES;
                match runs.last_mut() {
                    Some(run) if run.end == start => run.end += PART_BYTES,
                    _ => runs.push(start..start + PART_BYTES),
                }
            }
        }
        runs
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.notes.lock().expect("no thread panics while it holds the notes")
    }
}

/// Returns whether an error says that the host's disk, or the user's quota, is full.
fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn opened(path: &Path) -> HostFile {
        fs::write(path, "contents").expect("the folder is ours");
        HostFile::new(&File::open(path).expect("it is there"), path).expect("it is a file")
    }

    #[test]
    fn a_file_that_lost_its_path_is_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        let file = opened(&path);
        assert_eq!(file.placement(), Placement::InPlace);
        fs::rename(&path, &other).expect("renamed");
        assert_eq!(file.placement(), Placement::Renamed);
        fs::write(&path, "another").expect("written");
        assert_eq!(file.placement(), Placement::Replaced);
        fs::rename(&other, &path).expect("renamed");
        assert_eq!(file.placement(), Placement::InPlace, "it is back");
        fs::remove_file(&path).expect("removed");
        assert_eq!(file.placement(), Placement::Removed);
        fs::write(&path, "another").expect("written");
        assert_eq!(file.placement(), Placement::Replaced);
    }

    #[test]
    fn the_reserve_is_released_once_and_restored() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = opened(&folder.path().join("a"));
        assert!(!file.release_reserve() && file.check_disk_space().is_ok(), "nothing was reserved");
        file.reserve_space(1 << 20);
        assert!(file.release_reserve() && file.is_disk_full());
        assert!(!file.release_reserve(), "it is released once");
        let error = file.check_disk_space().expect_err("no attempt to restore it has been made");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        imbrex_testkit::patience::until("space", || file.check_disk_space().ok());
        assert!(!file.is_disk_full() && file.release_reserve(), "it is reserved again");
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1, "it has no name");
    }

    #[test]
    fn what_was_written_is_noted_in_parts() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = opened(&folder.path().join("a"));
        file.note_write(0, 10);
        file.begin_notes();
        assert_eq!(file.take_notes(), [], "nothing is noted before the notes begin");
        file.note_write(PART_BYTES - 1, 1);
        file.note_write(3 * PART_BYTES, PART_BYTES);
        file.note_write(70 * PART_BYTES - 1, 2);
        let parts = |first: u64, end: u64| first * PART_BYTES..end * PART_BYTES;
        assert_eq!(file.take_notes(), [parts(0, 1), parts(3, 4), parts(69, 71)]);
        assert_eq!(file.take_notes(), [], "they are taken once");
        file.note_write(0, 2 * PART_BYTES);
        file.end_notes();
        assert_eq!(file.take_notes(), []);
    }
}
