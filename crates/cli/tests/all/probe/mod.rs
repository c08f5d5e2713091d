//! `imbrex probe` from outside: the built program on images, served drives, files and loop devices; its refusals and
//! its ends.

mod ends;
mod file;
mod real_time;
mod refusals;
#[path = "../../../../probe/tests/all/support/mod.rs"]
#[allow(dead_code)] // the tests of the probe use the rest
mod support;
mod targets;

use std::process::Output;

use serde_json::Value;

/// Returns standard error.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the verdict that was printed as JSON.
fn verdict(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// Returns the value of a property in a verdict.
fn value<'a>(verdict: &'a Value, name: &str) -> Option<&'a Value> {
    let properties = verdict["properties"].as_array().expect("properties");
    properties.iter().find(|property| property["name"] == name).map(|property| &property["value"])
}
