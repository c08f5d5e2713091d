//! A file that appears under its name only when it is complete.
//!
//! ```text
//!  create ─► hidden file ─┬─ finish ─► durable ─► renamed: stands under its name
//!                         └─ dropped, or discard_unfinished ─► removed
//! ```
//!
//! A symbolic link is kept, and its target is replaced, or made if it is missing. A file that is replaced keeps its
//! permissions and, as far as the system allows it, its owner. A path that is not a regular file, such as a pipe or
//! `/dev/null`, is written directly, and so are the process's own descriptors, such as `/dev/stdout`.
//!
//! Invariants:
//! 1. The hidden file is in the folder of the final one, so that renaming never crosses file systems.
//! 2. Every hidden file that exists is listed in [`UNFINISHED`]. Its name contains a random number of 122 bits, so that
//!    no two processes share a hidden file, not even processes with the same number in different containers.
//! 3. A hidden file is locked until it has its final name. So a hidden file that can be locked was left by a process
//!    that is gone, and [`remove_unfinished`] may remove it.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use imbrex_safety::{OutputError, check_output};

use super::FilesError;

/// Paths of the hidden files of this process.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// End of the names of hidden files.
const HIDDEN_END: &str = ".unfinished";

/// Removes all unfinished files that this process has created. For a process that ends without running destructors.
/// Ignores errors.
pub fn discard_unfinished() {
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for path in std::mem::take(&mut *unfinished) {
        // A file that cannot be removed is ignored: the process is ending.
        let _ = fs::remove_file(path);
    }
}

/// A file that is being written and appears under its name only when it is complete. Dropping this value before
/// [`WholeFile::finish`] removes the unfinished file.
#[derive(Debug)]
pub struct WholeFile {
    out: BufWriter<File>,
    /// Path of the hidden file; `None` if `path` is not a regular file and is written directly.
    hidden: Option<PathBuf>,
    path: PathBuf,
}

impl WholeFile {
    /// Creates a hidden file in the folder of `path`; [`WholeFile::finish`] renames it to `path`. If `path` is a
    /// symbolic link, its target is replaced. If `path` is a pipe or a character device, such as `/dev/null`, it is
    /// written directly; a pipe is waited for until it has a reader. A descriptor of this process, such as
    /// `/dev/stdout`, is written from its present position on.
    ///
    /// # Errors
    ///
    /// If `path` is a block device, a file in use, or a file that this user may not write, if the hidden file cannot be
    /// created, or if the wait for a reader was stopped.
    pub fn create(path: &Path) -> io::Result<WholeFile> {
        check_patiently(path).map_err(io::Error::other)?;
        let with = |file, hidden, path| WholeFile { out: BufWriter::with_capacity(1 << 16, file), hidden, path };
        let end = end_of_links(path)?;
        if let Some(file) = own_descriptor(&end) {
            return Ok(with(file?, None, path.to_path_buf()));
        }
        let (path, replaced) = match fs::metadata(path) {
            Ok(is) if !is.is_file() && !is.is_dir() => {
                return Ok(with(open_directly(path)?, None, path.to_path_buf()));
            }
            Ok(is) => (path.canonicalize()?, Some(is)),
            Err(_) => (end, None),
        };
        loop {
            if let Some((file, hidden)) = create_hidden(&path)? {
                let file = with(file, Some(hidden), path.clone());
                if let Some(replaced) = replaced {
                    keep_access(file.out.get_ref(), &path, &replaced)?;
                }
                return Ok(file);
            }
        }
    }

    /// Writes the buffered bytes and calls fsync, so that all bytes written so far are durable. A pipe or device is
    /// only flushed.
    ///
    /// # Errors
    ///
    /// If a byte cannot be written or the fsync fails.
    pub fn settle(&mut self) -> io::Result<()> {
        self.out.flush()?;
        match &self.hidden {
            Some(_) => self.out.get_ref().sync_all(),
            // A pipe or device cannot be made durable.
            None => Ok(()),
        }
    }

    /// Makes the contents durable, then renames the file to its final name, replacing a previous file. The rename
    /// itself may still be lost in a power cut.
    ///
    /// # Errors
    ///
    /// If a byte cannot be written, or the fsync or the rename fails. The file is then removed.
    pub fn finish(mut self) -> io::Result<()> {
        self.settle()?;
        self.name()
    }

