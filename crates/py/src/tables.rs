//! Results as tables that other libraries read without a copy: the Arrow C stream interface over our own Parquet files.
//!
//! Invariants:
//! 1. A table can be streamed any number of times, from its first row on.
//! 2. A stream holds one row group in memory, however long the table is.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_array::{RecordBatchIterator, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use imbrex::Failure;
use imbrex::files::FilesError;
use imbrex::files::batches::{Batch, BatchColumn, Batches, Values};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

use crate::border;
use crate::errors::{caught, exception, guarded};
use crate::workload::STREAM;

/// Storage of the rows.
#[derive(Clone)]
enum Held {
    Bytes(Arc<Vec<u8>>),
    /// A file, and the temporary folder that contains it, if any. The folder is removed when its last user is dropped.
    File {
        path: PathBuf,
        _folder: Option<Arc<tempfile::TempDir>>,
    },
}

/// A table of results. It implements the Arrow stream interface (`__arrow_c_stream__`) and `len()`, and `columns` lists
/// the names of its columns.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Table {
    held: Held,
}

impl Table {
    /// Creates a table from `bytes`, the contents of a Parquet file. They are decoded whenever the table is read, not
    /// here, so an invalid file is not noticed yet.
    pub fn of_bytes(bytes: Vec<u8>) -> Table {
        Table { held: Held::Bytes(Arc::new(bytes)) }
    }

    /// Creates a table from the Parquet file at `path`, which is opened whenever the table is read, not here. `folder`
    /// is the temporary folder that contains the file, if there is one, and is kept as long as the table.
    pub fn of_file(path: PathBuf, folder: Option<Arc<tempfile::TempDir>>) -> Table {
        Table { held: Held::File { path, _folder: folder } }
    }

    /// Opens the table. Returns its rows, and an empty batch that shows its columns.
    fn shaped(&self) -> Result<(Batches, Batch), Failure> {
        let batches = self.open()?;
        let shape = batches.shape().map_err(unreadable)?;
        Ok((batches, shape))
    }

    fn open(&self) -> Result<Batches, Failure> {
        match &self.held {
            Held::Bytes(bytes) => Batches::of_bytes(bytes.to_vec()).map_err(Failure::failed),
            Held::File { path, .. } => Batches::open(path).map_err(|error: FilesError| Failure::failed(error)),
        }
    }
}

#[pymethods]
impl Table {
    /// Returns the Arrow C stream of all rows (the Arrow PyCapsule interface): polars, pandas, pyarrow and DuckDB call
    /// this.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let (batches, shape) = guarded(|| self.shaped())?;
        let schema = schema(&shape);
        let held = self.held.clone();
        let of_schema = schema.clone();
        let records = batches.map(move |batch| {
            // Keeps the temporary folder while its file is read.
            let _held = &held;
            record(&of_schema, batch.map_err(|error| ArrowError::ParquetError(error.to_string()))?)
        });
        stream(py, schema, records)
    }

    /// Returns the names of the columns.
    #[getter]
    fn columns(&self) -> PyResult<Vec<String>> {
        let (_, shape) = guarded(|| self.shaped())?;
        Ok(shape.columns.into_iter().map(|column| column.name).collect())
    }

    /// Returns all rows as a dictionary of lists, for programs without a library that reads Arrow tables.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        caught(|| {
            let (batches, shape) = guarded(|| self.shaped())?;
            let whole = PyDict::new(py);
            for column in shape.columns {
                whole.set_item(column.name, Vec::<i64>::new())?;
            }
            for batch in batches {
                for column in batch.map_err(|error| exception(&unreadable(error)))?.columns {
                    let list = whole.get_item(&column.name)?.expect("every batch has the columns of the shape");
                    list.call_method1("extend", (values_of(py, column)?,))?;
                }
            }
            Ok(whole)
        })
    }

    /// Returns the number of rows.
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(guarded(|| self.open())?.rows()).unwrap_or(usize::MAX))
    }

    /// Returns the first rows, at most [`SHOWN_ROWS`], as a dictionary of lists. Reads no further rows.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        caught(|| {
            let (mut batches, shape) = guarded(|| self.shaped())?;
            let batch = batches.next().transpose().map_err(|error| exception(&unreadable(error)))?;
            let first = PyDict::new(py);
            for mut column in batch.unwrap_or(shape).columns {
                truncate(&mut column);
                first.set_item(column.name.clone(), values_of(py, column)?)?;
            }
            Ok(first)
        })
    }

    /// Returns whether a column has this name.
    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(name) = name.extract::<String>() else { return Ok(false) };
        Ok(self.columns()?.contains(&name))
    }

    /// Returns the column called `name` as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let columns = self.columns()?;
        self.to_dict(py)?
            .get_item(name)?
            .ok_or_else(|| PyKeyError::new_err(format!("no column '{name}'; there are {}", columns.join(", "))))
    }

    /// Makes a table of the contents of a Parquet file, for copies and other processes.
    #[staticmethod]
    fn _of_bytes(bytes: Vec<u8>) -> Table {
        Table::of_bytes(bytes)
    }

    /// Returns the contents as a Parquet file, for copies and other processes.
    fn __reduce__<'py>(slf: Bound<'py, Table>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let bytes = match &slf.get().held {
            Held::Bytes(bytes) => PyBytes::new(py, bytes),
            Held::File { path, .. } => {
                let failed = |error| Failure::failed(format!("cannot read {}: {error}", path.display()));
                PyBytes::new(py, &guarded(|| std::fs::read(path).map_err(failed))?)
            }
        };
        Ok((slf.get_type().getattr("_of_bytes")?, (bytes,)))
    }
}

