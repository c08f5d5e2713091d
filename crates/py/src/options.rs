//! Options: names of the command line and words, set as the command line sets them.

use imbrex::Failure;
use imbrex::asked::{Asked, BadWord};
use pyo3::prelude::*;

/// `pairs` of a name and a word, as what a simulation is asked.
pub fn asked(pairs: &[(String, String)]) -> Result<Asked, Failure> {
    let mut asked = Asked::default();
    for (name, word) in pairs {
        asked.set(name, word).map_err(BadWord::in_assignment)?;
    }
    Ok(asked)
}

/// The names of all options of `imbrex simulate`.
#[pyfunction]
pub fn option_names() -> Vec<&'static str> {
    Asked::names().collect()
}
