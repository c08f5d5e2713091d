//! Numbers as text, in the form of the program's tables.

use imbrex::human;
use pyo3::prelude::*;

/// Formats a duration in nanoseconds, such as `12.50 ms`.
#[pyfunction]
pub(crate) fn shown_duration(ns: u64) -> String {
    human::duration_ns(ns)
}

/// Formats a size in bytes, such as `18.6 GiB`.
#[pyfunction]
pub(crate) fn shown_bytes(bytes: u64) -> String {
    human::bytes(bytes)
}

/// Formats a ratio, such as `38.1`.
#[pyfunction]
pub(crate) fn shown_ratio(ratio: f64) -> String {
    human::ratio(ratio)
}

/// Formats a ratio of new to old as a change in percent, such as `+23.8 %`.
#[pyfunction]
pub(crate) fn shown_gain(ratio: f64) -> String {
    human::gain(ratio)
}