    /// Renames the file to its final name without fsync. Other processes see the complete file at once, but a power cut
    /// may leave it truncated or empty. For files whose readers detect truncation and whose contents can be computed
    /// again.
    ///
    /// # Errors
    ///
    /// If a byte cannot be written or the rename fails. The file is then removed.
    pub fn finish_unsettled(mut self) -> io::Result<()> {
        self.out.flush()?;
        self.name()
    }

    fn name(&self) -> io::Result<()> {
        if let Some(hidden) = &self.hidden {
            fs::rename(hidden, &self.path)?;
            lock().remove(hidden);
        }
        Ok(())
    }

    /// Writes the buffered bytes and returns a second handle to the file, positioned at its beginning. Both handles
    /// share one position. The hidden file is still removed when `self` is dropped.
    ///
    /// # Errors
    ///
    /// If a byte cannot be written or the handle cannot be made.
    pub fn reread(&mut self) -> io::Result<File> {
        self.out.flush()?;
        let mut file = self.out.get_ref().try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}

/// Returns the path that `path` leads to over symbolic links, whether or not there is a file. Links of the process's
/// own descriptors are not followed.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    /// The number of links that Linux follows.
    const LINKS_MAX: usize = 40;
    let mut end = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        if is_descriptor(&end) {
            return Ok(end);
        }
        let Ok(target) = fs::read_link(&end) else { return Ok(end) };
        end = end.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many symbolic links lead on from there"))
}

/// Returns whether `path` names one of this process's descriptors.
fn is_descriptor(path: &Path) -> bool {
    let own = |folder: &Path| {
        fs::canonicalize("/proc/self/fd").is_ok_and(|own| folder.canonicalize().is_ok_and(|it| it == own))
    };
    let is_there = |folder: &&Path| folder.starts_with("/dev") || folder.starts_with("/proc");
    path.parent().filter(is_there).is_some_and(own)
}

/// Returns whether `path` leads to one of this process's descriptors.
pub(super) fn is_own(path: &Path) -> bool {
    end_of_links(path).is_ok_and(|end| is_descriptor(&end))
}

/// Returns whether an output of this name goes to this process's standard output.
pub fn is_standard_output(path: &Path) -> bool {
    end_of_links(path).is_ok_and(|end| is_descriptor(&end) && end.ends_with("1"))
}

/// Opens `path` if it names one of this process's descriptors: a file that the shell opened is continued, not replaced.
fn own_descriptor(path: &Path) -> Option<io::Result<File>> {
    use std::os::fd::AsFd;
    if !is_descriptor(path) {
        return None;
    }
    let copy = |descriptor: io::Result<std::os::fd::OwnedFd>| descriptor.map(File::from);
    Some(match path.file_name()?.to_str()? {
        "1" => copy(io::stdout().as_fd().try_clone_to_owned()),
        "2" => copy(io::stderr().as_fd().try_clone_to_owned()),
        _ if path.is_file() => File::options().append(true).open(path),
        _ => open_directly(path),
    })
}

/// Gives `file` the permissions and the owner of the file that it will replace. Only the system's administrator can
/// give a file away; the owner of such a file stays the user that runs this process.
fn keep_access(file: &File, path: &Path, replaced: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (replaced.uid(), replaced.gid()) {
        let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
    }
    file.set_permissions(replaced.permissions())
}

/// Checks that `path` may be replaced. A file that another process has just renamed there is locked until that process
/// closes it, a moment later.
pub(super) fn check_patiently(path: &Path) -> Result<(), OutputError> {
    const MOMENT: Duration = Duration::from_secs(1);
    let begun = Instant::now();
    loop {
        match check_output(path, &[]) {
            Err(OutputError::InUse { .. }) if begun.elapsed() < MOMENT => std::thread::sleep(Duration::from_millis(10)),
            outcome => return outcome,
        }
    }
}

/// Function that returns whether the user asks to stop, for waits in this module.
static SHOULD_STOP: OnceLock<fn() -> bool> = OnceLock::new();

/// Makes [`WholeFile::create`] end its wait for the reader of a pipe with an error once `should_stop` returns `true`.
/// Affects the whole process; only the first call has an effect.
pub fn stop_waiting_when(should_stop: fn() -> bool) {
    let _ = SHOULD_STOP.set(should_stop);
}

