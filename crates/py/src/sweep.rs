//! `imbrex.sweep`: the grid and its dataset. Points are run here, or passed to workers that run them elsewhere.
//!
//! ```text
//!  Sweep ─► run: on the cores there are
//!     ├──► payload(workload) ─► Shipped on a worker, once ─┐
//!     └──► tasks ─────────────────────────────────────────► run(task) ─► row ─► keep(row)
//! ```

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use imbrex::conversion;
use imbrex::sweep::grid::InMemory;
use imbrex::sweep::row::{self, Row};
use imbrex::sweep::{Dataset, Grid, Spec, Swept, Task, page};
use imbrex::{Failure, Progress, SimulateOptions, Workload};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::guarded;
use crate::tables::Table;
use crate::work;
use crate::workload::Named;

/// A name and its values.
type Several = (String, Vec<String>);

/// All that a worker needs to build a workload: for a generator its words, which name no file, and the options to read
/// it with; otherwise `None`, and its requests as a file of our own format.
type Payload<'py> = (Option<String>, Vec<(String, String)>, Bound<'py, PyBytes>);

/// A parameter sweep: the points to simulate (each a workload, a drive and values of the parameters), and the dataset
/// that keeps one row of results for each point.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Sweep {
    grid: Arc<Grid>,
    dataset: Dataset,
}

#[pymethods]
impl Sweep {
    /// Creates the grid of `workloads`, each a name and a workload, on `drives`, and opens the dataset in `folder`.
    #[new]
    fn new(
        py: Python<'_>,
        workloads: Vec<(String, Bound<'_, PyAny>)>,
        drives: Vec<String>,
        parameters: Vec<Several>,
        options: Vec<Several>,
        folder: PathBuf,
        shown: &Bound<'_, PyAny>,
    ) -> PyResult<Sweep> {
        let mut spec = Spec { drives, parameters, options, ..Spec::default() };
        let mut memory = Vec::new();
        for (name, workload) in &workloads {
            match Named::of(workload)? {
                Named::Word(word) => spec.workloads.push(word),
                Named::Columns(rows) => memory.push(InMemory { name: name.clone(), rows }),
            }
        }
        let done = work::done(py, shown, move |progress| {
            let spec = spec.with_ranges()?;
            let dataset = Dataset::in_folder(&folder)?;
            Ok((Arc::new(Grid::of(&spec, &memory, progress)?), dataset))
        })?;
        let (grid, dataset) = done.value;
        Ok(Sweep { grid, dataset })
    }

    /// Simulates the missing points, `jobs` at once. Returns counts of the points.
    #[pyo3(signature = (jobs, again, shown))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        jobs: Option<u32>,
        again: bool,
        shown: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (grid, dataset) = (self.grid.clone(), self.dataset.clone());
        let done = work::done(py, shown, move |progress| grid.run(&dataset, again, jobs, progress))?;
        let Swept { points, found, run, failed, damaged, is_stopped } = done.value;
        let figures = PyDict::new(py);
        let counts = [("points", points), ("found", found), ("run", run), ("failed", failed), ("damaged", damaged)];
        for (name, count) in counts {
            figures.set_item(name, count)?;
        }
        figures.set_item("is_stopped", is_stopped)?;
        Ok(figures)
    }

    /// Returns the number of points whose row says that live data was lost.
    fn damaged(&self) -> usize {
        self.grid.damaged(&self.dataset).len()
    }

    /// Returns the number of points.
    fn __len__(&self) -> usize {
        self.grid.points.len()
    }

    /// Returns the points that have to run, each as the number of its workload and its task in JSON. These are the
    /// points without a row and, if `again` is set, those that failed.
    fn missing(&self, again: bool) -> PyResult<Vec<(usize, String)>> {
        guarded(|| {
            let missing = self.grid.missing(&self.dataset, again);
            let task = |task: &Task| serde_json::to_string(task).map_err(Failure::failed);
            missing.iter().map(|point| Ok((point.workload, task(&point.task)?))).collect()
        })
    }

