//! Imbrex's own format: Parquet of five columns, `time_ns u64, op u8, lba u64, sectors u32, device u32`.
//!
//! `op` is 0 read, 1 write, 2 flush, 3 trim, plus 128 for a write with forced unit access (FUA), which must reach the
//! medium before it is acknowledged. The reader accepts any Parquet file with columns of these names and of integers of
//! 32 or 64 bits, signed or not, so that other programs can write traces. `time_ns` may also be a timestamp, whose unit
//! the file gives. A file without `device` has one device. Order, compression and nullability of the columns are free,
//! but no value may be null or negative.
//!
//! Invariants:
//! 1. Rows are read in blocks of [`BLOCK_ROWS`], so memory does not grow with the size of row groups.
//! 2. Every row is yielded, counted, or reported as an error with its number; numbers start at 0.

use imbrex_units::{Command, Lba, Operation, SimTime};
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;

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
    options: &[],
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
        Contents::Stream(_) => Err(TraceError::new(
            input.name,
            "expected a Parquet file as it is: Parquet is read from its end, so it cannot come through a pipe or \
                     packed; unpack it into a file",
        )),
    }
}

/// A column that is being read: its reader in the current row group, and the decoded values.
struct Column {
    kind: Kind,
    reader: Option<ColumnReader>,
    narrow: Vec<i32>,
    values: Vec<i64>,
    levels: Vec<i16>,
}

/// The type of a column, and its position in the file.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    place: usize,
    is_unsigned: bool,
    /// Number of nanoseconds or ones that a value of 1 stands for.
    unit: u64,
}

impl Column {
    fn new(kind: Kind) -> Column {
        Column { kind, reader: None, narrow: Vec::new(), values: Vec::new(), levels: Vec::new() }
    }

    /// Decodes the next rows, at most [`BLOCK_ROWS`]. Returns their number.
    fn fill(&mut self) -> Result<usize, ParquetError> {
        self.values.clear();
        self.narrow.clear();
        self.levels.clear();
        let levels = Some(&mut self.levels);
        let (rows, values, _) = match &mut self.reader {
            None => return Ok(0),
            Some(ColumnReader::Int32ColumnReader(reader)) => {
                reader.read_records(BLOCK_ROWS, levels, None, &mut self.narrow)?
            }
            Some(ColumnReader::Int64ColumnReader(reader)) => {
                reader.read_records(BLOCK_ROWS, levels, None, &mut self.values)?
            }
            Some(_) => return Err(ParquetError::General(format!("expected integers in column {}", self.kind.name))),
        };
        if rows != values {
            return Err(ParquetError::General(format!("expected no null in column {}", self.kind.name)));
        }
        let is_unsigned = self.kind.is_unsigned;
        let widened = |&value: &i32| if is_unsigned { i64::from(value as u32) } else { i64::from(value) };
        self.values.extend(self.narrow.iter().map(widened));
        Ok(rows)
    }

    /// Returns the value of row `index` of the block.
    #[inline]
    fn value(&self, index: usize) -> Result<u64, Malformed> {
        let value = self.values[index];
        if value < 0 && !self.kind.is_unsigned {
            return Err(Malformed::of(format!("{}: {value} is negative", self.kind.name)));
        }
        // Parquet stores unsigned integers as signed ones with the same bits.
        (value as u64)
            .checked_mul(self.kind.unit)
            .ok_or_else(|| Malformed::of(format!("{}: {value} is too large for 64 bits", self.kind.name)))
    }

    /// Like [`Column::value`], for a value of 32 bits.
    #[inline]
    fn value32(&self, index: usize) -> Result<u32, Malformed> {
        let value = self.value(index)?;
        u32::try_from(value).map_err(|_| Malformed::of(format!("{}: {value} is too large for 32 bits", self.kind.name)))
    }
}

