//! `latency.parquet`: the complete latency histogram of every drive.
//!
//! Columns: `drive`, `operation` (`read`, `write` or `all`; `all` includes flushes and trims), `upper_edge_ns` (longest
//! latency counted in the bucket), `count`. Empty buckets have no row.
//!
//! Invariants:
//! 1. The counts of a drive and operation sum to its completed requests.
//! 2. Edges increase within a drive and operation.

use std::io::Write;
use std::path::PathBuf;

use imbrex_sim::DriveSeries;
use imbrex_sim::metrics::latency::LatencyHistogram;
use parquet::data_type::ByteArray;

use super::table::{Column, append, long, writer};
use super::{FilesError, Folder, WholeFile};

const SCHEMA: &str = "message latency {
    required byte_array drive (string);
    required byte_array operation (string);
    required int64 upper_edge_ns;
    required int64 count;
}";

impl Folder {
    /// Writes `latency.parquet` for `drives`, each given with its name: the latency histograms of its reads, of its
    /// writes and of all its requests, with a row for each bucket that is not empty. Returns the path of the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write_latency(&self, drives: &[(&str, &DriveSeries)]) -> Result<PathBuf, FilesError> {
        let path = self.file("latency.parquet");
        let file = WholeFile::create(&path).map_err(|error| FilesError::file(&path, error))?;
        let file = table(file, drives).map_err(|error| FilesError::table(&path, error))?;
        file.finish().map_err(|error| FilesError::file(&path, error))?;
        Ok(path)
    }
}

/// Returns the contents of `latency.parquet` for `drives`, each given with its name, without writing a file: the
/// latency histograms of its reads, of its writes and of all its requests, with a row for each bucket that is not
/// empty.
///
/// # Errors
///
/// If the Parquet library fails.
pub fn bytes(drives: &[(&str, &DriveSeries)]) -> parquet::errors::Result<Vec<u8>> {
    table(Vec::new(), drives)
}

fn table<W: Write + Send>(out: W, drives: &[(&str, &DriveSeries)]) -> parquet::errors::Result<W> {
    let mut table = writer(out, SCHEMA)?;
    for (drive, series) in drives {
        append(&mut table, &rows(drive, series).columns())?;
    }
    table.into_inner()
}

#[derive(Default)]
struct Rows {
    drives: Vec<ByteArray>,
    operations: Vec<ByteArray>,
    edges_ns: Vec<i64>,
    counts: Vec<i64>,
}

impl Rows {
    fn columns(&self) -> [Column<'_>; 4] {
        [
            Column::Text(&self.drives),
            Column::Text(&self.operations),
            Column::Long(&self.edges_ns),
            Column::Long(&self.counts),
        ]
    }

    fn add(&mut self, drive: &ByteArray, operation: &str, histogram: &LatencyHistogram) {
        let operation = ByteArray::from(operation);
        for (edge_ns, count) in histogram.buckets() {
            self.drives.push(drive.clone());
            self.operations.push(operation.clone());
            self.edges_ns.push(long(edge_ns));
            self.counts.push(long(count));
        }
    }
}

fn rows(drive: &str, series: &DriveSeries) -> Rows {
    let mut rows = Rows::default();
    let drive = ByteArray::from(drive);
    rows.add(&drive, "read", &series.reads);
    rows.add(&drive, "write", &series.writes);
    rows.add(&drive, "all", &series.all);
    rows
}
