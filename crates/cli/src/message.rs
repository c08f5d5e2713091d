//! Messages on standard error. A message that cannot be printed, because nobody reads standard error any more, is lost;
//! `eprintln!` would end the program instead.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Notices so far, for the list `warnings` of a JSON document.
static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a line on standard error. Takes the arguments of `format!`.
macro_rules! message {
    () => { $crate::message::part(format_args!("\n")) };
    ($($arguments:tt)+) => { $crate::message::line(format_args!($($arguments)+)) };
}

/// Prints a notice on standard error, and keeps it for [`notices`]. Takes the arguments of `format!`.
macro_rules! notice {
    ($($arguments:tt)+) => { $crate::message::notice(format!($($arguments)+)) };
}

/// Prints the notice `text` on standard error, and keeps it for [`notices`].
pub(crate) fn notice(text: String) {
    line(format_args!("imbrex: {text}"));
    keep(text);
}

/// Keeps a notice that is printed elsewhere, or not at all, for [`notices`].
pub(crate) fn keep(text: String) {
    NOTICES.lock().unwrap_or_else(PoisonError::into_inner).push(text);
}

/// Returns the notices so far, in order.
pub(crate) fn notices() -> Vec<String> {
    NOTICES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Prints `text` and a line feed on standard error.
pub(crate) fn line(text: Arguments<'_>) {
    part(format_args!("{text}\n"));
}

/// Prints `text` on standard error, in one write so that messages of several threads do not mix.
pub(crate) fn part(text: Arguments<'_>) {
    bytes(text.to_string().as_bytes());
}

/// Prints the bytes of another program on standard error as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    let _ = std::io::stderr().write_all(bytes);
}
