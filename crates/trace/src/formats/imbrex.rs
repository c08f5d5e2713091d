//! Imbrex's own format: Parquet of five columns, `time_ns u64, op u8, lba u64, sectors u32, device u32`.
//!
//! `op` is 0 read, 1 write, 2 flush, 3 trim, plus 128 for a write with forced unit access (FUA), which must reach the
//! medium before it is acknowledged. The reader accepts any Parquet file with columns of these names and physical
//! types, so that other programs can write traces. Order, compression and nullability of the columns are free, but no
//! value may be null.
//!
//! Invariants:
//! 1. Rows are read in blocks of [`BLOCK_ROWS`], so memory does not grow with the size of row groups.
//! 2. Every row is yielded, counted, or reported as an error with its number; numbers start at 0.

use imbrex_units::{Command, Lba, Operation, SimTime};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

use crate::admission::{Admission, Malformed, Parsed, TraceRecord, out_of_reach, reached};
use crate::facts::Facts;
use crate::input::{Contents, RandomAccess, Unpacked};
use crate::options::TraceOptions;
use crate::request::{Request, Source, TraceError};

use super::format::{Confidence, Format, OpenResult};

/// Entry of this format in the registry.
pub(crate) const FORMAT: Format = Format {
    name: "imbrex",
    summary: "Parquet: time_ns, op, lba, sectors, device",
    detect: |head| if head.bytes.starts_with(b"PAR1") { Confidence::Yes } else { Confidence::No },
    open,
};

/// Names of the columns, in the order in which they are written.
pub(crate) const COLUMNS: [&str; 5] = ["time_ns", "op", "lba", "sectors", "device"];

/// Number added to the operation of a request with forced unit access.
pub(crate) const FUA: i32 = 128;

/// Maximum number of rows decoded at once.
const BLOCK_ROWS: usize = 32 * 1024;

fn open(input: Unpacked, options: &TraceOptions) -> OpenResult {
    let admission = Admission::new(input.name.clone(), options);
    match input.contents {
        Contents::Random(RandomAccess::File(file)) => Ok(Box::new(Rows::open(file, input.name, admission)?)),
        Contents::Random(RandomAccess::Bytes(bytes)) => Ok(Box::new(Rows::open(bytes, input.name, admission)?)),
        Contents::Stream(_) => Err(TraceError {
            place: input.name,
            reason:
                "expected a Parquet file as it is: Parquet is read from its end, so it cannot come through a pipe or \
                     packed; unpack it into a file"
                    .into(),
            cause: None,
        }),
    }
}

/// A column that is being read: its reader in the current row group, and the decoded values.
struct Column<T: DataType> {
    place: usize,
    reader: Option<ColumnReaderImpl<T>>,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> Column<T> {
    fn new(place: usize) -> Column<T> {
        Column { place, reader: None, values: Vec::new(), levels: Vec::new() }
    }

    /// Decodes the next rows, at most [`BLOCK_ROWS`]. Returns their number.
    fn fill(&mut self) -> Result<usize, ParquetError> {
        self.values.clear();
        self.levels.clear();
        let Some(reader) = &mut self.reader else {
            return Ok(0);
        };
        let (rows, values, _) = reader.read_records(BLOCK_ROWS, Some(&mut self.levels), None, &mut self.values)?;
        if rows != values {
            return Err(ParquetError::General(format!("expected no null in column {}", COLUMNS[self.place])));
        }
        Ok(rows)
    }
}

/// The source of requests for a Parquet file.
struct Rows<R: ChunkReader + 'static> {
    file: SerializedFileReader<R>,
    name: String,
    admission: Admission,
    /// Position in the file of each of [`COLUMNS`].
    places: [usize; 5],
    time: Column<Int64Type>,
    lba: Column<Int64Type>,
    operation: Column<Int32Type>,
    sectors: Column<Int32Type>,
    device: Column<Int32Type>,
    next_group: usize,
    /// Index in the block of the next row. The field `rows` is the number of rows in the block.
    next_row: usize,
    rows: usize,
    /// Number of rows before the block.
    rows_before: u64,
}

