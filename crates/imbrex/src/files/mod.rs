//! Result files of `--out`. Each is written completely or not at all.
//!
//! ```text
//!  prepare(DIR) ─► Folder ─┬─ write(NAME, …)          summary.json, report.html
//!                          ├─ latency, timeline       Parquet, at the end of the run
//!                          └─ ios, plans              streamed by each drive into a part of its own, joined in the end
//! ```
//!
//! Invariants:
//! 1. A file under its final name is complete: it is written under a hidden name in the same folder, made durable, and
//!    renamed.
//! 2. A folder that cannot be written is detected before the simulation starts.
//! 3. An unfinished file is removed when it is dropped, and by [`discard_unfinished`] when the program is made to end.
//! 4. Only this program's own files are replaced: neither an input, nor a block device, nor a file in `--out` that
//!    another program wrote.
//! 5. Rows are in the order of the drives, whichever finished first: two runs give the same bytes.

pub mod batches;
pub mod explained;
pub mod histograms;
pub mod ios;
pub mod ours;
pub mod plans;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub mod timeline;
mod whole;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Failure;
use imbrex_safety::OutputError;
pub use imbrex_safety::check_output;

pub use ios::{IoPart, IoSpool};
pub use plans::{PlanPart, PlanSpool};
pub use whole::{Draft, WholeFile, discard_unfinished, is_standard_output, remove_unfinished, stop_waiting_when};

/// Error while writing a result file or preparing its folder.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The folder cannot be created or written, or another run writes results there.
    #[error("cannot write results to {}: {reason}; {remedy}", folder.display())]
    Folder {
        /// Path of the folder for the result files.
        folder: PathBuf,
        /// Description of the cause, such as the error of the operating system.
        reason: String,
        /// Action that the user can try.
        remedy: &'static str,
    },
    /// Writing, reading or removing a file failed. If a file was to be replaced, it is unchanged.
    #[error("cannot write {}: {source}{}", path.display(), untouched(path))]
    File {
        /// Path of the file under its final name.
        path: PathBuf,
        /// Error of the operating system while the file was written, read or removed.
        source: io::Error,
    },
    /// The path must not be written: it is an input of the run, a block device, or a file that the system uses.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A result file would replace a file that another program wrote. The file is unchanged.
    #[error("{} is there and was not written by imbrex as such a file; it is unchanged: name another folder or file, or move it away", path.display())]
    Foreign {
        /// Path of the file that another program wrote.
        path: PathBuf,
    },
    /// A Parquet file could not be written or read.
    #[error("cannot write {}: {source}", path.display())]
    Table {
        /// Path of the Parquet file under its final name.
        path: PathBuf,
        /// Error of the Parquet library while the file was written or read.
        source: parquet::errors::ParquetError,
    },
}

/// Returns the end of the message of [`FilesError::File`]: the file that was to be replaced is unchanged, if there is one.
fn untouched(path: &Path) -> &'static str {
    if path.is_file() && !whole::is_own(path) { "; the file that is there is untouched" } else { "" }
}

impl FilesError {
    pub(crate) fn file(path: &Path, source: io::Error) -> FilesError {
        FilesError::File { path: path.to_path_buf(), source }
    }

    pub(crate) fn table(path: &Path, source: parquet::errors::ParquetError) -> FilesError {
        FilesError::Table { path: path.to_path_buf(), source }
    }
}

/// Length of a file in bytes, and the time of the last change of its contents in nanoseconds since 1970: a file with
/// another stamp has other contents. The time of the last change of metadata is no part of it. It also changes when an
/// open file is renamed or removed, which harms no reader.
pub(crate) type Stamp = (u64, u64);

/// Returns the stamp of a file with these `metadata`.
pub(crate) fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    (metadata.len(), changed.map_or(0, |changed| u64::try_from(changed.as_nanos()).unwrap_or(u64::MAX)))
}

/// A folder for result files that was found to be writable. If [`prepare`] created the folder and it is still empty
/// when the last copy of this value is dropped, the folder is removed.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// Number of unfinished files that earlier processes had left here, and that were removed.
    removed: u64,
    /// Removes the folder when the last copy is dropped, if it was created here and is still empty. A refused run thus
    /// leaves nothing.
    _made: Option<Arc<Made>>,
}

/// A folder that did not exist before.
#[derive(Debug)]
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        // The system refuses to remove a folder that is not empty, as intended.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Creates `folder` and its parents if necessary, writes a test file to check that results can be written, and removes
/// unfinished files that earlier processes left there.
///
/// # Errors
///
/// If the folder cannot be created or written, or if it holds a file under the name of a result file that another
/// program wrote or that is in use.
pub fn prepare(folder: &Path) -> Result<Folder, FilesError> {
    let fail = |error: &io::Error| FilesError::Folder {
        folder: folder.to_path_buf(),
        reason: error.to_string(),
        remedy: remedy(error, folder),
    };
    ours::refuse_foreign(folder, &ours::NAMES)?;
    let made = (!folder.exists()).then(|| Arc::new(Made(folder.to_path_buf())));
    std::fs::create_dir_all(folder).map_err(|error| fail(&error))?;
    let mut probe = WholeFile::create(&folder.join("probe")).map_err(|error| fail(&error))?;
    // On a full disk, files can often be created but not filled.
    probe.write_all(&[0; 4096]).and_then(|()| probe.settle()).map_err(|error| fail(&error))?;
    drop(probe);
    Ok(Folder { path: folder.to_path_buf(), removed: remove_unfinished(folder), _made: made })
}

