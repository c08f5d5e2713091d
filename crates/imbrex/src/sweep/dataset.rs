//! Dataset of a sweep: files `FOLDER/points/KEY.parquet` with one row each. Any Parquet reader can read them as one table.
//!
//! Invariants:
//! 1. A file under its final name is complete, so several processes may add to one dataset. A file that a power cut
//!    truncated is detected by its format, and counts as missing.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::row::{self, Row};
use crate::error::Failure;
use crate::files::{self, FilesError, Folder, WholeFile};

/// Dataset in a folder.
#[derive(Clone, Debug)]
pub struct Dataset {
    points: Folder,
    folder: PathBuf,
}

impl Dataset {
    /// Opens the dataset in `folder`, creating the folder if necessary.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, or its `sweep.html` was written by another program.
    pub fn in_folder(folder: &Path) -> Result<Dataset, Failure> {
        files::ours::refuse_foreign(folder, &["sweep.html"])?;
        Ok(Dataset { points: files::prepare(&folder.join("points"))?, folder: folder.to_path_buf() })
    }

    /// Returns the folder of the dataset.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(key: &str) -> String {
        format!("{key}.parquet")
    }

    /// Returns the row of the point `key`. Returns `None` if the row is missing or unreadable; the sweep then runs the
    /// point again.
    pub fn row(&self, key: &str) -> Option<Row> {
        let bytes = fs::read(self.points.file(&Dataset::file(key))).ok()?;
        Row::parse(bytes).ok().filter(|row| row.text("key") == Some(key))
    }

    /// Returns whether the point `key` has to run: it has no row, or, if `again` is set, a row with an error.
    pub fn is_missing(&self, key: &str, again: bool) -> bool {
        self.row(key).is_none_or(|row| again && row.text("error").is_some())
    }

    /// Adds `row`. It replaces a row with the same key.
    pub fn add(&self, row: &Row) -> Result<(), Failure> {
        let bytes = row::write(Vec::new(), std::slice::from_ref(row)).map_err(Failure::failed)?;
        let key = row.text("key").expect("every row has its key");
        let path = self.points.file(&Dataset::file(key));
        // A row that a power cut truncates counts as missing, so hundreds of small files need not be made durable one by one.
        let written = WholeFile::create(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.finish_unsettled()
        });
        written.map_err(|error| FilesError::file(&path, error))?;
        Ok(())
    }

    /// Writes `page` as `sweep.html` into the folder of the dataset. Returns its path.
    pub fn write_page(&self, page: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join("sweep.html");
        files::replace(&path, page.as_bytes())?;
        Ok(path)
    }
}
