//! Dataset of a sweep: a file `FOLDER/points/KEY.parquet` with one row for each point, written as soon as the point
//! ends, and `FOLDER/sweep.parquet`, one table of all rows, written at the end of each sweep.
//!
//! Any Parquet reader can read `sweep.parquet`. The files of the points have the columns of the sweep that wrote them,
//! so after a parameter was added they differ, and some readers refuse to read them as one table.
//!
//! Invariants:
//! 1. A file under its final name is complete, so several processes may add to one dataset. A row has a checksum: a file
//!    that a power cut truncated, or whose bytes were damaged, counts as missing.
//! 2. The table of all rows serves a row only while the file of its point is there, with the length and the time of
//!    change that it had when the table was written.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::row::{self, Row};
use crate::error::Failure;
use crate::files::{self, FilesError, Folder, Stamp, WholeFile};

/// Name of the table of all rows.
const TABLE: &str = "sweep.parquet";
/// Key of the stamps in the metadata of the table of all rows.
const STAMPS: &str = "imbrex.stamps";

/// The results of sweeps in a folder: one Parquet file with one row per point, and a table of all rows. Clones share
/// the rows in memory.
#[derive(Clone, Debug)]
pub struct Dataset {
    points: Folder,
    folder: PathBuf,
    /// Rows that were read from the table of all rows or added since, by key.
    known: Arc<Mutex<BTreeMap<String, Known>>>,
    /// Keys of the rows of the table of all rows, in its order.
    written: Arc<Vec<String>>,
}

/// A row, and the stamp of its point's file.
#[derive(Clone, Debug)]
struct Known {
    row: Row,
    stamp: Stamp,
    /// Whether the table of all rows has no such row.
    is_new: bool,
}

impl Dataset {
    /// Opens the dataset in `folder`, creating the folder if necessary, and reads its table of all rows. A table that
    /// is missing or damaged counts as empty.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written, or if its `sweep.html` or `sweep.parquet` was written by another program.
    pub fn in_folder(folder: &Path) -> Result<Dataset, Failure> {
        files::ours::refuse_foreign(folder, &["sweep.html", TABLE])?;
        let points = files::prepare(&folder.join("points"))?;
        let rows = read_table(&folder.join(TABLE)).unwrap_or_default();
        let written = rows.iter().map(|(key, _)| key.clone()).collect();
        let known = Arc::new(Mutex::new(rows.into_iter().collect()));
        Ok(Dataset { points, folder: folder.to_path_buf(), known, written: Arc::new(written) })
    }

    /// Returns the path of the folder that holds the dataset.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the table of all rows, `sweep.parquet`. The file need not exist yet.
    pub fn table(&self) -> PathBuf {
        self.folder.join(TABLE)
    }

    /// Returns a message for the user if unfinished files of an earlier sweep were found and removed; otherwise `None`.
    pub fn removal(&self) -> Option<String> {
        self.points.removal()
    }

    fn path(&self, key: &str) -> PathBuf {
        self.points.file(&format!("{key}.parquet"))
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the results of the point with this key, as a row, or `None` if its file is missing or damaged. A point
    /// is one simulation of a sweep.
    pub fn row(&self, key: &str) -> Option<Row> {
        self.with_row(key, Row::clone)
    }

    /// Calls `look` with the row of the point `key`, and returns its result. Returns `None` if the row is missing or
    /// damaged.
    fn with_row<T>(&self, key: &str, look: impl FnOnce(&Row) -> T) -> Option<T> {
        let path = self.path(key);
        let stamp = stamp_of(&path)?;
        if let Some(known) = self.known().get(key).filter(|known| known.stamp == stamp) {
            return Some(look(&known.row));
        }
        let row = Row::parse(fs::read(&path).ok()?).ok().filter(|row| row.text("key") == Some(key))?;
        let found = look(&row);
        self.known().insert(key.to_string(), Known { row, stamp, is_new: true });
        Some(found)
    }

    /// Returns whether the point with this key, one simulation of a sweep, has to run: its row is missing or damaged,
    /// or `again` is set and the row contains an error.
    pub fn is_missing(&self, key: &str, again: bool) -> bool {
        self.with_row(key, |row| again && row.text("error").is_some()).unwrap_or(true)
    }

    /// Returns whether the point with this key failed: its row contains an error. `false` if the row is missing or
    /// damaged.
    pub fn has_failed(&self, key: &str) -> bool {
        self.with_row(key, |row| row.text("error").is_some()).unwrap_or(false)
    }

    /// Writes `row` to the file of its point, replacing an earlier row with the same key. The file appears completely
    /// or not at all, but is not made durable: a power cut may damage it, and the row then counts as missing.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    ///
    /// # Panics
    ///
    /// If `row` has no key.
    pub fn add(&self, row: &Row) -> Result<(), Failure> {
        let bytes = row::write(std::slice::from_ref(row)).map_err(Failure::failed)?;
        let key = row.text("key").expect("every row has its key");
        let path = self.path(key);
        // A row that a power cut truncates counts as missing, so hundreds of small files need not be made durable one by one.
        let written = WholeFile::create(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.finish_unsettled()
        });
        written.map_err(|error| FilesError::file(&path, error))?;
        if let Some(stamp) = stamp_of(&path) {
            self.known().insert(key.to_string(), Known { row: row.clone(), stamp, is_new: true });
        }
        Ok(())
    }