/// Opens `path`, which is not a regular file, for writing. Waits until a pipe has a reader.
#[cfg(unix)]
fn open_directly(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    /// Time between two attempts to open a pipe.
    const PATIENCE: Duration = Duration::from_millis(50);
    if !fs::metadata(path)?.file_type().is_fifo() {
        return File::options().write(true).open(path);
    }
    loop {
        let flags = OFlags::NONBLOCK.bits() as i32;
        match File::options().write(true).custom_flags(flags).open(path) {
            Ok(file) => {
                let flags = rustix::fs::fcntl_getfl(&file)?;
                rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
                return Ok(file);
            }
            // The pipe has no reader yet.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        if SHOULD_STOP.get().is_some_and(|should_stop| should_stop()) {
            return Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "interrupted; nobody has opened this pipe to read it",
            ));
        }
        std::thread::sleep(PATIENCE);
    }
}

#[cfg(not(unix))]
fn open_directly(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// Creates and locks a hidden file for `path`. Returns `None` if another process removed it before it was locked.
fn create_hidden(path: &Path) -> io::Result<Option<(File, PathBuf)>> {
    /// Bytes of the final name that the hidden name repeats, so that it stays within the 255 bytes of a name.
    const REPEATED_BYTES: usize = 128;
    let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
    let name: String = name.to_string_lossy().chars().take(REPEATED_BYTES / 4).collect();
    let hidden = path.with_file_name(format!(".{name}.{}{HIDDEN_END}", uuid::Uuid::new_v4().simple()));
    lock().insert(hidden.clone());
    let file = File::options().read(true).write(true).create_new(true).open(&hidden);
    let file = file.inspect_err(|_| {
        lock().remove(&hidden);
    })?;
    // Some file systems have no locks: there, files that are left over stay.
    let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    if is_taken || !hidden.exists() {
        lock().remove(&hidden);
        return Ok(None);
    }
    Ok(Some((file, hidden)))
}

/// Removes the unfinished files in `folder` whose processes have ended, which their released locks show. Returns the
/// number of files removed. Ignores errors.
pub fn remove_unfinished(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_hidden = |name: &str| name.starts_with('.') && name.ends_with(HIDDEN_END);
    let hidden = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_hidden)).map(|entry| entry.path());
    let is_left = |path: &PathBuf| {
        let own = lock().contains(path);
        !own && File::open(path).is_ok_and(|file| file.try_lock().is_ok() && fs::remove_file(path).is_ok())
    };
    hidden.filter(is_left).count() as u64
}

/// A file that is written through separate handles, for libraries that close their writer themselves. [`Draft::keep`]
/// gives the file its final name; dropping this value before that removes the file.
#[derive(Debug)]
pub struct Draft {
    file: WholeFile,
}

impl Draft {
    /// Creates a hidden file in the folder of `path`; [`Draft::keep`] renames it to `path`. A pipe or a character
    /// device is written directly.
    ///
    /// # Errors
    ///
    /// If `path` is a block device or a file in use, or if the hidden file cannot be created.
    pub fn create(path: &Path) -> Result<Draft, FilesError> {
        let file = WholeFile::create(path).map_err(|error| FilesError::file(path, error))?;
        Ok(Draft { file })
    }

    /// Returns a buffered writer into the file. It has to be flushed or dropped before [`Draft::keep`], or its last
    /// bytes are missing. All writers share one position in the file.
    ///
    /// # Errors
    ///
    /// If the handle cannot be made.
    pub fn writer(&self) -> Result<BufWriter<File>, FilesError> {
        let handle = self.file.out.get_ref().try_clone();
        handle.map(BufWriter::new).map_err(|error| FilesError::file(&self.file.path, error))
    }

    /// Makes the contents durable and renames the file to its final name, replacing a previous file.
    ///
    /// # Errors
    ///
    /// If a byte cannot be written, or the fsync or the rename fails. The file is then removed.
    pub fn keep(self) -> Result<(), FilesError> {
        let path = self.file.path.clone();
        self.file.finish().map_err(|error| FilesError::file(&path, error))
    }
}