    /// Returns all that a worker needs to build workload number `index`: its words and options if it is a generator, or
    /// else its requests as a file of our own format.
    fn payload<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Payload<'py>> {
        let found = self.grid.found.get(index);
        let found = found.ok_or_else(|| PyIndexError::new_err(format!("no workload number {index} in this sweep")))?;
        if let Some(words) = found.workload.portable_words() {
            return Ok((Some(words), found.options.clone(), PyBytes::new(py, b"")));
        }
        let bytes = py.detach(|| guarded(|| requests_of(&found.workload)))?;
        Ok((None, Vec::new(), PyBytes::new(py, &bytes)))
    }

    /// Adds the row that a worker made.
    fn keep(&self, bytes: Vec<u8>) -> PyResult<()> {
        guarded(|| {
            let row = Row::parse(bytes).map_err(Failure::failed)?;
            self.dataset.add(&row)
        })
    }

    /// Returns the existing rows of this grid, in the order of its points.
    fn table(&self) -> PyResult<Table> {
        guarded(|| {
            let rows = self.grid.rows(&self.dataset);
            Ok(Table::of_bytes(row::write(&rows).map_err(Failure::failed)?))
        })
    }

    /// Returns the names of the parameters and options of the sweep.
    #[getter]
    fn swept(&self) -> Vec<String> {
        self.grid.swept.clone()
    }

    /// Writes the table of all rows and the page with the charts into the folder of the dataset. Returns the page's
    /// path.
    fn write_page(&self, title: &str) -> PyResult<PathBuf> {
        guarded(|| {
            let rows = self.grid.rows(&self.dataset);
            self.dataset.write_table(&rows)?;
            self.dataset.write_page(&page::html(title, &rows, &self.grid.swept))
        })
    }

    /// Returns the charts as SVG, for a notebook.
    fn drawings(&self) -> PyResult<Vec<String>> {
        guarded(|| {
            let charts = page::charts(&self.grid.rows(&self.dataset), &self.grid.swept);
            Ok(charts.iter().map(|chart| chart.svg(imbrex::chart::Style::Standalone)).collect())
        })
    }
}

/// Returns the requests of a trace as the bytes of a Parquet file of our own format.
fn requests_of(workload: &Workload) -> Result<Vec<u8>, Failure> {
    let failed =
        |error: std::io::Error| Failure::failed(format!("cannot keep the requests in a temporary file: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let path = folder.path().join("requests.parquet");
    let writer = conversion::writer_for(&path, None)?;
    conversion::convert(workload, &path, writer, &Progress::silent())?;
    workload.check_unchanged()?;
    std::fs::read(&path).map_err(failed)
}

/// A workload in a worker process, rebuilt from the data that `Sweep.payload` returned.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Shipped {
    workload: Workload,
}

#[pymethods]
impl Shipped {
    /// Builds the workload of a payload.
    #[new]
    fn new(
        py: Python<'_>,
        word: Option<String>,
        options: Vec<(String, String)>,
        requests: Vec<u8>,
    ) -> PyResult<Shipped> {
        py.detach(|| {
            guarded(|| {
                let mut asked = SimulateOptions::default();
                for (name, value) in &options {
                    asked.set(name, value).map_err(imbrex::simulate_options::BadWord::in_assignment)?;
                }
                let progress = Progress::silent();
                if let Some(word) = word {
                    return Ok(Shipped { workload: Workload::generator(&word, &asked.workload)? });
                }
                let failed = |error: std::io::Error| {
                    Failure::failed(format!("cannot keep the requests in a temporary file: {error}"))
                };
                let mut file = tempfile::Builder::new().suffix(".parquet").tempfile().map_err(failed)?;
                file.write_all(&requests).map_err(failed)?;
                // The workload keeps the file open, so the file may be removed.
                let workload = Workload::named(&file.path().display().to_string(), &progress)?;
                Ok(Shipped { workload })
            })
        })
    }

    /// Simulates the point of `task`. Returns its row as the bytes of a Parquet file.
    fn run<'py>(&self, py: Python<'py>, task: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| {
            guarded(|| {
                let task: Task = serde_json::from_str(task).map_err(Failure::failed)?;
                let row = task.run(&self.workload, &Progress::silent())?.ok_or_else(Failure::interrupted)?;
                row::write(&[row]).map_err(Failure::failed)
            })
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}
