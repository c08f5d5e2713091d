//! Microsoft's production server traces: events of Windows (ETW) as text, after a header from `BeginHeader` to
//! `EndHeader`.
//!
//! ```text
//!   DiskWrite, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, …
//! ```
//!
//! Times are in microseconds, and are times of completion: a request was issued earlier by its elapsed time. Offset and
//! size are hexadecimal, in bytes. The name of a process may contain commas; the bracket after the process number ends
//! it.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, byte_record};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;

use super::format::{Confidence, Format};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "msps-etw",
    summary: "Microsoft production server traces: events of Windows as text",
    options: &[],
    detect: |head| match head.first_line().trim_ascii() {
        b"BeginHeader" => Confidence::Yes,
        _ => Confidence::No,
    },
    open: |input, options| LineReader::open(input, options, Events::default(), Vec::new()),
};

const EXPECTED: &str =
    "DiskRead or DiskWrite, TimeStamp, Process (PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum";

#[derive(Default)]
struct Events {
    is_in_header: bool,
}

impl LineFormat for Events {
    fn parse(&mut self, line: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        match line.trim_ascii() {
            b"" => return Ok(Parsed::Nothing),
            b"BeginHeader" => self.is_in_header = true,
            b"EndHeader" => {
                self.is_in_header = false;
                return Ok(Parsed::Nothing);
            }
            _ => {}
        }
        if self.is_in_header {
            return Ok(Parsed::Nothing);
        }
        let word = line.split(|&byte| byte == b',').next().unwrap_or(line).trim_ascii();
        let operation = match word {
            b"DiskRead" => Operation::Read,
            b"DiskWrite" => Operation::Write,
            // Other events: file operations, flushes without an offset, starts and ends of processes.
            _ => return Ok(Parsed::NotRequest),
        };
        request(operation, line).unwrap_or_else(|| Err(Malformed::new(EXPECTED, line)))
    }
}

fn request(operation: Operation, line: &[u8]) -> Option<Result<Parsed, Malformed>> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
    let process_end = fields.iter().skip(2).position(|field| field.ends_with(b")"))? + 2;
    let field = |after: usize| fields.get(process_end + after).copied();
    let time_ns = fields::time_ns(fields.get(1)?, TimeUnit::Microseconds)?;
    let elapsed_ns = fields::time_ns(field(5)?, TimeUnit::Microseconds)?;
    let (offset, bytes) = (hexadecimal(field(3)?)?, hexadecimal(field(4)?)?);
    let disk = u32::try_from(fields::number(field(6)?)?).ok()?;
    // A request in flight when tracing began was issued before time 0: its time becomes 0.
    Some(byte_record(time_ns.saturating_sub(elapsed_ns), disk, operation, offset, bytes))
}

/// Parses a hexadecimal number with or without `0x`.
pub(super) fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"0x").or_else(|| word.strip_prefix(b"0X")).unwrap_or(word);
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    //! Goal: the header is skipped, commas in names do not separate fields, times are those of issue. Method: cases
    //! worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const TRACE: &str = "BeginHeader\n DiskRead, TimeStamp, Process Name ( PID), ThreadID\nEndHeader\n\
        OS Version: 6.0.6001, Trace Size: 1KB\n\
        DiskRead,  1000,  System (   4),  2008, 0xfa80, 0x0000001000, 0x00000200,  100,  1, 0x60043\n\
        FileIo, 1100, System (   4)\n\
        DiskWrite,  2500,  a, b.exe ( 812),  4, 0xfa81, 0x400, 0x1000,  600,  0, 0x60043, 12, Normal\n";

    #[test]
    fn requests_are_issued_before_they_complete() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("msps-etw"));
        let expected = [timed(0, 1, Command::read(8, 1)), timed(1_000_000, 0, Command::write(2, 8))];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
    }

    #[test]
    fn an_offset_that_is_none_is_an_error() {
        let error = error_of(TRACE.replace("0x400", "here"), &TraceOptions::default());
        assert!(error.starts_with("t, line 7: expected DiskRead or DiskWrite"), "{error}");
    }
}