/// The source of requests for a Parquet file.
struct Rows<R: ChunkReader + 'static> {
    file: SerializedFileReader<R>,
    name: String,
    admission: Admission,
    time: Column,
    operation: Column,
    lba: Column,
    sectors: Column,
    device: Option<Column>,
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
        let kinds = kinds_of(&file).map_err(|reason| TraceError::new(name.clone(), reason))?;
        let [time, operation, lba, sectors] = kinds.of_requests.map(Column::new);
        Ok(Rows {
            file,
            name,
            admission,
            time,
            operation,
            lba,
            sectors,
            device: kinds.device.map(Column::new),
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
        let device = self.device.as_mut().map_or(Ok(rows), Column::fill)?;
        let others = [self.operation.fill()?, self.lba.fill()?, self.sectors.fill()?, device];
        if others.iter().any(|&other| other != rows) {
            return Err(ParquetError::General(format!("expected columns of one length, found {rows} and {others:?}")));
        }
        Ok(rows)
    }

    fn open_group(&mut self) -> Result<(), ParquetError> {
        let group = self.file.get_row_group(self.next_group)?;
        let columns = [&mut self.time, &mut self.operation, &mut self.lba, &mut self.sectors];
        for column in columns.into_iter().chain(&mut self.device) {
            column.reader = Some(group.get_column_reader(column.kind.place)?);
        }
        self.next_group += 1;
        Ok(())
    }

    /// Converts the row at `index` of the block.
    fn row(&self, index: usize) -> Result<Parsed, Malformed> {
        let code = i32::try_from(self.operation.value(index)?).unwrap_or(i32::MAX);
        let operation = operation_of(code)?;
        let (lba, sectors) = (self.lba.value(index)?, self.sectors.value32(index)?);
        let Some(sectors) = reached(lba, u64::from(sectors)) else {
            return Err(out_of_reach(lba, u64::from(sectors)));
        };
        let command = Command { operation, fua: code & FUA != 0, sectors, lba: Lba(lba) };
        let time_ns = self.time.value(index)?;
        let device = self.device.as_ref().map_or(Ok(0), |device| device.value32(index))?;
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

/// The columns of a file.
struct Kinds {
    /// The first four of [`COLUMNS`].
    of_requests: [Kind; 4],
    device: Option<Kind>,
}

/// Returns the columns of `file`.
///
/// # Errors
///
/// If a column is missing or has the wrong type.
fn kinds_of<R: ChunkReader + 'static>(file: &SerializedFileReader<R>) -> Result<Kinds, String> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    let place = |name: &str| columns.iter().position(|column| column.path().parts() == [name]);
    let found = |name: &'static str| {
        let found = place(name).and_then(|place| kind_of(name, place, &columns[place]));
        found.ok_or_else(|| {
            let kind = |column: &ColumnDescPtr| match column.logical_type_ref() {
                Some(logical) => format!("{} {} {logical:?}", column.path(), column.physical_type()),
                None => format!("{} {}", column.path(), column.physical_type()),
            };
            let names: Vec<String> = columns.iter().map(kind).collect();
            format!(
                "expected the Parquet of a trace, with columns {} of integers; found {}",
                COLUMNS.join(", "),
                names.join(", ")
            )
        })
    };
    let [time, operation, lba, sectors, device] = COLUMNS;
    let device = place(device).map(|_| found(device)).transpose()?;
    Ok(Kinds { of_requests: [found(time)?, found(operation)?, found(lba)?, found(sectors)?], device })
}

/// Returns the type of the column called `name`, or `None` if it has no integers that this format may contain.
fn kind_of(name: &'static str, place: usize, column: &ColumnDescPtr) -> Option<Kind> {
    use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
    let is_integer = matches!(column.physical_type(), Type::INT32 | Type::INT64) && column.max_rep_level() == 0;
    let is_time = name == COLUMNS[0];
    let (is_unsigned, unit) = match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Integer(integer)), _) => (!integer.is_signed, 1),
        (Some(LogicalType::Timestamp(stamp)), _) if is_time => (
            false,
            match stamp.unit {
                TimeUnit::MILLIS => 1_000_000,
                TimeUnit::MICROS => 1_000,
                TimeUnit::NANOS => 1,
            },
        ),
        (None, ConvertedType::TIMESTAMP_MILLIS) if is_time => (false, 1_000_000),
        (None, ConvertedType::TIMESTAMP_MICROS) if is_time => (false, 1_000),
        (None, ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64) => {
            (true, 1)
        }
        (
            None,
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::INT_64,
        ) => (false, 1),
        _ => return None,
    };
    is_integer.then_some(Kind { name, place, is_unsigned, unit })
}

fn failed(name: &str, error: &ParquetError) -> TraceError {
    TraceError::new(name, format!("the Parquet cannot be read: {error}"))
}
