//! Tables of requests in memory: Arrow arrays, read in place row by row.
//!
//! A table has the columns `time_ns`, `op`, `lba` and `sectors`, and may have `device`. Numbers are integers of 8 to 64
//! bits, signed or unsigned. An operation is a number or a word. The numbers are 0 read, 1 write, 2 flush, 3 trim, plus
//! 128 for a write with FUA; the words are those four names. Times may also be dates or durations of any unit. Both may be dictionary-encoded (a category of pandas, an
//! enumeration of polars or DuckDB); each dictionary entry is decoded only once. Other columns are ignored.
//!
//! Invariants:
//! 1. No column is copied.
//! 2. An error names the column that cannot be read, and the row if a value is the cause.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, LargeStringArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray};
use arrow_schema::{DataType, TimeUnit};
use imbrex_trace::rows::{Row, Rows};

/// Columns that a table must have.
pub(crate) const NEEDED: [&str; 4] = ["time_ns", "op", "lba", "sectors"];

/// A column of whole numbers of any integer type.
enum Whole {
    U8(PrimitiveArray<UInt8Type>),
    U16(PrimitiveArray<UInt16Type>),
    U32(PrimitiveArray<UInt32Type>),
    U64(PrimitiveArray<UInt64Type>),
    I8(PrimitiveArray<Int8Type>),
    I16(PrimitiveArray<Int16Type>),
    I32(PrimitiveArray<Int32Type>),
    I64(PrimitiveArray<Int64Type>),
}

impl Whole {
    fn of(name: &str, array: &dyn Array) -> Result<Whole, String> {
        match array.data_type() {
            DataType::UInt8 => Ok(Whole::U8(array.as_primitive().clone())),
            DataType::UInt16 => Ok(Whole::U16(array.as_primitive().clone())),
            DataType::UInt32 => Ok(Whole::U32(array.as_primitive().clone())),
            DataType::UInt64 => Ok(Whole::U64(array.as_primitive().clone())),
            DataType::Int8 => Ok(Whole::I8(array.as_primitive().clone())),
            DataType::Int16 => Ok(Whole::I16(array.as_primitive().clone())),
            DataType::Int32 => Ok(Whole::I32(array.as_primitive().clone())),
            DataType::Int64 => Ok(Whole::I64(array.as_primitive().clone())),
            other => Err(format!("column '{name}' has the type {other}: expected whole numbers of 8 to 64 bits")),
        }
    }

    fn nulls(&self) -> &dyn Array {
        match self {
            Whole::U8(array) => array,
            Whole::U16(array) => array,
            Whole::U32(array) => array,
            Whole::U64(array) => array,
            Whole::I8(array) => array,
            Whole::I16(array) => array,
            Whole::I32(array) => array,
            Whole::I64(array) => array,
        }
    }

    /// Returns the number at `index`, or `None` if it is negative. The caller checks for nulls.
    #[inline]
    fn get(&self, index: usize) -> Option<u64> {
        match self {
            Whole::U8(array) => Some(array.value(index).into()),
            Whole::U16(array) => Some(array.value(index).into()),
            Whole::U32(array) => Some(array.value(index).into()),
            Whole::U64(array) => Some(array.value(index)),
            Whole::I8(array) => array.value(index).try_into().ok(),
            Whole::I16(array) => array.value(index).try_into().ok(),
            Whole::I32(array) => array.value(index).try_into().ok(),
            Whole::I64(array) => array.value(index).try_into().ok(),
        }
    }
}

/// A column of whole numbers with its name.
struct Numbers {
    name: &'static str,
    values: Whole,
    /// Number of ones or nanoseconds that a value of 1 stands for.
    unit: u64,
}

/// Returns the values of a column of dates or durations, and the nanoseconds of its unit. Returns `None` for a column of
/// another type.
fn times_of(array: &dyn Array) -> Option<(Whole, u64)> {
    macro_rules! reinterpreted {
        ($type:ty, $unit:expr) => {
            Some((Whole::I64(array.as_primitive::<$type>().reinterpret_cast::<Int64Type>()), $unit))
        };
    }
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => reinterpreted!(TimestampSecondType, 1_000_000_000),
        DataType::Timestamp(TimeUnit::Millisecond, _) => reinterpreted!(TimestampMillisecondType, 1_000_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => reinterpreted!(TimestampMicrosecondType, 1_000),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => reinterpreted!(TimestampNanosecondType, 1),
        DataType::Duration(TimeUnit::Second) => reinterpreted!(DurationSecondType, 1_000_000_000),
        DataType::Duration(TimeUnit::Millisecond) => reinterpreted!(DurationMillisecondType, 1_000_000),
        DataType::Duration(TimeUnit::Microsecond) => reinterpreted!(DurationMicrosecondType, 1_000),
        DataType::Duration(TimeUnit::Nanosecond) => reinterpreted!(DurationNanosecondType, 1),
        _ => None,
    }
}

impl Numbers {
    fn of(name: &'static str, array: &dyn Array) -> Result<Numbers, String> {
        Ok(Numbers { name, values: Whole::of(name, array)?, unit: 1 })
    }

