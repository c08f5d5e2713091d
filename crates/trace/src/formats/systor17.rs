//! The SYSTOR '17 traces: a header `Timestamp,Response,IOType,LUN,Offset,Size`, then one request a line. Timestamp and
//! response time are in seconds, the type is `R` or `W`, offset and size are in bytes.
//!
//! Lines with a blank type are not requests: they are counted and left out. Lines are sorted by completion, so many
//! times are earlier than the time of the previous line.

use imbrex_units::Operation;

use crate::lines::LineReader;
use crate::options::TimeUnit;
use crate::table::{self, Header, Layout, Operations, Role, words::Meaning};

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "systor17",
    summary: "CSV of the SYSTOR '17 traces",
    options: &[],
    detect,
    open: |input, options| LineReader::open_table(input, options, layout(), b','),
};

const HEADER: [&str; 6] = ["Timestamp", "Response", "IOType", "LUN", "Offset", "Size"];

fn layout() -> Layout {
    let code = |code: &str, operation| (code.as_bytes().to_vec(), Meaning::of(operation));
    let operations = Operations::Column {
        codes: vec![code("R", Operation::Read), code("W", Operation::Write)],
        has_words: false,
        is_no_request: <[u8]>::is_empty,
    };
    let roles =
        [Some(Role::Time), None, Some(Role::Operation), Some(Role::Device), Some(Role::Offset), Some(Role::Size)];
    Layout { header: Header::Expected, ..Layout::of("systor17", &roles, operations, TimeUnit::Seconds) }
}

fn detect(head: &Head<'_>) -> Confidence {
    match table::rows_of(head, b',', 1).first() {
        Some(row) if row.iter().take(HEADER.len()).eq(HEADER.map(str::as_bytes)) => Confidence::Yes,
        _ => Confidence::No,
    }
}

#[cfg(test)]
mod tests {
    //! Goal: lines with a blank type are left out and counted. Method: cases worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const TRACE: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n\
        1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
        1456095145.233076001,0.1,,0,,\n\
        1456095145.126285000,0.008044000,W,3,512,1024\n";

    #[test]
    fn blank_types_are_no_requests() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("systor17"));
        let expected = [timed(0, 0, Command::read(1_755_968_989, 256)), timed(0, 3, Command::write(1, 2))];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
        let facts = facts_of(TRACE, &TraceOptions::default());
        assert_eq!((facts.not_requests, facts.out_of_order), (1, 1));
    }

    #[test]
    fn another_type_is_an_error() {
        let error = error_of(TRACE.replace(",W,", ",X,"), &TraceOptions::default());
        assert_eq!(error, "t, line 4: column 3 (op): found «X», expected R or W");
    }
}
