//! The border that no panic crosses: neither into Python nor into a library that reads a stream of ours.
//!
//! Knows neither, so that it is tested without an interpreter (`tests/border.rs`).
//!
//! Invariants:
//! 1. What panics ends as words: what happened, that it is our bug, what to do.
//! 2. Rows that panicked are not asked again: a stream ends after the words.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is told of a panic.
fn told(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(ToString::to_string);
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".into());
    format!(
        "a bug of imbrex {}, not of yours: {words}; please report it with the call that led here",
        env!("CARGO_PKG_VERSION")
    )
}

/// The result of `work`, or, if it panicked, the words that tell of it.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| told(panic.as_ref()))
}

/// The items of `rows`; after a panic, an error that `wrong` makes of what is told, and the end.
pub fn caught_rows<T, E>(
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
