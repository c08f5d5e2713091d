//! Converts a workload given in Python to one of the library: a word, a path, or columns in memory.

use std::sync::Arc;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_array::{Int8Array, Int16Array, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array, UInt64Array};
use imbrex::{Failure, Progress, Workload, WorkloadOptions};
use imbrex_trace::rows::Rows;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::columns::{ArrowRows, NEEDED};
use crate::errors::caught;

/// Name of the PyCapsules that hold Arrow streams.
pub(crate) const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// Requests of a workload, in columns of memory that Python owns. The memory is kept as long as this object.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Columns {
    rows: Arc<dyn Rows>,
}

#[pymethods]
impl Columns {
    /// Makes a table of requests from an object with `__arrow_c_stream__`, whose columns are not copied.
    #[staticmethod]
    fn of_arrow(table: &Bound<'_, PyAny>) -> PyResult<Columns> {
        caught(|| {
            let capsule = table.call_method0("__arrow_c_stream__")?;
            let capsule = capsule.cast::<PyCapsule>()?;
            let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>().as_ptr();
            // SAFETY: by the contract of the Arrow PyCapsule interface, a capsule of this name holds a stream of the
            // Arrow C interface. The stream is moved out, which leaves an empty one for the capsule to release.
            #[allow(unsafe_code)] // the Arrow interface is a C interface: no safe crate unpacks a capsule
            let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer) };
            let broken = |error: arrow_schema::ArrowError| {
                let text = error.to_string();
                // The interface passes an exception of the table's owner on as text alone.
                if text.contains("KeyboardInterrupt") {
                    return PyKeyboardInterrupt::new_err("interrupted while the table was read");
                }
                PyValueError::new_err(format!("the table cannot be read: {text}"))
            };
            let reader = RecordBatchStreamReader::try_new(stream).map_err(broken)?;
            let batches = reader.collect::<Result<Vec<RecordBatch>, _>>().map_err(broken)?;
            Columns::of(&batches)
        })
    }

    /// Makes a table of requests from a dictionary of columns, each a NumPy array, another buffer, or a list. The
    /// columns are copied.
    #[staticmethod]
    fn of_columns(columns: &Bound<'_, PyDict>) -> PyResult<Columns> {
        caught(|| {
            let named = columns.iter().map(|(name, values)| {
                let name: String = name.extract()?;
                let array = array_of(&name, &values)?;
                Ok((name, array))
            });
            let named = named.collect::<PyResult<Vec<_>>>()?;
            if named.is_empty() {
                return Err(PyValueError::new_err(format!(
                    "no columns: a table of requests has {}",
                    NEEDED.join(", ")
                )));
            }
            if let Some(pair) = named.windows(2).find(|pair| pair[0].1.len() != pair[1].1.len()) {
                let [(one, values), (other, others)] = [&pair[0], &pair[1]];
                return Err(PyValueError::new_err(format!(
                    "columns of one length were expected: '{one}' has {}, '{other}' {}",
                    values.len(),
                    others.len()
                )));
            }
            let batch = RecordBatch::try_from_iter(named).map_err(|error| PyValueError::new_err(error.to_string()))?;
            Columns::of(&[batch])
        })
    }

    /// Returns the number of requests.
    fn __len__(&self) -> usize {
        usize::try_from(self.rows.rows()).unwrap_or(usize::MAX)
    }
}

impl Columns {
    fn of(batches: &[RecordBatch]) -> PyResult<Columns> {
        let rows = ArrowRows::of(batches).map_err(PyValueError::new_err)?;
        if rows.rows() == 0 {
            return Err(PyValueError::new_err("the table has no rows: a workload has one request at least"));
        }
        Ok(Columns { rows: Arc::new(rows) })
    }
}

/// Returns a copy of one column.
fn array_of(name: &str, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = values.py();
    let wrong = |found: String| {
        PyTypeError::new_err(format!(
            "column '{name}' is {found}: expected whole numbers, or words if it is 'op', in an array of one dimension or a list"
        ))
    };
    let Ok(buffer) = PyUntypedBuffer::get(values) else {
        return listed(values).ok_or_else(|| {
            wrong(format!("a {}", values.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())))
        });
    };
    let is_foreign = matches!(buffer.format().to_bytes().first(), Some(b'>' | b'!')) && cfg!(target_endian = "little")
        || buffer.format().to_bytes().first() == Some(&b'<') && cfg!(target_endian = "big");
    if is_foreign && buffer.item_size() > 1 {
        return Err(wrong("of another byte order than this machine's".into()));
    }
    if buffer.dimensions() != 1 {
        return Err(wrong(format!("of {} dimensions", buffer.dimensions())));
    }
    macro_rules! first_of {
        ($($type:ty => $array:ident),*) => {
            $(if let Ok(typed) = buffer.as_typed::<$type>() {
                return Ok(Arc::new($array::from(typed.to_vec(py)?)));
            })*
        };
    }
    first_of!(u64 => UInt64Array, i64 => Int64Array, u32 => UInt32Array, i32 => Int32Array,
              u16 => UInt16Array, i16 => Int16Array, u8 => UInt8Array, i8 => Int8Array);
    Err(wrong(format!("of the format '{}'", buffer.format().to_string_lossy())))
}

/// Returns the array of a list of whole numbers or of strings; `None` for other objects.
fn listed(values: &Bound<'_, PyAny>) -> Option<ArrayRef> {
    if let Ok(numbers) = values.extract::<Vec<u64>>() {
        return Some(Arc::new(UInt64Array::from(numbers)));
    }
    if let Ok(numbers) = values.extract::<Vec<i64>>() {
        return Some(Arc::new(Int64Array::from(numbers)));
    }
    let words = values.extract::<Vec<String>>().ok()?;
    Some(Arc::new(StringArray::from(words)))
}

/// A workload given by its word, or as columns in memory.
pub(crate) enum Named {
    Word(String),
    Columns(Arc<dyn Rows>),
}

/// Name in the results of a workload in memory.
const NAME: &str = "table";

impl Named {
    /// Converts `workload`, a string or a [`Columns`].
    pub(crate) fn of(workload: &Bound<'_, PyAny>) -> PyResult<Named> {
        if let Ok(columns) = workload.cast::<Columns>() {
            return Ok(Named::Columns(columns.get().rows.clone()));
        }
        Ok(Named::Word(workload.extract()?))
    }

    /// Returns the word, or the name of a workload in memory.
    pub(crate) fn name(&self) -> &str {
        match self {
            Named::Word(word) => word,
            Named::Columns(_) => NAME,
        }
    }

    /// Finds the workload of this word, or of these columns.
    pub(crate) fn find(&self, options: &WorkloadOptions, progress: &Progress) -> Result<Workload, Failure> {
        match self {
            Named::Word(word) => Workload::find(word, options, progress),
            Named::Columns(rows) => Workload::of_rows(NAME, rows.clone(), options, progress),
        }
    }
}