    /// Returns the column `name` of times: whole nanoseconds, dates or durations.
    fn of_times(name: &'static str, array: &dyn Array) -> Result<Numbers, String> {
        match times_of(array) {
            Some((values, unit)) => Ok(Numbers { name, values, unit }),
            None => Numbers::of(name, array),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> Result<u64, String> {
        if self.values.nulls().is_null(index) {
            return Err(format!("expected a number in column '{}', found null", self.name));
        }
        let value = self.values.get(index);
        let value = value.ok_or_else(|| format!("expected a number from 0 on in column '{}'", self.name))?;
        value.checked_mul(self.unit).ok_or_else(|| {
            format!(
                "expected at most 64 bits of nanoseconds in column '{}', found {value} of {} ns",
                self.name, self.unit
            )
        })
    }
}

/// Column of operations, as numbers or as words.
enum Operations {
    Codes(Numbers),
    Dictionary {
        keys: Whole,
        /// Operation code of each dictionary entry. An invalid entry is an error only for the rows that use it.
        codes: Vec<Result<u8, String>>,
    },
    Words(StringArray),
    LargeWords(LargeStringArray),
    ViewedWords(StringViewArray),
}

impl Operations {
    fn of(array: &dyn Array) -> Result<Operations, String> {
        match array.data_type() {
            DataType::Utf8 => Ok(Operations::Words(array.as_string().clone())),
            DataType::LargeUtf8 => Ok(Operations::LargeWords(array.as_string().clone())),
            DataType::Utf8View => Ok(Operations::ViewedWords(array.as_string_view().clone())),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let entries = Operations::of(dictionary.values().as_ref())?;
                let codes = (0..dictionary.values().len()).map(|index| entries.get(index)).collect();
                Ok(Operations::Dictionary { keys: Whole::of("op", dictionary.keys())?, codes })
            }
            _ => Ok(Operations::Codes(Numbers::of("op", array)?)),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> Result<u8, String> {
        match self {
            Operations::Codes(codes) => {
                let code = codes.get(index)?;
                u8::try_from(code).map_err(|_| format!("expected op 0 to 3, or 128 more, found {code}"))
            }
            Operations::Dictionary { keys, codes } => {
                if keys.nulls().is_null(index) {
                    return code_of(None);
                }
                let entry = keys.get(index).and_then(|key| codes.get(usize::try_from(key).ok()?));
                entry.ok_or("expected an entry of its dictionary in column 'op', found none")?.clone()
            }
            Operations::Words(words) => code_of((!words.is_null(index)).then(|| words.value(index))),
            Operations::LargeWords(words) => code_of((!words.is_null(index)).then(|| words.value(index))),
            Operations::ViewedWords(words) => code_of((!words.is_null(index)).then(|| words.value(index))),
        }
    }
}

fn code_of(word: Option<&str>) -> Result<u8, String> {
    match word {
        Some("read" | "R" | "r") => Ok(0),
        Some("write" | "W" | "w") => Ok(1),
        Some("flush" | "F" | "f") => Ok(2),
        Some("trim" | "T" | "t") => Ok(3),
        Some(word) => Err(format!("expected op read, write, flush or trim, found '{word}'")),
        None => Err("expected an operation in column 'op', found null".into()),
    }
}

/// Consecutive rows of a table, from one record batch.
struct Chunk {
    first: u64,
    rows: usize,
    time: Numbers,
    operation: Operations,
    lba: Numbers,
    sectors: Numbers,
    device: Option<Numbers>,
}

impl Chunk {
    fn of(first: u64, batch: &RecordBatch) -> Result<Chunk, String> {
        let column = |name: &str| {
            batch.column_by_name(name).map(AsRef::as_ref).ok_or_else(|| {
                let fields = batch.schema_ref().fields();
                let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
                format!(
                    "no column '{name}': a table of requests has {}; this one has {}",
                    NEEDED.join(", "),
                    names.join(", ")
                )
            })
        };
        Ok(Chunk {
            first,
            rows: batch.num_rows(),
            time: Numbers::of_times("time_ns", column("time_ns")?)?,
            operation: Operations::of(column("op")?)?,
            lba: Numbers::of("lba", column("lba")?)?,
            sectors: Numbers::of("sectors", column("sectors")?)?,
            device: batch.column_by_name("device").map(|array| Numbers::of("device", array.as_ref())).transpose()?,
        })
    }

    #[inline]
    fn row(&self, index: usize) -> Result<Row, String> {
        let device = self.device.as_ref().map_or(Ok(0), |device| device.get(index))?;
        Ok(Row {
            time_ns: self.time.get(index)?,
            op: self.operation.get(index)?,
            lba: self.lba.get(index)?,
            sectors: self.sectors.get(index)?,
            device: u32::try_from(device).map_err(|_| format!("device {device} is past 2^32"))?,
        })
    }
}

/// A table of requests, in chunks.
pub(crate) struct ArrowRows {
    chunks: Vec<Chunk>,
    rows: u64,
}

impl ArrowRows {
    /// Makes a table of `batches`. An error names the column that is missing or has a wrong type.
    pub(crate) fn of(batches: &[RecordBatch]) -> Result<ArrowRows, String> {
        let (mut chunks, mut rows) = (Vec::new(), 0);
        for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
            chunks.push(Chunk::of(rows, batch)?);
            rows += batch.num_rows() as u64;
        }
        Ok(ArrowRows { chunks, rows })
    }
}

impl Rows for ArrowRows {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn read(&self, first: u64, rows_max: usize, block: &mut Vec<Row>) -> Result<(), String> {
        let place = self.chunks.partition_point(|chunk| chunk.first <= first) - 1;
        let chunk = &self.chunks[place];
        let from = usize::try_from(first - chunk.first).expect("a chunk lies in memory");
        let until = chunk.rows.min(from.saturating_add(rows_max));
        for index in from..until {
            match chunk.row(index) {
                Ok(row) => block.push(row),
                Err(reason) if index == from => return Err(reason),
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}
