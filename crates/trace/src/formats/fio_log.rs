//! The logs that fio writes with `write_lat_log` and its siblings: `time, value, direction, block size, offset, …`. They
//! have an offset only if fio ran with `log_offset=1`.
//!
//! Times are in milliseconds since the start, the direction is 0 for a read, 1 for a write and 2 for a trim, block size
//! and offset are in bytes. fio writes a line when a request completes, so these are times of completion.

use imbrex_units::Operation;

use crate::lines::LineReader;
use crate::options::TimeUnit;
use crate::request::TraceError;
use crate::table::{self, Layout, Operations, Role, Table};

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "fio-log",
    summary: "logs of fio with offsets (write_lat_log and log_offset=1)",
    options: &[],
    detect,
    open: |input, options| {
        if !has_offsets(&Head::of(&input)) {
            let reason = "the log has no offsets: run fio with log_offset=1";
            return Err(TraceError::new(input.name.clone(), reason));
        }
        let (table, mut notes) = Table::open_input(layout(), b',', &input)?;
        notes.push("times are those of completion, in whole milliseconds".into());
        LineReader::open(input, options, table, notes)
    },
};

fn layout() -> Layout {
    let codes = [("0", Operation::Read), ("1", Operation::Write), ("2", Operation::Trim)];
    let roles = [Some(Role::Time), None, Some(Role::Operation), Some(Role::Size), Some(Role::Offset)];
    Layout::of("fio-log", &roles, Operations::codes(&codes), TimeUnit::Milliseconds)
}

/// Returns whether the fifth column holds offsets. Without offsets, it holds the priority, which is small.
fn has_offsets(head: &Head<'_>) -> bool {
    const BYTES_MIN: u64 = 512;
    let is_offset = |field: &Vec<u8>| crate::fields::number(field).is_some_and(|number| number >= BYTES_MIN);
    table::rows_of(head, b',', table::HEAD_ROWS).iter().any(|row| row.len() > 5 || row.get(4).is_some_and(is_offset))
}

/// Returns whether the trace is such a log: fio writes a blank behind each comma, and times never decrease by much.
fn detect(head: &Head<'_>) -> Confidence {
    let is_spaced = |line: &[u8]| line.windows(2).filter(|pair| pair[0] == b',').all(|pair| pair[1] == b' ');
    let is_log = head.full_lines().take(100).all(is_spaced) && table::fits(layout(), b',', head, 100);
    if is_log { Confidence::Maybe } else { Confidence::No }
}

#[cfg(test)]
mod tests {
    //! Goal: directions, units, and the refusal of logs without offsets. Method: lines of fio 3, worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const LOG: &str = "0, 85678, 0, 4096, 8192, 0\n2, 91234, 1, 512, 0, 0\n5, 1000, 2, 65536, 1048576, 0\n";

    #[test]
    fn directions_and_units() {
        assert_eq!(format_of(LOG.as_bytes()), Some("fio-log"));
        let expected = [
            timed(0, 0, Command::read(16, 8)),
            timed(2_000_000, 0, Command::write(0, 1)),
            timed(5_000_000, 0, Command::trim(2048, 128)),
        ];
        assert_eq!(requests_of(LOG, &TraceOptions::default()), expected);
    }

    #[test]
    fn a_log_without_offsets_is_refused() {
        let log = "0, 85678, 0, 4096, 0\n2, 91234, 1, 512, 0\n";
        assert_eq!(error_of(log, &TraceOptions::default()), "t: the log has no offsets: run fio with log_offset=1");
    }

    #[test]
    fn another_direction_is_an_error() {
        let options = TraceOptions { format: Some("fio-log".into()), ..TraceOptions::default() };
        let error = error_of(LOG.replace(", 1, 512", ", 3, 512"), &options);
        assert_eq!(error, "t, line 2: column 3 (op): found «3», expected 0 or 1 or 2");
    }
}
