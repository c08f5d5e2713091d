//! Reads tables from Parquet by columns, one row group at a time. It serves callers that pass results on, such as the
//! Python package, and datasets that grow.
//!
//! Supports the column types of our own tables: text, 32-bit and 64-bit integers, floating-point numbers and booleans,
//! each with or without nulls. Lists and structures are not supported.
//!
//! Invariants:
//! 1. Memory use is that of one row group.
//! 2. All columns of a batch have the same number of rows.

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::FilesError;

/// Values of one column, one per row. A null is represented by an empty text, 0 or `false`. The column's field
/// [`BatchColumn::is_there`] distinguishes nulls from values.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Texts in UTF-8.
    Text(Vec<String>),
    /// Signed 64-bit integers.
    Long(Vec<i64>),
    /// Signed 32-bit integers.
    Int(Vec<i32>),
    /// 64-bit floating-point numbers.
    Real(Vec<f64>),
    /// Booleans.
    Truth(Vec<bool>),
}

/// One column of a batch: its name, its values, and which of them are null.
#[derive(Clone, PartialEq, Debug)]
pub struct BatchColumn {
    /// Name of the column in the table's schema.
    pub name: String,
    /// Values, one per row, nulls included: a null is an empty text, 0 or `false`.
    pub values: Values,
    /// For each row, `true` for a value and `false` for null. `None` if the schema allows no nulls in this column.
    pub is_there: Option<Vec<bool>>,
}

/// Consecutive rows of a table, by column: the rows of one row group.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// Number of rows in the batch.
    pub rows: usize,
    /// All columns of the table, in the order of the schema.
    pub columns: Vec<BatchColumn>,
}

/// A Parquet table that is read one row group at a time. As an iterator, yields each row group as a [`Batch`].
pub struct Batches {
    file: Box<dyn FileReader>,
    next: usize,
}

impl Batches {
    /// Opens the table in the Parquet file `path`.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened, or is not a Parquet file.
    pub fn open(path: &Path) -> std::result::Result<Batches, FilesError> {
        let file = File::open(path).map_err(|error| FilesError::file(path, error))?;
        Batches::of(file).map_err(|error| FilesError::table(path, error))
    }

    /// Opens the table in `bytes`, the contents of a Parquet file.
    ///
    /// # Errors
    ///
    /// If `bytes` are not a Parquet file.
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Batches> {
        Batches::of(Bytes::from(bytes))
    }

    fn of<R: ChunkReader + 'static>(reader: R) -> Result<Batches> {
        Ok(Batches { file: Box::new(SerializedFileReader::new(reader)?), next: 0 })
    }

    /// Returns a batch without rows, which shows the names and types of all columns.
    ///
    /// # Errors
    ///
    /// If a column has a type that this reader does not support, such as a list.
    pub fn shape(&self) -> Result<Batch> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let columns = schema.columns().iter().map(|column| {
            let is_there = (column.max_def_level() > 0).then(Vec::new);
            Ok(BatchColumn { name: column.name().to_string(), values: no_values(column)?, is_there })
        });
        Ok(Batch { rows: 0, columns: columns.collect::<Result<_>>()? })
    }

    /// Returns the value of `key` in the key-value metadata of the file; `None` if the key is missing or has no value.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let pairs = self.file.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// Returns the number of rows of the whole table.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// Returns the number of row groups of the whole table.
    pub fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    /// Reads row group number `index`, counted from 0, into memory. The iterator's position is unchanged.
    ///
    /// # Errors
    ///
    /// If a column has an unsupported type, or if the data are damaged.
    ///
    /// # Panics
    ///
    /// If the table has no row group of this number.
    pub fn group(&self, index: usize) -> Result<Batch> {
        let group = self.file.get_row_group(index)?;
        let rows = usize::try_from(group.metadata().num_rows()).expect("a group fits into memory");
        let mut batch = self.shape()?;
        batch.rows = rows;
        for (place, column) in batch.columns.iter_mut().enumerate() {
            fill(column, group.get_column_reader(place)?, rows)?;
        }
        Ok(batch)
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        if self.next == self.file.num_row_groups() {
            return None;
        }
        self.next += 1;
        Some(self.group(self.next - 1))
    }
}