/// Number of rows that are displayed.
const SHOWN_ROWS: usize = 10;

/// Leaves at most [`SHOWN_ROWS`] values in a column.
fn truncate(column: &mut BatchColumn) {
    if let Some(there) = &mut column.is_there {
        there.truncate(SHOWN_ROWS);
    }
    match &mut column.values {
        Values::Text(values) => values.truncate(SHOWN_ROWS),
        Values::Long(values) => values.truncate(SHOWN_ROWS),
        Values::Int(values) => values.truncate(SHOWN_ROWS),
        Values::Real(values) => values.truncate(SHOWN_ROWS),
        Values::Truth(values) => values.truncate(SHOWN_ROWS),
    }
}

fn unreadable(error: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("the table cannot be read: {error}"))
}

/// Returns the Arrow C stream of `batches`, in the capsule that other libraries accept. A consumer may request another
/// schema. The interface allows a producer that cannot cast to keep its own schema, and this one does.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = border::caught_rows(batches, ArrowError::ComputeError);
    let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)));
    PyCapsule::new_with_value(py, stream, STREAM)
}

/// Returns the values of a column as a Python list, with None for nulls.
fn values_of(py: Python<'_>, column: BatchColumn) -> PyResult<Bound<'_, PyAny>> {
    fn listed<'py, T: IntoPyObject<'py>>(
        py: Python<'py>,
        values: Vec<T>,
        there: Option<Vec<bool>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let there = there.unwrap_or_else(|| vec![true; values.len()]);
        let values = values.into_iter().zip(there).map(|(value, there)| there.then_some(value));
        Ok(pyo3::types::PyList::new(py, values.collect::<Vec<_>>())?.into_any())
    }
    match column.values {
        Values::Text(values) => listed(py, values, column.is_there),
        Values::Long(values) => listed(py, values, column.is_there),
        Values::Int(values) => listed(py, values, column.is_there),
        Values::Real(values) => listed(py, values, column.is_there),
        Values::Truth(values) => listed(py, values, column.is_there),
    }
}

fn schema(shape: &Batch) -> SchemaRef {
    let fields = shape.columns.iter().map(|column| {
        let kind = match column.values {
            Values::Text(_) => DataType::Utf8,
            Values::Long(_) => DataType::Int64,
            Values::Int(_) => DataType::Int32,
            Values::Real(_) => DataType::Float64,
            Values::Truth(_) => DataType::Boolean,
        };
        Field::new(&column.name, kind, column.is_there.is_some())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn record(schema: &SchemaRef, batch: Batch) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
    let columns = batch.columns.into_iter().map(array).collect();
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

fn array(column: BatchColumn) -> ArrayRef {
    fn maybe<T>(values: Vec<T>, there: Vec<bool>) -> impl Iterator<Item = Option<T>> {
        values.into_iter().zip(there).map(|(value, there)| there.then_some(value))
    }
    match (column.values, column.is_there) {
        (Values::Text(values), None) => Arc::new(StringArray::from_iter_values(values)),
        (Values::Long(values), None) => Arc::new(Int64Array::from(values)),
        (Values::Int(values), None) => Arc::new(Int32Array::from(values)),
        (Values::Real(values), None) => Arc::new(Float64Array::from(values)),
        (Values::Truth(values), None) => Arc::new(BooleanArray::from(values)),
        (Values::Text(values), Some(there)) => Arc::new(maybe(values, there).collect::<StringArray>()),
        (Values::Long(values), Some(there)) => Arc::new(maybe(values, there).collect::<Int64Array>()),
        (Values::Int(values), Some(there)) => Arc::new(maybe(values, there).collect::<Int32Array>()),
        (Values::Real(values), Some(there)) => Arc::new(maybe(values, there).collect::<Float64Array>()),
        (Values::Truth(values), Some(there)) => Arc::new(maybe(values, there).collect::<BooleanArray>()),
    }
}
