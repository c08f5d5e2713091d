//! Stops panics at the border of this crate: neither Python nor a library that reads one of our streams sees a panic.
//!
//! This module depends on neither, so it can be tested without an interpreter (`tests/all/border.rs`).
//!
//! Invariants:
//! 1. A panic becomes a message: the panic's text, the statement that it is our bug, and a request to report it.
//! 2. After a panic, a stream returns the message and ends. The iterator that panicked is not called again.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the message for a panic.
fn told(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(ToString::to_string);
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".into());
    format!(
        "a bug of imbrex {}, not of yours: {words}; please report it with the call that led here",
        env!("CARGO_PKG_VERSION")
    )
}

/// Returns the result of `work`, or the message for its panic.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| told(panic.as_ref()))
}

/// Returns the items of `rows`. If `rows` panics, the last item is the error that `wrong` makes of the message.
pub(crate) fn caught_rows<T, E>(
    mut rows: impl Iterator<Item = Result<T, E>>,
    wrong: impl Fn(String) -> E,
) -> impl Iterator<Item = Result<T, E>> {
    let mut has_ended = false;
    std::iter::from_fn(move || {
        if has_ended {
            return None;
        }
        caught(|| rows.next()).unwrap_or_else(|words| {
            has_ended = true;
            Some(Err(wrong(words)))
        })
    })
}
