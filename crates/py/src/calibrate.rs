//! `imbrex.probe`, `imbrex.validate`, `imbrex.fit`: comparison with real drives.
//!
//! Invariants:
//! 1. Only simulated drives are written to. Permission to destroy the contents of a real drive is given on the command
//!    line alone, which asks for it.

use std::path::{Path, PathBuf};

use imbrex::drives::DrivePlan;
use imbrex::{Failure, human, measured};
use imbrex_calibrate::readers::ReadOptions;
use imbrex_probe::targets::{Access, Block, Image, Nbd};
use imbrex_probe::{ProbeOptions, Simulated, Target, experiments, probe};
use imbrex_units::quantity;
use pyo3::prelude::*;

use crate::errors::guarded;
use crate::work;
use imbrex_units::names::suggestion;

/// Smallest size in bytes of a target that is not simulated. The tests need that much room.
const SIZE_BYTES_MIN: u64 = 64 << 20;

/// Returns the verdict on `target` as JSON, as printed by `imbrex probe --json`.
#[pyfunction]
pub(crate) fn probed(
    py: Python<'_>,
    target: String,
    tests: Vec<String>,
    budget: Option<String>,
    seed: u64,
    shown: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let budget_ns = guarded(|| check(&target, &tests, budget.as_deref()))?;
    let done = work::done(py, shown, move |progress| {
        let mut opened = open(&target)?;
        let bar = progress.steps(&target);
        let mut options = ProbeOptions {
            may_write: target.starts_with("sim:"),
            only: tests,
            budget_ns,
            seed,
            progress: &mut |told| {
                bar.set_message(told.test.to_string());
                bar.set_position(told.operations);
                !progress.should_stop()
            },
        };
        let verdict = probe(opened.as_mut(), &mut options);
        bar.finish_and_clear();
        serde_json::to_string(&verdict).map_err(Failure::failed)
    })?;
    Ok(done.value)
}

/// Checks that all tests exist and may write if they need to. Returns the budget in nanoseconds; `u64::MAX` for none.
fn check(target: &str, tests: &[String], budget: Option<&str>) -> Result<u64, Failure> {
    for name in tests {
        let Some(experiment) = experiments::all().iter().find(|experiment| experiment.name == name) else {
            let names: Vec<_> = experiments::all().iter().map(|experiment| experiment.name).collect();
            return Err(Failure::usage(format!(
                "no test is called '{name}'{}",
                suggestion(name, names.iter().copied())
            ))
            .or_try(format!("one of {}", names.join(", "))));
        };
        if experiment.writes && !target.starts_with("sim:") {
            return Err(Failure::usage(format!("test '{name}' writes: it destroys the data on {target}")).or_try(
                "`imbrex probe TARGET --destroy-data` on the command line, if nothing on it is wanted any more",
            ));
        }
    }
    let Some(budget) = budget else { return Ok(u64::MAX) };
    quantity::duration_ns(budget, quantity::SECOND_NS)
        .ok_or_else(|| Failure::usage(format!("budget = {budget}: expected a time such as 30m or 2h")))
}

/// Opens `target`: read-only, unless it is a simulated drive.
fn open(target: &str) -> Result<Box<dyn Target>, Failure> {
    if let Some(words) = target.strip_prefix("sim:") {
        let drive = DrivePlan::parse(words)?.build()?;
        if drive.layer.is_host_managed() {
            return Err(Failure::failed(format!("{target}: is host-managed: it reports overlapping tracks")));
        }
        return Ok(Box::new(Simulated::new(drive)));
    }
    let path = Path::new(target);
    let opened: Box<dyn Target> = if target.contains("://") {
        Nbd::check_url(target).map_err(|reason| Failure::usage(format!("'{target}': {reason}")))?;
        Box::new(Nbd::connect(target).map_err(Failure::failed)?)
    } else if Image::is_one(path) {
        Box::new(Image::open(path, false).map_err(Failure::failed)?)
    } else {
        Box::new(Block::open(path, Access { may_write: false }).map_err(Failure::failed)?)
    };
    if opened.size_bytes() < SIZE_BYTES_MIN {
        let (size, least) = (human::bytes(opened.size_bytes()), human::bytes(SIZE_BYTES_MIN));
        return Err(Failure::failed(format!("{target}: {size} are too small for the tests, which need {least}")));
    }
    Ok(opened)
}

fn reading(columns: Option<String>, units: Option<String>, device: Option<String>) -> ReadOptions {
    ReadOptions { columns, units, device }
}

/// Compares `drive` with the measurement in the file `path`. Returns the JSON of `imbrex validate --json`.
#[pyfunction]
#[pyo3(signature = (path, drive, workload, columns, units, device, shown))]
#[allow(clippy::too_many_arguments)] // the parameters are keyword arguments of the Python function
pub(crate) fn validated(
    py: Python<'_>,
    path: PathBuf,
    drive: String,
    workload: Option<String>,
    columns: Option<String>,
    units: Option<String>,
    device: Option<String>,
    shown: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let done = work::done(py, shown, move |_| {
        let options = reading(columns, units, device);
        let (read, judged) = measured::hold(&path, &options, &drive, workload.as_deref())?;
        Ok(measured::validation_document(&path, &drive, &read, &judged.validation)?.to_string())
    })?;
    Ok(done.value)
}

/// Fits the profile `from` to the measurement in the file `path`. Returns the JSON of `imbrex fit --json` and the
/// fitted profile as TOML.
#[pyfunction]
#[pyo3(signature = (path, from, columns, units, device, shown))]
pub(crate) fn fitted(
    py: Python<'_>,
    path: PathBuf,
    from: String,
    columns: Option<String>,
    units: Option<String>,
    device: Option<String>,
    shown: &Bound<'_, PyAny>,
) -> PyResult<(String, String)> {
    let done = work::done(py, shown, move |progress| {
        let (read, found) = measured::fit_to(&path, &reading(columns, units, device), &from, progress)?;
        Ok((measured::fit_document(&path, &from, &read, &found).to_string(), found.toml))
    })?;
    Ok(done.value)
}
