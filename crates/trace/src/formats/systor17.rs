//! The SYSTOR '17 traces: a header `Timestamp,Response,IOType,LUN,Offset,Size`, then one request a line. Timestamp and
//! response time are in seconds, the type is `R` or `W`, offset and size are in bytes.
//!
//! Lines with a blank type are not requests: they are counted and left out. Lines are sorted by completion, so many
//! times are earlier than the time of the previous line.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, byte_record};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "systor17",
    summary: "CSV of the SYSTOR '17 traces",
    detect,
    open: |input, options| LineReader::open(input, options, Systor, Vec::new()),
};

const HEADER: [&[u8]; 6] = [b"Timestamp", b"Response", b"IOType", b"LUN", b"Offset", b"Size"];

struct Systor;

impl LineFormat for Systor {
    fn parse(&mut self, line: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        let malformed = || Malformed::new("Timestamp,Response,IOType,LUN,Offset,Size", line);
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let row = fields::split::<6>(line, b',').ok_or_else(malformed)?;
        match row {
            HEADER => Ok(Parsed::Nothing),
            [_, _, b"", ..] => Ok(Parsed::NotRequest),
            _ => request(row).unwrap_or_else(|| Err(malformed())),
        }
    }
}

fn request([time, _response, kind, unit, offset, size]: [&[u8]; 6]) -> Option<Result<Parsed, Malformed>> {
    let operation = match kind {
        b"R" | b"r" => Operation::Read,
        b"W" | b"w" => Operation::Write,
        _ => return None,
    };
    let time_ns = fields::time_ns(time, TimeUnit::Seconds)?;
    let device = u32::try_from(fields::number(unit)?).ok()?;
    Some(byte_record(time_ns, device, operation, fields::number(offset)?, fields::number(size)?))
}

fn detect(head: &Head<'_>) -> Confidence {
    match fields::split::<6>(head.first_line(), b',') {
        Some(HEADER) => Confidence::Yes,
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
        assert!(error.starts_with("t, line 4: expected Timestamp,Response,IOType"), "{error}");
    }
}
