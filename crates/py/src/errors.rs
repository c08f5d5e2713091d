//! From the library's failures to Python's exceptions.
//!
//! | what | exception |
//! |---|---|
//! | the world did not play along | `ImbrexError` |
//! | what was asked for is not known, or makes no sense | `ValueError` |
//! | stopped before anything was kept | `KeyboardInterrupt` |
//! | a bug of ours | `ImbrexError` that says so |

use std::panic::{catch_unwind, AssertUnwindSafe};

use imbrex::{Failure, FailureKind};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

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

/// The exception for a panic.
pub fn bug(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let words = panic.downcast_ref::<&str>().map(ToString::to_string);
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".into());
    ImbrexError::new_err(format!(
        "a bug of imbrex {}, not of yours: {words}; please report it with the call that led here",
        env!("CARGO_PKG_VERSION")
    ))
}

/// What `work` comes to, with failures and panics as exceptions.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome.map_err(|failure| exception(&failure)),
        Err(panic) => Err(bug(panic.as_ref())),
    }
}
