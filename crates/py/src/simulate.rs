//! `imbrex.simulate`: one workload on several drives.

use std::path::PathBuf;
use std::sync::Arc;

use imbrex::explain::document::ExplainDocument;
use imbrex::files::{self, explained, histograms, timeline};
use imbrex::table_form::Cell;
use imbrex::{Failure, Simulation, report, table};
use imbrex_sim::DriveSeries;
use pyo3::prelude::*;

use crate::errors::guarded;
use crate::options;
use crate::tables::Table;
use crate::work;
use crate::workload::Named;

/// Results of a simulation of one workload on one or more drives. A stopped simulation has the results up to its stop.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Simulated {
    simulated: imbrex::Simulated,
    notes: Vec<String>,
    temporary: Option<Arc<tempfile::TempDir>>,
    has_ios: bool,
}

/// Simulates `workload` on `drives` with options of the command line. `command` is the equivalent command line, which
/// the results contain. `shown` selects the display of progress, as for [`work::done`].
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    workload: &Bound<'_, PyAny>,
    drives: Vec<String>,
    options: Vec<(String, String)>,
    command: Vec<String>,
    shown: &Bound<'_, PyAny>,
) -> PyResult<Simulated> {
    let named = Named::of(workload)?;
    let mut asked = guarded(|| options::asked(&options))?;
    let has_ios = asked.simulation.per_io;
    let mut temporary = None;
    if asked.simulation.out.is_none() && (asked.simulation.per_io || asked.simulation.plans) {
        let folder = guarded(|| {
            let failed = |error| Failure::failed(format!("no temporary folder for the rows of requests: {error}"));
            tempfile::tempdir().map_err(failed)
        })?;
        asked.simulation.out = Some(folder.path().to_path_buf());
        temporary = Some(Arc::new(folder));
    }
    let done = work::done(py, shown, move |progress| {
        let mut simulation = Simulation::new().baseline(asked.baseline).options(asked.simulation).command(command);
        for text in &drives {
            simulation = simulation.drive(text)?;
        }
        let prepared = simulation.with_default_drives(named.name())?.prepared()?;
        let workload = named.find(&asked.workload, progress)?;
        prepared.run(&workload, progress)
    })?;
    Ok(Simulated { simulated: done.value, notes: done.notes, temporary, has_ios })
}

/// Returns the table of the parts of the `worst` longest latencies of each drive, of a document as
/// [`Simulated::explain_json`] returns it.
#[pyfunction]
pub(crate) fn explained_table(document: &str, worst: usize) -> PyResult<Table> {
    guarded(|| {
        let document: ExplainDocument = serde_json::from_str(document).map_err(Failure::failed)?;
        Ok(Table::of_bytes(explained::bytes(&document, worst).map_err(Failure::failed)?))
    })
}

impl Simulated {
    fn named(&self) -> Vec<(&str, &DriveSeries)> {
        let labels = self.simulated.summary.drives.iter().map(|drive| drive.drive.as_str());
        labels.zip(&self.simulated.series).collect()
    }
}

#[pymethods]
impl Simulated {
    /// Returns `summary.json` as text.
    fn summary_json(&self) -> PyResult<String> {
        guarded(|| serde_json::to_string_pretty(&self.simulated.summary).map_err(Failure::failed))
    }

    /// Returns the table that the program prints; in blocks if it is wider than `columns`.
    #[pyo3(signature = (columns=None))]
    fn table(&self, columns: Option<usize>) -> PyResult<String> {
        guarded(|| Ok(self.simulated.table_within(columns)))
    }

    /// Returns the table of `latency.parquet`.
    fn latency(&self) -> PyResult<Table> {
        guarded(|| Ok(Table::of_bytes(histograms::bytes(&self.named()).map_err(Failure::failed)?)))
    }

    /// Returns the table of `timeline.parquet`.
    fn timeline(&self) -> PyResult<Table> {
        guarded(|| Ok(Table::of_bytes(timeline::bytes(&self.named()).map_err(Failure::failed)?)))
    }

    /// Returns the table of `ios.parquet`, if it was requested.
    fn ios(&self) -> Option<Table> {
        let folder = self.simulated.folder.as_ref().filter(|_| self.has_ios)?;
        Some(Table::of_file(folder.file("ios.parquet"), self.temporary.clone()))
    }

    /// Returns the path of `plan.jsonl`, if it was requested.
    fn plans(&self) -> Option<PathBuf> {
        let path = self.simulated.folder.as_ref()?.file("plan.jsonl");
        path.exists().then_some(path)
    }

    /// Returns the causes of the longest latencies as JSON, if they were looked for.
    fn explain_json(&self) -> PyResult<Option<String>> {
        let explained = self.simulated.explained.as_ref();
        guarded(|| explained.map(serde_json::to_string).transpose().map_err(Failure::failed))
    }

    /// Writes `report.html` as `path`, completely or not at all.
    fn report(&self, path: PathBuf) -> PyResult<()> {
        guarded(|| {
            let page = report::html(&self.simulated.summary, &self.simulated.series, self.simulated.explained.as_ref());
            Ok(files::replace(&path, page.as_bytes())?)
        })
    }

    /// Returns the headings and the rows of the table for people, as texts.
    fn cells(&self) -> PyResult<(Vec<String>, Vec<Vec<String>>)> {
        guarded(|| {
            let cells = table::shown(&self.simulated.summary.drives);
            let headings = cells.columns.into_iter().map(|column| column.heading).collect();
            let texts = |row: Vec<Cell>| row.into_iter().map(|cell| cell.shown).collect();
            Ok((headings, cells.rows.into_iter().map(texts).collect()))
        })
    }

    /// Returns a fragment of HTML: `table`, which is HTML, the remarks, and a chart of the latencies.
    fn fragment(&self, table: &str) -> PyResult<String> {
        guarded(|| Ok(report::fragment::html(&self.simulated.summary, &self.simulated.series, table)))
    }

    /// Returns whether the simulation was stopped before its end.
    #[getter]
    fn is_stopped(&self) -> bool {
        self.simulated.is_stopped
    }

    /// Returns the reasons why requested drives did not run.
    #[getter]
    fn not_run(&self) -> Vec<String> {
        self.simulated.not_run.clone()
    }

    /// Returns messages for people, about decisions made during the simulation.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Returns the folder of the result files.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        let folder = self.simulated.folder.as_ref().filter(|_| self.temporary.is_none())?;
        Some(folder.path().to_path_buf())
    }
}