fn lock() -> std::sync::MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        let Some(hidden) = &self.hidden else { return };
        if lock().remove(hidden) {
            // The file may have been removed already.
            let _ = fs::remove_file(hidden);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_replaces_the_old_one_at_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("f");
        fs::write(&path, "old").expect("written");
        let mut file = WholeFile::create(&path).expect("begun");
        file.write_all(b"new").expect("written");
        file.settle().expect("settled");
        assert_eq!(fs::read(&path).expect("there"), b"old", "not before it is whole");
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 2);
        file.finish().expect("renamed");
        assert_eq!(fs::read(&path).expect("there"), b"new");
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 1);
    }

    #[test]
    fn a_link_stays_one_and_what_is_no_file_is_written_to() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("made");
        let write = |path: &Path| {
            let mut file = WholeFile::create(path).expect("begun");
            file.write_all(b"new").expect("written");
            file.finish().expect("finished");
        };
        write(&link);
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read(&target).expect("there"), b"new");

        // A pipe in the test's folder stands for a device, so that no device of the machine is touched.
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).expect("made");
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe)
        });
        write(&pipe);
        assert_eq!(reader.join().expect("it reads").expect("there"), b"new");
        assert!(!fs::symlink_metadata(&pipe).expect("there").is_file());
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 3);
    }

    #[test]
    fn a_link_that_leads_to_no_file_yet_stays_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::os::unix::fs::symlink("target", &link).expect("made");
        let mut file = WholeFile::create(&link).expect("begun");
        file.write_all(b"new").expect("written");
        file.finish().expect("finished");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read(&target).expect("there"), b"new");
        std::os::unix::fs::symlink("circle", folder.path().join("circle")).expect("made");
        assert!(WholeFile::create(&folder.path().join("circle")).is_err());
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions_and_its_owner() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("f");
        fs::write(&path, "old").expect("written");
        let is_root = fs::metadata(&path).expect("there").uid() == 0;
        if is_root {
            std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).expect("given away");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        let mut file = WholeFile::create(&path).expect("begun");
        file.write_all(b"new").expect("written");
        file.finish().expect("finished");
        let after = fs::metadata(&path).expect("there");
        assert_eq!((after.mode() & 0o7777, fs::read(&path).expect("there")), (0o600, b"new".to_vec()));
        assert!(!is_root || after.uid() == 65_534, "the owner stays");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("set");
        // Root may write every file.
        assert_eq!(WholeFile::create(&path).is_ok(), is_root);
    }

    #[test]
    fn a_descriptor_of_this_process_is_continued_and_not_replaced() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("f");
        fs::write(&path, "old ").expect("written");
        let open = File::options().append(true).open(&path).expect("there");
        for folder in ["/proc/self/fd", "/dev/fd"] {
            let mut file = WholeFile::create(&Path::new(folder).join(open.as_raw_fd().to_string())).expect("begun");
            file.write_all(b"new ").expect("written");
            file.finish().expect("finished");
        }
        assert_eq!(fs::read(&path).expect("there"), b"old new new ");
        assert!(is_standard_output(Path::new("/dev/stdout")) && !is_standard_output(Path::new("/dev/stderr")));
        assert!(!is_standard_output(Path::new("1")));
    }

    #[test]
    fn a_draft_is_filled_by_another_and_named_in_the_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("f");
        let draft = Draft::create(&path).expect("begun");
        let mut writer = draft.writer().expect("a handle");
        writer.write_all(b"all of it").expect("written");
        writer.flush().expect("flushed");
        drop(writer);
        assert!(!path.exists());
        draft.keep().expect("named");
        assert_eq!(fs::read(&path).expect("there"), b"all of it");
    }

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut file = WholeFile::create(&folder.path().join("f")).expect("begun");
        file.write_all(&[7; 100_000]).expect("written");
        assert!(lock().iter().any(|hidden| hidden.starts_with(folder.path())), "a signal would find it");
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 0);
        assert!(!lock().iter().any(|hidden| hidden.starts_with(folder.path())));
    }

    #[test]
    fn files_that_a_dead_process_left_are_removed_and_others_are_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("rows.parquet");
        let left = folder.path().join(".rows.parquet.1-0.unfinished");
        fs::write(&left, b"half").expect("written");
        let mut file = WholeFile::create(&path).expect("writable");
        let other = File::create(folder.path().join(".other.7.unfinished")).expect("written");
        other.lock().expect("as another process would");
        assert_eq!(remove_unfinished(folder.path()), 1);
        assert!(!left.exists());
        file.write_all(b"whole").expect("written");
        file.finish().expect("renamed");
        assert_eq!(fs::read(&path).expect("there"), b"whole");
        assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 2, "the other's file stays");
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_is_refused_rather_than_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        assert!(WholeFile::create(&path).is_err());
    }
}