impl Folder {
    /// Returns a message for the user if unfinished files of an earlier run were found in the folder and removed when
    /// it was prepared; otherwise `None`.
    pub fn removal(&self) -> Option<String> {
        let files = if self.removed == 1 { "file" } else { "files" };
        let folder = self.path.display();
        (self.removed > 0)
            .then(|| format!("{} unfinished {files} of an earlier run removed from {folder}", self.removed))
    }

    /// Locks the folder against other processes until the returned file is closed. Returns `None` if the folder cannot
    /// be locked, for example because the file system has no locks.
    ///
    /// # Errors
    ///
    /// If another process has locked the folder.
    pub fn reserve(&self) -> Result<Option<std::fs::File>, FilesError> {
        let Ok(folder) = std::fs::File::open(&self.path) else { return Ok(None) };
        match folder.try_lock() {
            Ok(()) => Ok(Some(folder)),
            Err(std::fs::TryLockError::WouldBlock) => Err(FilesError::Folder {
                folder: self.path.clone(),
                reason: "another run is writing results there".into(),
                remedy: "wait until it ends, or give --out another folder",
            }),
            Err(std::fs::TryLockError::Error(_)) => Ok(None),
        }
    }

    /// Refuses another output of the run, given with `option`, that has the name of a result file in this folder: one of
    /// the two would be lost.
    ///
    /// # Errors
    ///
    /// A wrong command line, if `path` is such a file.
    pub fn refuse_as_output(&self, option: &str, path: &Path) -> Result<(), Failure> {
        let place = |path: &Path| {
            let path = std::path::absolute(path).ok()?;
            Some((path.parent()?.canonicalize().ok()?, path.file_name()?.to_owned()))
        };
        let its_place = place(path);
        let is_it = |name: &&&str| its_place.is_some() && place(&self.file(name)) == its_place;
        match ours::NAMES.iter().find(is_it) {
            Some(name) => {
                let path = path.display();
                Err(Failure::usage(format!("{option} {path}: is the result file {name} of --out as well"))
                    .or_try("another name"))
            }
            None => Ok(()),
        }
    }

    /// Removes the result files of an earlier run: those files with the name of a result file, such as `ios.parquet`,
    /// that are not named in `written`. Leaves other files alone.
    ///
    /// # Errors
    ///
    /// If a file cannot be removed.
    pub fn remove_others(&self, written: &[&str]) -> Result<(), FilesError> {
        for name in ours::NAMES.iter().filter(|name| !written.contains(name)) {
            let path = self.file(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(FilesError::file(&path, error)),
                _ => {}
            }
        }
        Ok(())
    }
}

fn remedy(error: &io::Error, folder: &Path) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "give --out a folder that you may write to"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or give --out a folder elsewhere"
        }
        _ if folder.is_file() || error.kind() == io::ErrorKind::NotADirectory => {
            "a file stands in the way: give --out another name"
        }
        _ => "give --out another folder",
    }
}

/// Writes `bytes` to a hidden file, makes its contents durable, and renames it to `path`. After an error or a power
/// cut, `path` has its previous or its new contents, never a part.
///
/// # Errors
///
/// If the file cannot be written, or if `path` is a block device or a file in use.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FilesError> {
    let written = WholeFile::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.finish()
    });
    written.map_err(|error| FilesError::file(path, error))
}

impl Folder {
    /// Returns the path of the folder, as it was passed to [`prepare`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path that the file `name` has in this folder. The file need not exist.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Calls `fill` to write a hidden file, makes its contents durable, and renames it to `name` in this folder. After
    /// an error or a power cut, `name` has its previous or its new contents, never a part. Returns the path of `name`.
    ///
    /// # Errors
    ///
    /// If `fill` fails, or if the file cannot be written.
    pub fn write(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, FilesError> {
        let path = self.file(name);
        let mut file = WholeFile::create(&path).map_err(|error| FilesError::file(&path, error))?;
        fill(&mut file).and_then(|()| file.finish()).map_err(|error| FilesError::file(&path, error))?;
        Ok(path)
    }

    /// Writes `summary` as `summary.json`, completely or not at all. Returns its path.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write_summary(&self, summary: &imbrex_sim::Summary) -> Result<PathBuf, FilesError> {
        self.write("summary.json", |out| {
            serde_json::to_writer_pretty(&mut *out, summary)?;
            out.write_all(b"\n")
        })
    }
}

#[cfg(test)]
mod folder_tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_folder_is_made_and_left_empty() {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let folder = prepare(&temporary.path().join("a/b")).expect("it can be made");
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_file_in_the_way_is_told_before_the_run_with_a_remedy() {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let path = temporary.path().join("taken");
        std::fs::write(&path, "x").expect("a file");
        let text = prepare(&path).expect_err("a file is no folder").to_string();
        assert!(text.contains("taken") && text.contains("give --out another name"), "{text}");
        let below = prepare(&path.join("deeper")).expect_err("nor can it hold one").to_string();
        assert!(below.contains("give --out another"), "{below}");
    }

    #[test]
    fn a_failed_write_leaves_the_good_file_and_nothing_else() {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let folder = prepare(temporary.path()).expect("writable");
        folder.write("a.txt", |out| out.write_all(b"good")).expect("written");
        let failed = folder.write("a.txt", |out| {
            out.write_all(b"bad")?;
            Err(io::Error::other("the disk went away"))
        });
        let text = failed.expect_err("it failed").to_string();
        assert!(text.contains("a.txt") && text.contains("went away"), "{text}");
        assert_eq!(std::fs::read(folder.file("a.txt")).expect("still there"), b"good");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }
}
