//! A file that gets its name only when its contents are complete and durable: a new image, a snapshot, an upgraded
//! image.
//!
//! ```text
//!  create ─► file without a name ──┬─ finish ─► durable ─► linked to its name ─► folder durable
//!       └──► hidden file (locked) ─┘  dropped ─► gone
//!  create_over ─► hidden file ─────── finish ─► durable ─► renamed over what has its name ─► folder durable
//! ```
//!
//! A file without a name disappears with its process, however that ends. On file systems without unnamed files, a
//! hidden file in the same folder is used. The hidden file is locked as long as its process lives, so one that a dead
//! process left is recognized and reused.
//!
//! Invariants:
//! 1. A file begun by `create` replaces nothing: if its name exists at the start or at the end, that is an error.
//! 2. An existing hidden file is taken over or removed only if it is an unfinished image of a dead process.
//! 3. The file is locked from its creation until it is closed, so no other process works on it once it has its name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat_with};
use rustix::io::Errno;

use crate::image::header::MAGIC;

/// A new file that does not have its final name yet.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    path: PathBuf,
    folder: File,
    hidden: Option<PathBuf>,
    replaces: bool,
}

impl NewFile {
    /// Creates a file that will get the name `path` and has the permissions `mode`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if `path` exists.
    pub(crate) fn create(path: &Path, mode: u32) -> io::Result<NewFile> {
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let is_named = path.file_name().is_some() && !path.as_os_str().to_string_lossy().ends_with('/');
        if !is_named {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
        }
        let folder_path = folder_of(path);
        let folder = File::open(folder_path)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match openat(CWD, folder_path, flags, Mode::from_raw_mode(mode)) {
            Ok(file) => {
                let file = File::from(file);
                lock(&file)?;
                Ok(NewFile { file, path: path.into(), folder, hidden: None, replaces: false })
            }
            // One of these errors means that the file system has no unnamed files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
                NewFile::create_hidden(path, folder, mode)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file that will replace the file `path`.
    pub(crate) fn create_over(path: &Path, mode: u32) -> io::Result<NewFile> {
        let folder = File::open(folder_of(path))?;
        let mut new = NewFile::create_hidden(path, folder, mode)?;
        new.replaces = true;
        Ok(new)
    }

    /// Creates a hidden file beside `path`, or takes over the one that a dead process left.
    fn create_hidden(path: &Path, folder: File, mode: u32) -> io::Result<NewFile> {
        let hidden = hidden_path(path);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(mode).open(&hidden)?;
        lock(&file)?;
        if !stands_at(&file, &hidden) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another process has just made it"));
        }
        if !is_begun(&file)? {
            let words = format!("{} is in the way, and no image: rename it or remove it", hidden.display());
            return Err(io::Error::other(words));
        }
        file.set_len(0)?;
        Ok(NewFile { file, path: path.into(), folder, hidden: Some(hidden), replaces: false })
    }

    /// Returns the file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the final path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file durable, without giving it its name.
    pub(crate) fn settle(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Makes the file durable and gives it its name.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.settle()?;
        self.give_name()?;
        self.folder.sync_all()
    }

    fn give_name(&mut self) -> io::Result<()> {
        let Some(hidden) = &self.hidden else {
            let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            return Ok(linkat(CWD, own, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?);
        };
        let flags = if self.replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, hidden, CWD, &self.path, flags) {
            Ok(()) => {}
            // Not all file systems support RENAME_NOREPLACE.
            Err(Errno::INVAL | Errno::NOSYS) if !self.replaces => {
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
            // If the file is already gone, there is nothing to do.
            let _ = std::fs::remove_file(hidden);
        }
    }
}

/// Returns whether `file` is an unfinished image and not a user's file. An unfinished image is empty or begins with
/// [`MAGIC`].
fn is_begun(file: &File) -> io::Result<bool> {
    let mut start = [0; 8];
    let is_image = file.metadata()?.len() >= 8 && file.read_exact_at(&mut start, 0).is_ok() && start == MAGIC;
    Ok(is_image || file.metadata()?.len() == 0)
}

/// Locks the file exclusively, so that no other process works on it.
fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::ResourceBusy, "another process is making a file of that name")
        }
        TryLockError::Error(error) => error,
    })
}

