//! Standard output, for data only.
//!
//! If standard output fails, because the reader of a pipe has left (`| head`) or a disk is full, the rest of the text is
//! dropped, and the command goes on: neither its changes of files nor its exit code depend on a reader. A command that
//! would succeed then ends with [`ExitCode::Output`]. Commands that print as they read, possibly
//! for hours, call [`check`] after each line and stop.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

use imbrex::Failure;
use serde_json::Value;

use crate::error::ExitCode;

/// First error of standard output.
static ERROR: OnceLock<std::io::Error> = OnceLock::new();

/// Returns the command line of this process, with the program as `imbrex`, without its path. Bytes that are not UTF-8
/// become the replacement character.
pub(crate) fn command_line() -> Vec<String> {
    let given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("imbrex".to_string()).chain(given).collect()
}

/// Prints `text` and a line feed. The text may have several lines.
pub(crate) fn line(text: &str) {
    part(&format!("{text}\n"));
}

/// Prints `text` without a line feed at its end.
pub(crate) fn part(text: &str) {
    bytes(text.as_bytes());
}

/// Prints the bytes of another program as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    if ERROR.get().is_some() {
        return;
    }
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // Another thread may have recorded its error meanwhile: then that one counts.
        let _ = ERROR.set(error);
    }
}

/// Prints `document` as JSON, indented, with the notices of this command ([`with_warnings`]).
pub(crate) fn json(document: &impl serde::Serialize) -> Result<(), Failure> {
    line(&serde_json::to_string_pretty(&with_warnings(document)?).map_err(Failure::failed)?);
    Ok(())
}

/// Returns `document` as JSON. If it is an object with a schema, its list `warnings` has the notices of this command,
/// after those that it has already.
pub(crate) fn with_warnings(document: &impl serde::Serialize) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(document).map_err(Failure::failed)?;
    if let Some(fields) = value.as_object_mut().filter(|fields| fields.contains_key("schema")) {
        let warnings = fields.entry("warnings").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(warnings) = warnings.as_array_mut() {
            for notice in crate::message::notices().into_iter().map(Value::String) {
                if !warnings.contains(&notice) {
                    warnings.push(notice);
                }
            }
        }
    }
    Ok(value)
}

/// Returns an error that ends the command if standard output has failed.
pub(crate) fn check() -> Result<(), Failure> {
    match ERROR.get() {
        Some(error) => Err(Failure::failed(described(error))),
        None => Ok(()),
    }
}

/// Returns whether `failure` is one that [`check`] returned.
pub(crate) fn is_of_check(failure: &Failure) -> bool {
    ERROR.get().is_some_and(|error| failure.message == described(error))
}

/// Returns the exit code of a command that ends with `code`. If standard output has failed, prints the error, unless only
/// the reader has left.
pub(crate) fn finished(code: ExitCode) -> ExitCode {
    let Some(error) = ERROR.get() else { return code };
    if error.kind() != ErrorKind::BrokenPipe {
        message!("imbrex: {}", described(error));
    }
    if code == ExitCode::Done { ExitCode::Output } else { code }
}

fn described(error: &std::io::Error) -> String {
    format!("cannot write to standard output: {error}")
}

/// Returns the number of columns for a table: the value of `COLUMNS`, or else the width of the terminal on standard
/// output, if there is one.
pub(crate) fn terminal_columns() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if let Some(columns) = told.filter(|&columns| columns > 0) {
        return Some(columns);
    }
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(columns))
}
