//! The dataset of a sweep: `FOLDER/points/KEY.parquet`, a row each, which every reader of Parquet takes as one table.
//!
//! Invariants:
//! 1. A file under its name is whole, so several processes may add to one dataset. One that a power cut left in part is known
//!    by its form, and counts as none.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::row::{self, Row};
use crate::error::Failure;
use crate::files::{self, FilesError, Folder, WholeFile};

/// The dataset in a folder.
#[derive(Clone, Debug)]
pub struct Dataset {
    points: Folder,
    folder: PathBuf,
}

impl Dataset {
    /// The dataset in `folder`, which is made if need be; whether it can be written is found out now.
    pub fn in_folder(folder: &Path) -> Result<Dataset, Failure> {
        files::ours::refuse_foreign(folder, &["sweep.html"])?;
        Ok(Dataset { points: files::prepare(&folder.join("points"))?, folder: folder.to_path_buf() })
    }

    /// The folder that it is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(key: &str) -> String {
        format!("{key}.parquet")
    }

    /// The row of the point `key`, if it is there. A row that cannot be read counts as none: it is made again.
    pub fn row(&self, key: &str) -> Option<Row> {
        let bytes = fs::read(self.points.file(&Dataset::file(key))).ok()?;
        Row::parse(bytes).ok().filter(|row| row.text("key") == Some(key))
    }

    /// Whether the point `key` has to be run: it has no row, or one that says that it failed and `again` says to try again.
    pub fn is_missing(&self, key: &str, again: bool) -> bool {
        self.row(key).is_none_or(|row| again && row.text("error").is_some())
    }

    /// Adds `row`, or puts it in the place of the one that was there.
    pub fn add(&self, row: &Row) -> Result<(), Failure> {
        let bytes = row::write(Vec::new(), std::slice::from_ref(row)).map_err(Failure::failed)?;
        let key = row.text("key").expect("every row has its key");
        let path = self.points.file(&Dataset::file(key));
        // A row that a power cut leaves in part counts as none: hundreds of small ones need not wait for the disk one by one.
        let written = WholeFile::create(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.finish_unsettled()
        });
        written.map_err(|error| FilesError::file(&path, error))?;
        Ok(())
    }

    /// Writes `page` as `sweep.html` beside the rows.
    pub fn write_page(&self, page: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join("sweep.html");
        files::replace(&path, page.as_bytes())?;
        Ok(path)
    }
}
