//! Lists of the registered drive profiles, layers, trace formats and built-in workloads.

use imbrex::listing;
use imbrex::{Failure, drives};
use imbrex_layer::registry;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::guarded;

/// Returns the list called `what` as JSON: an array of objects.
#[pyfunction]
pub(crate) fn listed(what: &str) -> PyResult<String> {
    guarded(|| {
        let list = match what {
            "drives" => listing::profiles_json(),
            "layers" => registry::all().into_iter().map(listing::layer_json).collect::<Value>(),
            "formats" => listing::formats().as_json(),
            "generators" => listing::generators().as_json(),
            other => {
                return Err(Failure::usage(format!("no list is called '{other}'"))
                    .or_try("drives, layers, formats or generators"));
            }
        };
        Ok(list.to_string())
    })
}

/// Returns one profile or layer with all its details, as JSON.
#[pyfunction]
pub(crate) fn one(what: &str, name: &str) -> PyResult<String> {
    guarded(|| {
        if what == "layers" {
            return Ok(listing::layer_json(listing::layer(name)?).to_string());
        }
        let profile = drives::find_profile(name)?;
        let table = serde_json::to_value(profile.table()).map_err(Failure::failed)?;
        Ok(json!({"profile": profile.name, "toml": profile.source_text(), "values": table}).to_string())
    })
}
