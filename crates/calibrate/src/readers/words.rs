//! Code shared by the text formats: numbers with units, and errors that name their line.

use imbrex_trace::TraceError;

/// Returns an error at `line` of `name`.
pub(super) fn wrong(name: &str, line: usize, expected: &str, found: &str) -> TraceError {
    let shown: String = found.chars().take(80).collect();
    TraceError::new(format!("{name}, line {line}"), format!("expected {expected}, found «{shown}»"))
}

/// Converts a decimal number in units of `unit_ns` to nanoseconds.
pub(super) fn time_ns(word: &str, unit_ns: f64) -> Option<u64> {
    let value = word.trim().parse::<f64>().ok()? * unit_ns;
    (value.is_finite() && (0.0..1e18).contains(&value)).then(|| value.round() as u64)
}
