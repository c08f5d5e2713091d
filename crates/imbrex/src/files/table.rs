//! Parquet by columns: a schema in words, and groups of rows.
//!
//! Invariants:
//! 1. All columns of a group have as many rows; none is null unless the schema says optional.
//! 2. Integers are signed 64 bits, or 32 where a bound is known: every reader takes those. A value beyond is our bug.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;

/// Values of one column of a group.
pub(crate) enum Column<'a> {
    /// Text.
    Text(&'a [ByteArray]),
    /// 64 bits.
    Long(&'a [i64]),
    /// 64 bits, some null: the values that are there, and 1 or 0 for each row.
    OptionalLong(&'a [i64], &'a [i16]),
    /// 32 bits.
    Int(&'a [i32]),
    /// Text, some null: the values that are there, and 1 or 0 for each row.
    OptionalText(&'a [ByteArray], &'a [i16]),
    /// Real numbers, some null, likewise.
    OptionalReal(&'a [f64], &'a [i16]),
}

/// A writer of tables of `schema`.
pub(crate) fn writer<W: Write + Send>(out: W, schema: &str) -> Result<SerializedFileWriter<W>> {
    writer_of(out, Arc::new(parse_message_type(schema)?))
}

/// A writer of tables of the type `schema`.
pub(crate) fn writer_of<W: Write + Send>(out: W, schema: TypePtr) -> Result<SerializedFileWriter<W>> {
    let level = ZstdLevel::try_new(3)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(format!("imbrex {}", env!("CARGO_PKG_VERSION")));
    SerializedFileWriter::new(out, schema, Arc::new(properties.build()))
}

/// Appends one group of rows.
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

/// `value` as the table holds it.
pub(crate) fn long(value: u64) -> i64 {
    i64::try_from(value).expect("simulated times and addresses stay below 2^63")
}
