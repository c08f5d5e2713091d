//! The disk table of the Windows Performance Analyzer, exported as CSV: a header names the columns. Semicolons, tabs or
//! commas separate them, as the machine's language has it.
//!
//! Numbers have the form of the machine's language: a comma before decimals and dots between thousands, or the other
//! way round. Offsets are hexadecimal and in bytes, sizes in bytes, times in seconds since tracing began. `Flush` rows
//! have no offset.

use imbrex_units::Operation;

use crate::lines::LineReader;
use crate::options::TimeUnit;
use crate::table::{Layout, Operations, Role, Table};

use super::format::{Confidence, Format, Head};
use super::headed;

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "wpa",
    summary: "disk table of the Windows Performance Analyzer, as CSV",
    options: &["decimal"],
    detect: |head| if found(head).is_some() { Confidence::Yes } else { Confidence::No },
    open: |input, options| {
        let (delimiter, layout) = found(&Head::of(&input)).ok_or_else(|| {
            headed::missing(&input, "a header with IO Type, Min Offset, Size and Init Time, and lines of those columns")
        })?;
        let layout = Layout { decimal: options.decimal, ..layout };
        let (table, notes) = Table::open_input(layout, delimiter, &input)?;
        LineReader::open(input, options, table, notes)
    },
};

fn found(head: &Head<'_>) -> Option<(u8, Layout)> {
    b";\t,".iter().find_map(|&delimiter| Some((delimiter, layout(head, delimiter)?)))
}

/// Returns the columns that the header of `head` names, or `None` if it is not a header of this format.
fn layout(head: &Head<'_>, delimiter: u8) -> Option<Layout> {
    let names: Vec<String> = headed::names(head, delimiter)?.iter().map(|name| name.to_ascii_lowercase()).collect();
    let place = |word: &str| names.iter().position(|name| name.starts_with(word));
    let mut columns = vec![
        (place("io type")?, Role::Operation),
        (place("min offset")?, Role::Offset),
        (place("size")?, Role::Size),
        (place("init")?, Role::Time),
    ];
    let disk = names.iter().position(|name| name == "disk" || name == "disk number");
    columns.extend(disk.map(|disk| (disk, Role::Device)));
    let words = [("Read", Operation::Read), ("Write", Operation::Write), ("Flush", Operation::Flush)];
    let layout = headed::layout("wpa", &columns, Operations::codes(&words), TimeUnit::Seconds);
    Some(Layout { has_hexadecimal_offsets: true, has_marks_by_column: true, ..layout })
}

#[cfg(test)]
mod tests {
    //! Goal: localised numbers and flushes. Method: cases worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const TRACE: &str = "\u{feff}Line #;Process;IO Type;Min Offset;Max Offset;Size (B);Init Time (s);Complete Time (s);Disk\r\n\
        1;System (4);Write;0x1.000;;4.096;0,500000100;0,6;0\r\n\
        2;a.exe (8);Read;0x400;0x5ff;512;1,5;1,6;1\r\n\
        3;System (4);Flush;;;0;1,500000200;1,7;0\r\n";

    #[test]
    fn numbers_are_as_the_machines_language_has_them() {
        let trace = TRACE.replace("0x1.000", "0x1000");
        assert_eq!(format_of(trace.as_bytes()), Some("wpa"));
        let expected = [
            timed(0, 0, Command::write(8, 8)),
            timed(999_999_900, 1, Command::read(2, 1)),
            timed(1_000_000_100, 0, Command::flush()),
        ];
        assert_eq!(requests_of(&trace, &TraceOptions::default()), expected);
    }

    #[test]
    fn times_with_a_dot_before_their_decimals_are_no_larger() {
        let trace = TRACE
            .replace("0x1.000", "0x1000")
            .replace("0,500000100", "0.500000100")
            .replace("1,5;", "1.5;")
            .replace("1,5000", "1.5000");
        let times: Vec<_> = requests_of(&trace, &TraceOptions::default()).into_iter().take(2).collect();
        assert_eq!(times, [timed(0, 0, Command::write(8, 8)), timed(999_999_900, 1, Command::read(2, 1))]);
    }

    #[test]
    fn a_table_with_commas_has_quoted_numbers() {
        let trace = "IO Type,Min Offset,\"Size (B)\",Init Time (s),Disk\n\
            Write,0x1000,\"4,096\",0.500000100,0\nRead,0x400,512,\"1,000.5\",1\n";
        assert_eq!(format_of(trace.as_bytes()), Some("wpa"));
        let expected = [timed(0, 0, Command::write(8, 8)), timed(999_999_999_900, 1, Command::read(2, 1))];
        assert_eq!(requests_of(trace, &TraceOptions::default()), expected);
    }

    #[test]
    fn an_offset_that_is_none_is_an_error() {
        let error = error_of(TRACE, &TraceOptions::default());
        assert_eq!(error, "t, line 2: column 4 (offset): found «0x1.000», expected a hexadecimal number of 64 bits");
    }
}