    /// Writes the table of all rows, `sweep.parquet`: those of `rows` that the dataset has, in their order, then all
    /// other rows of the dataset whose point has its file. Does not write if the table is up to date. Returns its path.
    ///
    /// # Errors
    ///
    /// If the table cannot be written.
    pub fn write_table(&self, rows: &[Row]) -> Result<PathBuf, Failure> {
        let path = self.table();
        for key in self.keys() {
            // Reads the rows that other processes have added.
            self.with_row(&key, |_| ());
        }
        if self.is_written(rows) {
            return Ok(path);
        }
        let mut known = self.known().clone();
        let first = rows.iter().filter_map(|row| known.remove(row.text("key")?)).collect::<Vec<_>>();
        let is_there = |(key, known): &(String, Known)| stamp_of(&self.path(key)) == Some(known.stamp);
        let others = known.into_iter().filter(is_there).map(|(_, known)| known);
        let (rows, stamps): (Vec<Row>, Vec<Stamp>) =
            first.into_iter().chain(others).map(|known| (known.row, known.stamp)).unzip();
        let stamps = serde_json::to_string(&stamps).map_err(Failure::failed)?;
        let bytes = row::write_with(&rows, vec![(STAMPS, stamps)]).map_err(Failure::failed)?;
        files::replace(&path, &bytes)?;
        Ok(path)
    }

    /// Returns whether the table of all rows has exactly the known rows, `rows` first.
    fn is_written(&self, rows: &[Row]) -> bool {
        let known = self.known();
        let is_first = |(row, key): (&Row, &String)| row.text("key") == Some(key);
        known.len() == self.written.len()
            && !known.values().any(|known| known.is_new)
            && rows.iter().zip(self.written.iter()).all(is_first)
    }

    /// Returns the keys of all points that have a file.
    fn keys(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join("points")).into_iter().flatten().flatten();
        let key = |name: std::ffi::OsString| Some(name.to_str()?.strip_suffix(".parquet")?.to_string());
        entries.filter_map(|entry| key(entry.file_name())).filter(|key| !key.starts_with('.')).collect()
    }

    /// Writes the HTML text `page` as `sweep.html` into the folder of the dataset, completely or not at all. Returns
    /// its path.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write_page(&self, page: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join("sweep.html");
        files::replace(&path, page.as_bytes())?;
        Ok(path)
    }
}

/// Returns the stamp of the file `path`, or `None` if it is not there.
fn stamp_of(path: &Path) -> Option<Stamp> {
    Some(files::stamp(&fs::metadata(path).ok()?))
}

/// Returns the rows of the table of all rows with their keys, or `None` if it is missing or damaged.
fn read_table(path: &Path) -> Option<Vec<(String, Known)>> {
    let (rows, table) = row::read(fs::read(path).ok()?).ok()?;
    let stamps: Vec<Stamp> = serde_json::from_str(table.metadata(STAMPS)?).ok()?;
    let known = rows.into_iter().zip(stamps).filter_map(|(row, stamp)| {
        let key = row.text("key")?.to_string();
        Some((key, Known { row, stamp, is_new: false }))
    });
    Some(known.collect())
}
