//! Options of a simulation, with the names and values of the command line.

use imbrex::Failure;
use imbrex::simulate_options::{BadWord, SimulateOptions};
use pyo3::prelude::*;

/// Returns the options set by `pairs` of a name and a value.
pub(crate) fn asked(pairs: &[(String, String)]) -> Result<SimulateOptions, Failure> {
    let mut asked = SimulateOptions::default();
    for (name, word) in pairs {
        asked.set(name, word).map_err(BadWord::in_assignment)?;
    }
    Ok(asked)
}

/// Returns the names of all options of `imbrex simulate`.
#[pyfunction]
pub(crate) fn option_names() -> Vec<&'static str> {
    SimulateOptions::names().collect()
}
