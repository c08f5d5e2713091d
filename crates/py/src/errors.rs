//! From the library's failures to Python's exceptions.
//!
//! | what | exception |
//! |---|---|
//! | the world did not play along | `ImbrexError` |
//! | what was asked for is not known, or makes no sense | `ValueError` |
//! | stopped before anything was kept | `KeyboardInterrupt` |
//! | a bug of ours | `ImbrexError` that says so |

use imbrex::{Failure, FailureKind};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::border;

pyo3::create_exception!(
    imbrex,
    ImbrexError,
    PyException,
    "What went wrong, where, and what to do: a trace that cannot be read, a folder that cannot be written, a drive that fails."
);

/// The exception for `failure`.
pub fn exception(failure: &Failure) -> PyErr {
    let text = match &failure.remedy {
        Some(remedy) => format!("{}; try: {remedy}", failure.message),
        None => failure.message.clone(),
    };
    match failure.kind {
        FailureKind::Failed => ImbrexError::new_err(text),
        FailureKind::Usage => PyValueError::new_err(text),
        FailureKind::Interrupted => PyKeyboardInterrupt::new_err(text),
    }
}

/// What `work` comes to, with failures and panics as exceptions.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    caught(|| work().map_err(|failure| exception(&failure)))
}

/// What `work` comes to, with panics as exceptions: for work that speaks Python itself.
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    border::caught(work).unwrap_or_else(|told| Err(ImbrexError::new_err(told)))
}
