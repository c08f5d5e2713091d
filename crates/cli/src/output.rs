//! Standard output: data only. A reader that goes away (`| head`) is no error.

use std::io::Write;

use imbrex::Failure;

/// Prints one line, or several.
pub fn line(text: &str) -> Result<(), Failure> {
    part(&format!("{text}\n"))
}

/// Prints a part of a line, or of several.
pub fn part(text: &str) -> Result<(), Failure> {
    match write!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::failed(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Columns that there are for a table: as `COLUMNS` says, or those of the terminal that standard output is, if it is one.
pub fn terminal_columns() -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if let Some(columns) = told.filter(|&columns| columns > 0) {
        return Some(columns);
    }
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(columns))
}
