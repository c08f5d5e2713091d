//! A file that appears when it is whole and durable, and never in the place of another.
//!
//! ```text
//!  create ─► file without a name ──┬─ finish ─► durable ─► linked to its name ─► folder durable
//!       └──► hidden file (locked) ─┘  dropped ─► gone
//! ```
//!
//! A file without a name is gone with its process, whatever ends that. Where the file system has none, a hidden file stands
//! beside the name; it is locked as long as its process lives, so that one left behind by a dead process is known, and used
//! again.
//!
//! Invariants:
//! 1. Nothing is ever replaced: a name that is taken, at the start or at the end, is an error.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat_with};
use rustix::io::Errno;

use super::SnapshotError;

/// A file in the making.
pub(super) struct NewFile {
    file: File,
    path: PathBuf,
    folder: File,
    hidden: Option<PathBuf>,
}

impl NewFile {
    /// Begins what will be `path`, with the permissions `mode`.
    pub(super) fn create(path: &Path, mode: u32) -> Result<NewFile, SnapshotError> {
        let failed = |cause: io::Error| SnapshotError::Target { path: path.into(), cause };
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(SnapshotError::Exists(path.into()));
        }
        let is_named = path.file_name().is_some() && !path.as_os_str().to_string_lossy().ends_with('/');
        if !is_named {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file")));
        }
        let folder_path = folder_of(path);
        let folder = File::open(folder_path).map_err(failed)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match openat(CWD, folder_path, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => Ok(NewFile { file: file.into(), path: path.into(), folder, hidden: None }),
            // File systems without nameless files say so in one of these ways.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
                NewFile::create_hidden(path, folder, mode).map_err(failed)
            }
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Begins it in a hidden file.
    fn create_hidden(path: &Path, folder: File, mode: u32) -> io::Result<NewFile> {
        let hidden = hidden_path(path);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(mode).open(&hidden)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another snapshot is being taken there"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if !stands_at(&file, &hidden) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another snapshot was just taken there"));
        }
        file.set_len(0)?;
        Ok(NewFile { file, path: path.into(), folder, hidden: Some(hidden) })
    }

    /// The file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The name that it will have.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The error of a failed operation on it.
    pub(super) fn failed(&self, cause: io::Error) -> SnapshotError {
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                SnapshotError::NoSpace(self.path.clone())
            }
            io::ErrorKind::AlreadyExists => SnapshotError::Exists(self.path.clone()),
            _ => SnapshotError::Target { path: self.path.clone(), cause },
        }
    }

    /// Makes it durable and gives it its name, if it `is_wanted` then.
    pub(super) fn finish(mut self, is_wanted: impl FnOnce() -> bool) -> Result<(), SnapshotError> {
        self.file.sync_all().map_err(|cause| self.failed(cause))?;
        if !is_wanted() {
            return Err(SnapshotError::Interrupted);
        }
        self.give_name().map_err(|cause| self.failed(cause))?;
        self.folder.sync_all().map_err(|cause| self.failed(cause))
    }

    fn give_name(&mut self) -> io::Result<()> {
        let Some(hidden) = &self.hidden else {
            let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            return Ok(linkat(CWD, own, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?);
        };
        match renameat_with(CWD, hidden, CWD, &self.path, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            // File systems on which a rename cannot spare what is there.
            Err(Errno::INVAL | Errno::NOSYS) => {
                linkat(CWD, hidden, CWD, &self.path, AtFlags::empty())?;
                std::fs::remove_file(hidden)?;
            }
            Err(error) => return Err(error.into()),
        }
        self.hidden = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            // Already gone is as good as removed.
            let _ = std::fs::remove_file(hidden);
        }
    }
}

/// Removes what a process that died while it took a snapshot to `path` left behind, if it left anything.
pub fn discard_unfinished(path: &Path) {
    let hidden = hidden_path(path);
    let Ok(file) = OpenOptions::new().write(true).open(&hidden) else { return };
    if file.try_lock().is_ok() && stands_at(&file, &hidden) {
        // Nothing is left to be done about a file that cannot be removed.
        let _ = std::fs::remove_file(&hidden);
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn hidden_path(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.with_file_name(format!(".{name}.unfinished"))
}

/// Whether `file` is what stands at `path`.
fn stands_at(file: &File, path: &Path) -> bool {
    let identity = |facts: std::fs::Metadata| (facts.dev(), facts.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(found)) => identity(own) == identity(found),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::FileExt;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("it can be read");
        entries.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned()).collect()
    }

    /// Both kinds of files in the making for `path`.
    fn kinds(path: &Path) -> [NewFile; 2] {
        let nameless = NewFile::create(path, 0o600).expect("it can be made");
        let folder = File::open(folder_of(path)).expect("it is there");
        [nameless, NewFile::create_hidden(path, folder, 0o600).expect("it can be made")]
    }

    #[test]
    fn a_file_appears_when_it_is_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (number, name) in ["a", "b"].into_iter().enumerate() {
            let path = folder.path().join(name);
            let [nameless, hidden] = kinds(&path);
            let file = if number == 0 { nameless } else { hidden };
            file.file().write_all_at(b"whole", 0).expect("it is written");
            assert!(!path.exists());
            file.finish(|| true).expect("the name is free");
            assert_eq!(fs::read(&path).expect("it is there"), b"whole");
            assert_eq!(path.metadata().expect("it is there").mode() & 0o777, 0o600);
        }
        assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
    }

    #[test]
    fn a_file_that_nobody_wants_any_more_does_not_appear() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in kinds(&folder.path().join("a")) {
            assert!(matches!(file.finish(|| false), Err(SnapshotError::Interrupted)));
        }
        assert_eq!(names(folder.path()).len(), 0);
    }

    #[test]
    fn a_name_that_is_taken_is_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        let in_the_making = kinds(&path);
        fs::write(&path, "another").expect("it is written");
        for file in in_the_making {
            assert!(matches!(file.finish(|| true), Err(SnapshotError::Exists(_))), "taken meanwhile");
        }
        assert!(matches!(NewFile::create(&path, 0o600), Err(SnapshotError::Exists(_))), "taken before");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).expect("it is made");
        assert!(matches!(NewFile::create(&link, 0o600), Err(SnapshotError::Exists(_))), "a link that leads nowhere");
        assert_eq!(fs::read(&path).expect("it is there"), b"another");
        assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
    }

    #[test]
    fn what_a_dead_process_left_is_used_again_or_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        let begin = || NewFile::create_hidden(&path, File::open(folder.path()).expect("it is there"), 0o600);
        let living = begin().expect("it can be made");
        assert_eq!(begin().err().expect("it is locked").kind(), io::ErrorKind::ResourceBusy);
        discard_unfinished(&path);
        assert_eq!(names(folder.path()).len(), 1, "its process lives");
        drop(living);
        assert_eq!(names(folder.path()).len(), 0);
        fs::write(hidden_path(&path), "left behind, and longer").expect("it is written");
        let again = begin().expect("its process is dead");
        again.file().write_all_at(b"new", 0).expect("it is written");
        again.finish(|| true).expect("the name is free");
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        fs::write(hidden_path(&path), "left behind").expect("it is written");
        discard_unfinished(&path);
        assert_eq!(names(folder.path()), ["a"]);
    }
}
