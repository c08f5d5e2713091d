//! Messages on standard error. A message that cannot be printed, because nobody reads standard error any more, is lost;
//! `eprintln!` would end the program instead.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a line on standard error. Takes the arguments of `format!`.
macro_rules! message {
    () => { $crate::message::part(format_args!("\n")) };
    ($($arguments:tt)+) => { $crate::message::line(format_args!($($arguments)+)) };
}

/// Prints `text` and a line feed on standard error.
pub(crate) fn line(text: Arguments<'_>) {
    part(format_args!("{text}\n"));
}

/// Prints `text` on standard error, in one write so that messages of several threads do not mix.
pub(crate) fn part(text: Arguments<'_>) {
    let _ = std::io::stderr().write_all(text.to_string().as_bytes());
}
