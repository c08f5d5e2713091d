//! Converts failures of the library to Python exceptions.
//!
//! | failure | exception |
//! |---|---|
//! | an operation on a file, a drive or another resource failed | `ImbrexError` |
//! | the request is wrong: an unknown name, or an option or value that is invalid | `ValueError` |
//! | interrupted before any result was kept | `KeyboardInterrupt` |
//! | a bug of this program | `ImbrexError` that says so |

use imbrex::{Failure, FailureKind};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::border;

pyo3::create_exception!(
    imbrex,
    ImbrexError,
    PyException,
    "An error, with its place and a remedy: a trace that cannot be read, a folder that cannot be written, a drive that \
     fails."
);

/// Returns the exception for `failure`.
pub(crate) fn exception(failure: &Failure) -> PyErr {
    let text = match &failure.remedy {
        Some(remedy) => format!("{}; try: {remedy}", failure.message),
        None => failure.message.clone(),
    };
    match failure.kind {
        FailureKind::Failed | FailureKind::InputChanged | FailureKind::Damage => ImbrexError::new_err(text),
        FailureKind::Usage => PyValueError::new_err(text),
        FailureKind::Interrupted => PyKeyboardInterrupt::new_err(text),
    }
}

/// Returns the result of `work`, with failures and panics converted to exceptions.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    caught(|| work().map_err(|failure| exception(&failure)))
}

/// Returns the result of `work`, with panics converted to exceptions: for work that returns Python exceptions itself.
pub(crate) fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    border::caught(work).unwrap_or_else(|told| Err(ImbrexError::new_err(told)))
}