/// Removes the hidden file `.NAME.unfinished` beside `path` that a dead process left while it created the image `path`.
/// Does nothing if there is no such file, a living process has it locked, or it is not an unfinished image. Errors are
/// ignored.
pub fn discard_unfinished(path: &Path) {
    let hidden = hidden_path(path);
    let Ok(file) = OpenOptions::new().read(true).write(true).open(&hidden) else { return };
    if file.try_lock().is_ok() && stands_at(&file, &hidden) && is_begun(&file).unwrap_or(false) {
        // An error cannot be handled in any useful way.
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

/// Returns whether the file at `path` is `file`.
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

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("it can be read");
        entries.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned()).collect()
    }

    fn kind<T>(outcome: io::Result<T>) -> io::ErrorKind {
        outcome.map(drop).expect_err("it fails").kind()
    }

    /// Returns both kinds of new files for `path`: unnamed and hidden.
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
            file.finish().expect("the name is free");
            assert_eq!(fs::read(&path).expect("it is there"), b"whole");
            assert_eq!(path.metadata().expect("it is there").mode() & 0o777, 0o600);
        }
        assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
    }

    #[test]
    fn a_file_that_nobody_wants_any_more_does_not_appear() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in kinds(&folder.path().join("a")) {
            file.settle().expect("it can be made durable");
            drop(file);
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
            assert_eq!(kind(file.finish()), io::ErrorKind::AlreadyExists, "taken meanwhile");
        }
        assert_eq!(kind(NewFile::create(&path, 0o600)), io::ErrorKind::AlreadyExists, "taken before");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).expect("it is made");
        let made = NewFile::create(&link, 0o600);
        assert_eq!(kind(made), io::ErrorKind::AlreadyExists, "a link that leads nowhere");
        assert_eq!(fs::read(&path).expect("it is there"), b"another");
        assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
    }

    #[test]
    fn what_is_to_be_replaced_stands_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        fs::write(&path, "old").expect("it is written");
        for is_finished in [false, true] {
            let file = NewFile::create_over(&path, 0o600).expect("it can be made");
            file.file().write_all_at(b"new", 0).expect("it is written");
            assert_eq!(fs::read(&path).expect("it is there"), b"old");
            if is_finished {
                file.finish().expect("it is renamed");
            }
        }
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn what_a_dead_process_left_is_used_again_or_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        let begin = || NewFile::create_hidden(&path, File::open(folder.path()).expect("it is there"), 0o600);
        let living = begin().expect("it can be made");
        assert_eq!(begin().expect_err("it is locked").kind(), io::ErrorKind::ResourceBusy);
        discard_unfinished(&path);
        assert_eq!(names(folder.path()).len(), 1, "its process lives");
        drop(living);
        assert_eq!(names(folder.path()).len(), 0);
        let left_behind = [&MAGIC[..], b"left behind, and longer"].concat();
        fs::write(hidden_path(&path), &left_behind).expect("it is written");
        let again = begin().expect("its process is dead");
        again.file().write_all_at(b"new", 0).expect("it is written");
        again.finish().expect("the name is free");
        assert_eq!(fs::read(&path).expect("it is there"), b"new");
        fs::write(hidden_path(&path), &left_behind).expect("it is written");
        discard_unfinished(&path);
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_file_of_somebody_is_not_taken_for_one_in_the_making() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        fs::write(hidden_path(&path), "a letter").expect("it is written");
        let begun = NewFile::create_hidden(&path, File::open(folder.path()).expect("it is there"), 0o600);
        let said = begun.expect_err("it is no image").to_string();
        assert!(said.contains("is in the way"), "{said}");
        discard_unfinished(&path);
        assert_eq!(fs::read(hidden_path(&path)).expect("it is there"), b"a letter");
    }
}
