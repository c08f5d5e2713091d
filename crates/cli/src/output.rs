//! Standard output, for data only. If its reader has closed the pipe (`| head`), the program ends without an error.

use std::io::Write;

use imbrex::Failure;

/// Prints `text` and a line feed. The text may have several lines.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    part(&format!("{text}\n"))
}

/// Prints `text` without a line feed at its end.
pub(crate) fn part(text: &str) -> Result<(), Failure> {
    match write!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::failed(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
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
