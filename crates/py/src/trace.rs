//! `imbrex.Trace`: reads a workload in batches, computes its statistics, or writes it in another format.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, UInt8Array, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use imbrex::conversion::{self, GENERATOR_SECTORS};
use imbrex::workload::Counted;
use imbrex::{Failure, Workload};
use imbrex_disk::SimTime;
use imbrex_trace::rows::op_of;
use imbrex_trace::{Source, When};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::json;

use crate::errors::guarded;
use crate::options;
use crate::tables;
use crate::work;
use crate::workload::Named;

/// A workload: a generator, or a trace that has been read through once.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Trace {
    workload: Arc<Workload>,
}

#[pymethods]
impl Trace {
    #[new]
    fn new(
        py: Python<'_>,
        workload: &Bound<'_, PyAny>,
        options: Vec<(String, String)>,
        shown: &Bound<'_, PyAny>,
    ) -> PyResult<Trace> {
        let named = Named::of(workload)?;
        let asked = guarded(|| options::asked(&options))?;
        let done = work::done(py, shown, move |progress| named.find(&asked.workload, progress))?;
        Ok(Trace { workload: Arc::new(done.value) })
    }

    /// Returns the name of the workload.
    #[getter]
    fn name(&self) -> String {
        self.workload.name.clone()
    }

    /// Returns the trace format, or `generator`.
    #[getter]
    fn format(&self) -> String {
        self.workload.format.clone()
    }

    /// Returns the SHA-256 of the contents, in hexadecimal.
    #[getter]
    fn sha256(&self) -> String {
        self.workload.sha256.clone()
    }

    /// Returns the output of `imbrex trace info --json`, as text.
    fn info_json(&self, py: Python<'_>, shown: &Bound<'_, PyAny>) -> PyResult<String> {
        let workload = self.workload.clone();
        let done = work::done(py, shown, move |progress| {
            let described = conversion::describe(&workload, progress, &mut |_, _| {})?;
            serde_json::to_string_pretty(&described).map_err(Failure::failed)
        })?;
        Ok(done.value)
    }

    /// Writes the workload as `path`, in the format `to` or, without `to`, in that of the file extension. Returns the
    /// format, the number of requests, and counts of lost details, as JSON.
    #[pyo3(signature = (path, to, shown))]
    fn convert(&self, py: Python<'_>, path: PathBuf, to: Option<String>, shown: &Bound<'_, PyAny>) -> PyResult<String> {
        let workload = self.workload.clone();
        let done = work::done(py, shown, move |progress| {
            let writer = conversion::writer_for(&path, to.as_deref())?;
            let converted = conversion::convert(&workload, &path, writer, progress)?;
            let (requests, lost) = (converted.written.requests, &converted.written.lost);
            Ok(json!({"to": writer.name, "requests": requests, "lost": lost}).to_string())
        })?;
        Ok(done.value)
    }

    /// Returns an iterator over the requests from the first on, with `rows` requests per batch.
    fn batches(&self, rows: usize) -> PyResult<Batches> {
        if rows == 0 {
            return Err(PyValueError::new_err("rows = 0: expected a number of 1 or more"));
        }
        let source = guarded(|| self.workload.open(GENERATOR_SECTORS))?;
        Ok(Batches { source: Mutex::new(source), rows })
    }

    /// Returns all requests as one Arrow C stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let mut source = guarded(|| self.workload.open(GENERATOR_SECTORS))?;
        let mut read =
            move || batch_of(&mut source, STREAM_ROWS).map_err(|failure| ArrowError::ComputeError(failure.message));
        let batches = std::iter::from_fn(move || read().transpose());
        tables::stream(py, schema(), batches)
    }
}

/// Number of rows in a batch of a stream.
const STREAM_ROWS: usize = 64 * 1024;

/// Iterator over the requests of a workload, in batches of a fixed number of rows; the last batch may have fewer.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Batches {
    source: Mutex<Counted>,
    rows: usize,
}

/// One batch of the requests of a workload, which other libraries read as an Arrow stream of one record batch.
#[pyclass(frozen, module = "imbrex._imbrex", name = "Batch")]
pub struct TraceBatch {
    batch: RecordBatch,
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Py<Batches>) -> Py<Batches> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<TraceBatch>> {
        let batch = py.detach(|| {
            guarded(|| {
                let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
                batch_of(&mut source, self.rows)
            })
        })?;
        Ok(batch.map(|batch| TraceBatch { batch }))
    }
}

#[pymethods]
impl TraceBatch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = std::iter::once(Ok::<_, ArrowError>(self.batch.clone()));
        tables::stream(py, schema(), batches)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect();
        format!("<imbrex.Batch of {} rows: {}>", self.batch.num_rows(), names.join(", "))
    }
}

fn schema() -> SchemaRef {
    let field = |name: &str, kind: DataType, nullable: bool| Field::new(name, kind, nullable);
    Arc::new(Schema::new(vec![
        field("time_ns", DataType::UInt64, true),
        field("op", DataType::UInt8, false),
        field("lba", DataType::UInt64, false),
        field("sectors", DataType::UInt32, false),
        field("device", DataType::UInt32, false),
    ]))
}

/// Reads the next requests, at most `rows` of them. Returns `None` at the end. The time of a request is null if the
/// workload gives it no absolute time.
fn batch_of(source: &mut Counted, rows: usize) -> Result<Option<RecordBatch>, Failure> {
    let capacity = rows.min(STREAM_ROWS);
    let (mut times, mut operations) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
    let (mut lbas, mut lengths) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
    let mut devices = Vec::with_capacity(capacity);
    while times.len() < rows {
        let Some(request) = source.next(SimTime::ZERO)? else { break };
        let command = request.command;
        times.push(match request.when {
            When::At(at) => Some(at.0),
            When::Free(_) | When::Drained(_) => None,
        });
        operations.push(op_of(&command));
        lbas.push(command.lba.0);
        lengths.push(command.sectors);
        devices.push(request.device);
    }
    if times.is_empty() {
        return Ok(None);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(times)),
        Arc::new(UInt8Array::from(operations)),
        Arc::new(UInt64Array::from(lbas)),
        Arc::new(UInt32Array::from(lengths)),
        Arc::new(UInt32Array::from(devices)),
    ];
    RecordBatch::try_new(schema(), columns).map(Some).map_err(Failure::failed)
}
