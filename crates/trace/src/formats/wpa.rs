//! The disk table of the Windows Performance Analyzer, exported as CSV: semicolons separate the columns, a header names
//! them.
//!
//! Numbers have the form of the machine's language: a comma before decimals, dots between thousands. Offsets are
//! hexadecimal and in bytes, sizes in bytes, times in seconds since tracing began. `Flush` rows have no offset.

use imbrex_units::Operation;

use crate::admission::{Malformed, Parsed, byte_record};
use crate::fields;
use crate::lines::LineReader;
use crate::options::TimeUnit;

use super::format::{Confidence, Format};
use super::headed::{Headed, Header};
use super::msps_etw::hexadecimal;

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "wpa",
    summary: "disk table of the Windows Performance Analyzer, as CSV",
    detect: |head| match Columns::of(head.first_line()) {
        Some(_) => Confidence::Yes,
        None => Confidence::No,
    },
    open: |input, options| LineReader::open(input, options, Headed::<Columns>::new(), Vec::new()),
};

/// Positions of the columns.
#[derive(Clone, Copy)]
struct Columns {
    operation: usize,
    offset: usize,
    size: usize,
    init: usize,
    disk: Option<usize>,
}

impl Header for Columns {
    const EXPECTED: &'static str =
        "a header with IO Type, Min Offset, Size and Init Time between semicolons, and lines of those columns";

    fn of(header: &[u8]) -> Option<Columns> {
        let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header);
        let names: Vec<String> =
            columns(header).map(|name| String::from_utf8_lossy(name).trim_matches('"').to_ascii_lowercase()).collect();
        let place = |word: &str| names.iter().position(|name| name.starts_with(word));
        Some(Columns {
            operation: place("io type")?,
            offset: place("min offset")?,
            size: place("size")?,
            init: place("init")?,
            disk: names.iter().position(|name| name == "disk" || name == "disk number"),
        })
    }

    fn request(self, line: &[u8]) -> Option<Result<Parsed, Malformed>> {
        let field = |place: usize| columns(line).nth(place);
        let time_ns = international_time_ns(field(self.init)?, TimeUnit::Seconds)?;
        let disk = match self.disk {
            Some(place) => u32::try_from(fields::number(field(place)?)?).ok()?,
            None => 0,
        };
        let operation = match field(self.operation)? {
            b"Read" => Operation::Read,
            b"Write" => Operation::Write,
            b"Flush" => return Some(byte_record(time_ns, disk, Operation::Flush, 0, 0)),
            _ => return None,
        };
        let bytes = fields::number(&international(field(self.size)?))?;
        Some(byte_record(time_ns, disk, operation, hexadecimal(field(self.offset)?)?, bytes))
    }
}

fn columns(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b';').map(<[u8]>::trim_ascii)
}

/// Converts `1.234,5` to `1234.5`: removes dots between thousands and turns the decimal comma into a dot.
pub(super) fn international(word: &[u8]) -> Vec<u8> {
    let word = word.iter().filter(|byte| !matches!(byte, b'.' | b'"'));
    word.map(|&byte| if byte == b',' { b'.' } else { byte }).collect()
}

/// Parses a time. If it has a comma, decimals follow the comma, and dots separate thousands. Otherwise decimals follow
/// the dot.
pub(super) fn international_time_ns(word: &[u8], unit: TimeUnit) -> Option<u64> {
    if word.contains(&b',') {
        return fields::time_ns(&international(word), unit);
    }
    fields::time_ns(word, unit)
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
        let trace = TRACE.replace("0x1.000", "0x1000").replace("0,500000100", "0.500000100").replace("1,5;", "1.5;");
        let times: Vec<_> = requests_of(&trace, &TraceOptions::default()).into_iter().take(2).collect();
        assert_eq!(times, [timed(0, 0, Command::write(8, 8)), timed(999_999_900, 1, Command::read(2, 1))]);
    }

    #[test]
    fn an_offset_that_is_none_is_an_error() {
        let error = error_of(TRACE, &TraceOptions::default());
        assert!(error.starts_with("t, line 2: expected a header with IO Type"), "{error}");
    }
}
