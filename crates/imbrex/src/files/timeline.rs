//! `timeline.parquet`: completions of every drive over simulated time.
//!
//! Columns: `drive`, `begin_ns` (since the first request entered), `width_ns`, `reads`, `writes`, `read_bytes`,
//! `write_bytes`. Long runs have wider windows. A window without a completion has a row of zeros.
//!
//! Invariants:
//! 1. Windows of a drive follow each other without a gap and have the same width.

use std::io::Write;
use std::path::PathBuf;

use imbrex_sim::DriveSeries;
use imbrex_sim::metrics::windows::Window;
use parquet::data_type::ByteArray;

use super::table::{Column, append, long, writer};
use super::{FilesError, Folder, WholeFile};

const SCHEMA: &str = "message timeline {
    required byte_array drive (string);
    required int64 begin_ns;
    required int64 width_ns;
    required int64 reads;
    required int64 writes;
    required int64 read_bytes;
    required int64 write_bytes;
}";

impl Folder {
    /// Writes `timeline.parquet` for `drives`, each given with its name: a row for each point of its timeline, with the
    /// numbers and bytes of the requests completed in it. Flushes and trims count as writes of no bytes. Times begin at
    /// 0 when measuring begins. Returns the path of the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write_timeline(&self, drives: &[(&str, &DriveSeries)]) -> Result<PathBuf, FilesError> {
        let path = self.file("timeline.parquet");
        let file = WholeFile::create(&path).map_err(|error| FilesError::file(&path, error))?;
        let file = table(file, drives).map_err(|error| FilesError::table(&path, error))?;
        file.finish().map_err(|error| FilesError::file(&path, error))?;
        Ok(path)
    }
}

/// Returns the contents of `timeline.parquet` for `drives`, each given with its name, without writing a file: a row for
/// each point of its timeline, with the numbers and bytes of the requests completed in it. Flushes and trims count as
/// writes of no bytes. Times begin at 0 when measuring begins.
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
        append_drive(&mut table, drive, series)?;
    }
    table.into_inner()
}

fn append_drive<W: Write + Send>(
    table: &mut parquet::file::writer::SerializedFileWriter<W>,
    drive: &str,
    series: &DriveSeries,
) -> parquet::errors::Result<()> {
    let count = series.windows.len();
    let drives = vec![ByteArray::from(drive); count];
    let begins: Vec<i64> = (0..count as u64).map(|index| long(index * series.window_ns)).collect();
    let widths = vec![long(series.window_ns); count];
    let column =
        |of: fn(&Window) -> u64| -> Vec<i64> { series.windows.iter().map(|window| long(of(window))).collect() };
    append(
        table,
        &[
            Column::Text(&drives),
            Column::Long(&begins),
            Column::Long(&widths),
            Column::Long(&column(|window| window.reads)),
            Column::Long(&column(|window| window.writes)),
            Column::Long(&column(|window| window.read_bytes)),
            Column::Long(&column(|window| window.write_bytes)),
        ],
    )
}