fn no_values(column: &ColumnDescriptor) -> Result<Values> {
    let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
    match column.physical_type() {
        Physical::BYTE_ARRAY if is_flat => Ok(Values::Text(Vec::new())),
        Physical::INT64 if is_flat => Ok(Values::Long(Vec::new())),
        Physical::INT32 if is_flat => Ok(Values::Int(Vec::new())),
        Physical::DOUBLE if is_flat => Ok(Values::Real(Vec::new())),
        Physical::BOOLEAN if is_flat => Ok(Values::Truth(Vec::new())),
        other => Err(ParquetError::General(format!("column {}: {other} is in no table of ours", column.name()))),
    }
}

fn fill(column: &mut BatchColumn, reader: ColumnReader, rows: usize) -> Result<()> {
    let is_there = &mut column.is_there;
    match &mut column.values {
        Values::Text(values) => {
            let text = |bytes: parquet::data_type::ByteArray| Ok(bytes.as_utf8()?.to_string());
            *values = read::<ByteArrayType, _>(reader, rows, is_there, text)?;
        }
        Values::Long(values) => *values = read::<Int64Type, _>(reader, rows, is_there, Ok)?,
        Values::Int(values) => *values = read::<Int32Type, _>(reader, rows, is_there, Ok)?,
        Values::Real(values) => *values = read::<DoubleType, _>(reader, rows, is_there, Ok)?,
        Values::Truth(values) => *values = read::<BoolType, _>(reader, rows, is_there, Ok)?,
    }
    Ok(())
}

/// Reads the values of `rows` rows, with a default value for each null. Sets `is_there` if the column allows nulls.
fn read<T: DataType, V: Default>(
    reader: ColumnReader,
    rows: usize,
    is_there: &mut Option<Vec<bool>>,
    value: impl Fn(T::T) -> Result<V>,
) -> Result<Vec<V>> {
    let mut reader = get_typed_column_reader::<T>(reader);
    let (mut levels, mut packed) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let wanted = is_there.is_some().then_some(&mut levels);
    let (read, ..) = reader.read_records(rows, wanted, None, &mut packed)?;
    if read != rows {
        return Err(ParquetError::General(format!("expected {rows} rows in a column, found {read}")));
    }
    let mut packed = packed.into_iter();
    let missing = || ParquetError::General("a column has fewer values than its rows say".into());
    let Some(is_there) = is_there else { return packed.map(value).collect() };
    *is_there = levels.iter().map(|&level| level > 0).collect();
    let spread = is_there.iter().map(|&there| match there {
        true => value(packed.next().ok_or_else(missing)?),
        false => Ok(V::default()),
    });
    spread.collect()
}

#[cfg(test)]
mod tests {
    use super::super::table::{Column, append, writer};
    use super::*;
    use parquet::data_type::ByteArray;

    #[test]
    fn a_table_is_read_as_it_was_written_with_its_nulls() {
        let schema = "message t { required byte_array name (string); optional int64 at; required int32 track;
                      optional double share; optional byte_array word (string); }";
        let mut table = writer(Vec::new(), schema).expect("a schema");
        for group in 0..2 {
            let names = [ByteArray::from("one"), ByteArray::from("two"), ByteArray::from("three")];
            let columns = [
                Column::Text(&names),
                Column::OptionalLong(&[7 + group, 9], &[1, 0, 1]),
                Column::Int(&[1, 2, 3]),
                Column::OptionalReal(&[0.5], &[0, 1, 0]),
                Column::OptionalText(&names[..1], &[0, 0, 1]),
            ];
            append(&mut table, &columns).expect("appended");
        }
        let batches = Batches::of_bytes(table.into_inner().expect("closed")).expect("it is a table");
        assert_eq!((batches.rows(), batches.shape().expect("its columns").columns.len()), (6, 5));
        let read: Vec<Batch> = batches.map(|batch| batch.expect("a group")).collect();
        let values: Vec<&Values> = read[1].columns.iter().map(|column| &column.values).collect();
        assert_eq!(*values[0], Values::Text(["one", "two", "three"].map(String::from).to_vec()));
        assert_eq!(*values[1], Values::Long(vec![8, 0, 9]));
        assert_eq!(*values[2], Values::Int(vec![1, 2, 3]));
        assert_eq!(*values[3], Values::Real(vec![0.0, 0.5, 0.0]));
        assert_eq!(*values[4], Values::Text(["", "", "one"].map(String::from).to_vec()));
        assert_eq!(read[1].columns[1].is_there, Some(vec![true, false, true]));
        assert_eq!((read.len(), read[0].rows, &read[0].columns[2].is_there), (2, 3, &None));
    }
}
