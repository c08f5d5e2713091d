//! `ios.parquet`: one row per request, for `--per-io`.
//!
//! Columns:
//! - `drive`
//! - `sequence`: number of the request in the workload, from 0
//! - `arrival_ns`: arrival time in the workload; null if the workload gives the request no time
//! - `issue_ns`: time at which the request entered the queue
//! - `start_ns`, `complete_ns`: begin and end of the service
//! - `op`: `read`, `write`, `flush`, `trim` or `background`
//! - `lba`, `sectors`: in sectors of the drive
//! - `seek_ns`, `rotation_ns`, `transfer_ns`, `cleaning_ns`: parts of the service time; requests served by one
//!   operation share its time
//! - `head_track`: track of the head after the request, counted from the outermost
//!
//! The last row of a drive has the operation `background` and the sequence −1. It holds the parts of the service time
//! that belong to no request, such as write-back from the volatile cache and cleaning when idle. Its interval is the
//! whole run.
//!
//! Drives run at the same time, so each writes a part file of its own. The parts are joined in the order of the drives.
//!
//! Invariants:
//! 1. Rows of a drive are in order of completion; drives are in the order in which they are joined.
//! 2. Memory use is that of one row group per drive.
//! 3. The service times of all rows of a drive sum to its `service_ns`. Warm-up requests have rows, but are not part of
//!    `service_ns`; the background row makes up the difference.

use std::fs::File;
use std::path::PathBuf;

use imbrex_disk::Operation;
use imbrex_sim::IoRecord;
use imbrex_sim::results::ServiceTime;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use super::table::{Column, append, long, writer};
use super::{FilesError, Folder, WholeFile};

const NAME: &str = "ios.parquet";
const GROUP_ROWS: usize = 1 << 17;

const SCHEMA: &str = "message ios {
    required byte_array drive (string);
    required int64 sequence;
    optional int64 arrival_ns;
    required int64 issue_ns;
    required int64 start_ns;
    required int64 complete_ns;
    required byte_array op (string);
    required int64 lba;
    required int64 sectors;
    required int64 seek_ns;
    required int64 rotation_ns;
    required int64 transfer_ns;
    required int64 cleaning_ns;
    required int32 head_track;
}";

/// Values of the rows of one row group, by column.
#[derive(Default)]
struct Rows {
    /// Columns sequence, issue, start, complete, lba, sectors, seek, rotation, transfer, cleaning.
    longs: [Vec<i64>; 10],
    arrivals_ns: Vec<i64>,
    has_arrival: Vec<i16>,
    operations: Vec<ByteArray>,
    head_tracks: Vec<i32>,
}

/// Temporary file with one drive's rows of `ios.parquet`, while it is written.
pub struct IoSpool {
    table: SerializedFileWriter<WholeFile>,
    rows: Rows,
    drive: ByteArray,
    words: [ByteArray; 4],
    /// Seek, rotation, transfer and cleaning time of all rows so far, in ns.
    sums: [i64; 4],
    path: PathBuf,
    failed: Option<FilesError>,
}

/// Finished temporary file with one drive's rows of `ios.parquet`.
#[derive(Debug)]
pub struct IoPart {
    file: WholeFile,
}

impl Folder {
    /// Creates the temporary file for the rows of `ios.parquet` of the drive called `drive`: one row per request, and
    /// one for the service times that belong to no request.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    pub fn io_spool(&self, drive: &str) -> std::result::Result<IoSpool, FilesError> {
        let path = self.file(NAME);
        let file = WholeFile::create(&path).map_err(|error| FilesError::file(&path, error))?;
        let table = writer(file, SCHEMA).map_err(|error| FilesError::table(&path, error))?;
        let words = ["read", "write", "flush", "trim"].map(ByteArray::from);
        Ok(IoSpool {
            table,
            rows: Rows::default(),
            drive: ByteArray::from(drive),
            words,
            sums: [0; 4],
            path,
            failed: None,
        })
    }

    /// Joins the temporary files `parts`, in the given order, to `ios.parquet`. Returns its path.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn join_ios(&self, parts: Vec<IoPart>) -> std::result::Result<PathBuf, FilesError> {
        let path = self.file(NAME);
        let file = WholeFile::create(&path).map_err(|error| FilesError::file(&path, error))?;
        let join = || {
            let mut table = writer(file, SCHEMA)?;
            for mut part in parts {
                copy_groups(&mut table, part.file.reread()?)?;
            }
            table.into_inner()
        };
        let file = join().map_err(|error| FilesError::table(&path, error))?;
        file.finish().map_err(|error| FilesError::file(&path, error))?;
        Ok(path)
    }
}

impl IoSpool {
    /// Adds the row of a request that the drive has completed. Rows are buffered and written in large groups.
    /// [`IoSpool::finish`] returns the first error of writing; later rows are then ignored.
    pub fn record(&mut self, record: &IoRecord) {
        let time = &record.time;
        for (sum, part) in self.sums.iter_mut().zip([time.seek, time.rotation, time.transfer, time.cleaning]) {
            *sum += long(part.0);
        }
        self.rows.push(record, &self.words);
        if self.rows.len() == GROUP_ROWS {
            self.write_group();
        }
    }

