//! Writes Parquet by columns: a schema in Parquet's text form, and row groups.
//!
//! Invariants:
//! 1. All columns of a row group have the same number of rows. A value is null only if the schema says `optional`.
//! 2. Integers are signed, with 64 bits, or with 32 where a bound is known: every reader accepts those. A larger value
//!    is a bug of this program.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;

/// Values of one column of a row group.
pub(crate) enum Column<'a> {
    /// Text.
    Text(&'a [ByteArray]),
    /// 64-bit integers.
    Long(&'a [i64]),
    /// 64-bit integers with nulls: the values that are not null, and for each row 1 (value) or 0 (null).
    OptionalLong(&'a [i64], &'a [i16]),
    /// 32-bit integers.
    Int(&'a [i32]),
    /// Text with nulls: the values that are not null, and for each row 1 (value) or 0 (null).
    OptionalText(&'a [ByteArray], &'a [i16]),
    /// Floating-point numbers with nulls: the values that are not null, and for each row 1 (value) or 0 (null).
    OptionalReal(&'a [f64], &'a [i16]),
}

/// Creates a writer of a table with the schema `schema`, in Parquet's text form.
pub(crate) fn writer<W: Write + Send>(out: W, schema: &str) -> Result<SerializedFileWriter<W>> {
    writer_of(out, Arc::new(parse_message_type(schema)?))
}

/// Creates a writer of a table of the type `schema`.
pub(crate) fn writer_of<W: Write + Send>(out: W, schema: TypePtr) -> Result<SerializedFileWriter<W>> {
    writer_with(out, schema, Vec::new())
}

/// Creates a writer of a table of the type `schema`, whose metadata contain the pairs `metadata` of a key and a value.
pub(crate) fn writer_with<W: Write + Send>(
    out: W,
    schema: TypePtr,
    metadata: Vec<(&str, String)>,
) -> Result<SerializedFileWriter<W>> {
    let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_string(), value)).collect();
    let level = ZstdLevel::try_new(3)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_key_value_metadata(Some(metadata))
        .set_created_by(format!("imbrex {}", env!("CARGO_PKG_VERSION")));
    SerializedFileWriter::new(out, schema, Arc::new(properties.build()))
}

/// Appends one row group.
pub(crate) fn append<W: Write + Send>(writer: &mut SerializedFileWriter<W>, columns: &[Column<'_>]) -> Result<()> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        append_column(&mut group, column)?;
    }
    group.close()?;
    Ok(())
}

fn append_column<W: Write + Send>(group: &mut SerializedRowGroupWriter<'_, W>, column: &Column<'_>) -> Result<()> {
    let mut writer = group.next_column()?.expect("the schema has as many columns as are given");
    match column {
        Column::Text(values) => writer.typed::<ByteArrayType>().write_batch(values, None, None)?,
        Column::Long(values) => writer.typed::<Int64Type>().write_batch(values, None, None)?,
        Column::OptionalLong(values, is_there) => {
            writer.typed::<Int64Type>().write_batch(values, Some(is_there), None)?
        }
        Column::OptionalText(values, is_there) => {
            writer.typed::<ByteArrayType>().write_batch(values, Some(is_there), None)?
        }
        Column::OptionalReal(values, is_there) => {
            writer.typed::<DoubleType>().write_batch(values, Some(is_there), None)?
        }
        Column::Int(values) => writer.typed::<Int32Type>().write_batch(values, None, None)?,
    };
    writer.close()
}

/// Returns `value` as the signed integer that the table stores.
///
/// # Panics
///
/// Panics if `value` is 2^63 or more.
pub(crate) fn long(value: u64) -> i64 {
    i64::try_from(value).expect("simulated times and addresses stay below 2^63")
}