impl<R: ChunkReader + 'static> Rows<R> {
    fn open(reader: R, name: String, admission: Admission) -> Result<Rows<R>, TraceError> {
        let file = SerializedFileReader::new(reader).map_err(|error| failed(&name, &error))?;
        let places = places_of(&file).map_err(|reason| TraceError { place: name.clone(), reason, cause: None })?;
        Ok(Rows {
            file,
            name,
            admission,
            places,
            time: Column::new(0),
            operation: Column::new(1),
            lba: Column::new(2),
            sectors: Column::new(3),
            device: Column::new(4),
            next_group: 0,
            next_row: 0,
            rows: 0,
            rows_before: 0,
        })
    }

    /// Decodes the next block. Returns false at the end of the file.
    #[cold]
    fn refill(&mut self) -> Result<bool, TraceError> {
        self.rows_before += self.rows as u64;
        self.next_row = 0;
        loop {
            self.rows = self.fill().map_err(|error| failed(&self.name, &error))?;
            if self.rows > 0 {
                return Ok(true);
            }
            if self.next_group == self.file.num_row_groups() {
                return Ok(false);
            }
            self.open_group().map_err(|error| failed(&self.name, &error))?;
        }
    }

    fn fill(&mut self) -> Result<usize, ParquetError> {
        let rows = self.time.fill()?;
        let others = [self.operation.fill()?, self.lba.fill()?, self.sectors.fill()?, self.device.fill()?];
        if others.iter().any(|&other| other != rows) {
            return Err(ParquetError::General(format!("expected columns of one length, found {rows} and {others:?}")));
        }
        Ok(rows)
    }

    fn open_group(&mut self) -> Result<(), ParquetError> {
        let group = self.file.get_row_group(self.next_group)?;
        let place = |column: usize| self.places[column];
        self.time.reader = Some(get_typed_column_reader(group.get_column_reader(place(self.time.place))?));
        self.operation.reader = Some(get_typed_column_reader(group.get_column_reader(place(self.operation.place))?));
        self.lba.reader = Some(get_typed_column_reader(group.get_column_reader(place(self.lba.place))?));
        self.sectors.reader = Some(get_typed_column_reader(group.get_column_reader(place(self.sectors.place))?));
        self.device.reader = Some(get_typed_column_reader(group.get_column_reader(place(self.device.place))?));
        self.next_group += 1;
        Ok(())
    }

    /// Converts the row at `index` of the block.
    fn row(&self, index: usize) -> Result<Parsed, Malformed> {
        let code = self.operation.values[index];
        let operation = operation_of(code)?;
        // Parquet stores unsigned integers as signed ones with the same bits.
        let (lba, sectors) = (self.lba.values[index] as u64, self.sectors.values[index] as u32);
        let Some(sectors) = reached(lba, u64::from(sectors)) else {
            return Err(out_of_reach(lba, u64::from(sectors)));
        };
        let command = Command { operation, fua: code & FUA != 0, sectors, lba: Lba(lba) };
        let (time_ns, device) = (self.time.values[index] as u64, self.device.values[index] as u32);
        Ok(Parsed::Request(TraceRecord { time_ns, device, command, unaligned: false }))
    }
}

impl<R: ChunkReader + 'static> Source for Rows<R> {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        loop {
            if self.next_row == self.rows && !self.refill()? {
                return self.admission.finish();
            }
            let index = self.next_row;
            self.next_row += 1;
            match self.row(index) {
                Ok(parsed) => {
                    if let Some(request) = self.admission.admit(parsed) {
                        return Ok(Some(request));
                    }
                }
                Err(malformed) => {
                    let place = format!("row {}", self.rows_before + index as u64);
                    self.admission.malformed(&place, malformed)?;
                }
            }
        }
    }

    fn expected_requests(&self) -> Option<u64> {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).ok()
    }

    fn facts(&self) -> Facts {
        self.admission.facts()
    }
}

/// Returns the operation for `code`, the value of the column `op`.
pub(crate) fn operation_of(code: i32) -> Result<Operation, Malformed> {
    match code & !FUA {
        0 => Ok(Operation::Read),
        1 => Ok(Operation::Write),
        2 => Ok(Operation::Flush),
        3 => Ok(Operation::Trim),
        _ => Err(Malformed::of(format!("expected op 0 to 3, or 128 more, found {code}"))),
    }
}

/// Returns the position of each of [`COLUMNS`] in `file`.
///
/// # Errors
///
/// If a column is missing or has the wrong type.
fn places_of<R: ChunkReader + 'static>(file: &SerializedFileReader<R>) -> Result<[usize; 5], String> {
    use parquet::basic::Type::{INT32, INT64};
    let columns = file.metadata().file_metadata().schema_descr().columns();
    let mut places = [0; 5];
    for ((place, name), physical) in places.iter_mut().zip(COLUMNS).zip([INT64, INT32, INT64, INT32, INT32]) {
        let found = columns.iter().position(|column| column.path().parts() == [name]);
        let sound = found.filter(|&at| columns[at].physical_type() == physical && columns[at].max_rep_level() == 0);
        let Some(at) = sound else {
            let names: Vec<String> =
                columns.iter().map(|column| format!("{} {}", column.path(), column.physical_type())).collect();
            return Err(format!(
                "expected the Parquet of a trace, with columns {}; found {}",
                COLUMNS.join(", "),
                names.join(", ")
            ));
        };
        *place = at;
    }
    Ok(places)
}

fn failed(name: &str, error: &ParquetError) -> TraceError {
    TraceError { place: name.into(), reason: format!("the Parquet cannot be read: {error}"), cause: None }
}