    /// Adds the row with the operation `background`: the service times that belong to no request. They are the total
    /// times `service` minus the sums of all rows so far, and may be negative. `duration_ns` is the length of the run
    /// in simulated nanoseconds. Called once, after the last request.
    pub fn background(&mut self, service: &ServiceTime, duration_ns: u64) {
        let whole = [service.seek, service.rotation, service.transfer, service.cleaning].map(long);
        let mut rest = [0; 4];
        for (index, part) in rest.iter_mut().enumerate() {
            *part = whole[index] - self.sums[index];
        }
        self.rows.push_background(rest, long(duration_ns));
        self.write_group();
    }

    fn write_group(&mut self) {
        if self.failed.is_none() && self.rows.len() > 0 {
            let written = self.rows.append_to(&mut self.table, &self.drive);
            self.failed = written.err().map(|error| FilesError::table(&self.path, error));
        }
        self.rows.clear();
    }

    /// Returns whether writing a row has failed, so that the run can end early.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Writes the buffered rows and returns the finished file.
    ///
    /// # Errors
    ///
    /// The first error of writing, including those of [`IoSpool::record`].
    pub fn finish(mut self) -> std::result::Result<IoPart, FilesError> {
        self.write_group();
        if let Some(error) = self.failed {
            return Err(error);
        }
        let file = self.table.into_inner().map_err(|error| FilesError::table(&self.path, error))?;
        Ok(IoPart { file })
    }
}

impl Rows {
    fn len(&self) -> usize {
        self.operations.len()
    }

    fn push(&mut self, record: &IoRecord, words: &[ByteArray; 4]) {
        let (command, time) = (&record.command, &record.time);
        let longs = [
            record.sequence,
            record.entry.0,
            record.start.0,
            record.end.0,
            command.lba.0,
            command.sectors as u64,
            time.seek.0,
            time.rotation.0,
            time.transfer.0,
            time.cleaning.0,
        ];
        for (column, value) in self.longs.iter_mut().zip(longs) {
            column.push(long(value));
        }
        self.has_arrival.push(i16::from(record.arrival.is_some()));
        self.arrivals_ns.extend(record.arrival.map(|at| long(at.0)));
        let word = match command.operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Flush => 2,
            Operation::Trim => 3,
        };
        self.operations.push(words[word].clone());
        self.head_tracks.push(i32::try_from(record.radial_track).expect("a disk has fewer than 2^31 tracks"));
    }

    fn push_background(&mut self, [seek, rotation, transfer, cleaning]: [i64; 4], duration_ns: i64) {
        let longs = [-1, 0, 0, duration_ns, 0, 0, seek, rotation, transfer, cleaning];
        for (column, value) in self.longs.iter_mut().zip(longs) {
            column.push(value);
        }
        self.has_arrival.push(0);
        self.operations.push(ByteArray::from("background"));
        self.head_tracks.push(0);
    }

    fn append_to(&self, table: &mut SerializedFileWriter<WholeFile>, drive: &ByteArray) -> Result<()> {
        let drives = vec![drive.clone(); self.len()];
        let [sequence, issue, start, complete, lba, sectors, seek, rotation, transfer, cleaning] = &self.longs;
        append(
            table,
            &[
                Column::Text(&drives),
                Column::Long(sequence),
                Column::OptionalLong(&self.arrivals_ns, &self.has_arrival),
                Column::Long(issue),
                Column::Long(start),
                Column::Long(complete),
                Column::Text(&self.operations),
                Column::Long(lba),
                Column::Long(sectors),
                Column::Long(seek),
                Column::Long(rotation),
                Column::Long(transfer),
                Column::Long(cleaning),
                Column::Int(&self.head_tracks),
            ],
        )
    }

    fn clear(&mut self) {
        self.longs.iter_mut().for_each(Vec::clear);
        self.arrivals_ns.clear();
        self.has_arrival.clear();
        self.operations.clear();
        self.head_tracks.clear();
    }
}

/// Copies all row groups of `part`, without decompressing them.
fn copy_groups(table: &mut SerializedFileWriter<WholeFile>, part: File) -> Result<()> {
    let reader = SerializedFileReader::new(part.try_clone()?)?;
    for metadata in reader.metadata().row_groups() {
        let mut group = table.next_row_group()?;
        for index in 0..metadata.num_columns() {
            group.append_column(&part, closed(metadata, index))?;
        }
        group.close()?;
    }
    Ok(())
}

/// Describes a column of a finished file, in the form in which the writer appends it.
fn closed(group: &RowGroupMetaData, index: usize) -> ColumnCloseResult {
    let metadata = group.column(index).clone();
    ColumnCloseResult {
        bytes_written: metadata.compressed_size() as u64,
        rows_written: group.num_rows() as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    }
}
