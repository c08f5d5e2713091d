//! Traces of the Storage Performance Council, in the form of the UMass repository: `ASU,LBA,Size,Opcode,Timestamp[,…]`.
//!
//! Each application storage unit (ASU) has its own address space, and so is a device here. The LBA is in blocks of 512
//! bytes within the ASU. The size is in bytes, the opcode is `r` or `w` in any case, the time is in seconds from the
//! start. A size of 0 is legal, but such a line is not a request.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, SECTOR_BYTES, sector_record};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "spc",
    summary: "Storage Performance Council traces (UMass)",
    detect,
    open: |input, options| LineReader::open(input, options, Spc, Vec::new()),
};

struct Spc;

impl LineFormat for Spc {
    fn parse(&mut self, line: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        match fields_of(line) {
            Some((_, _, _, 0, _)) => Ok(Parsed::NotRequest),
            Some((time_ns, device, lba, bytes, operation)) => {
                sector_record(time_ns, device, operation, lba, bytes.div_ceil(SECTOR_BYTES))
            }
            None if line.trim_ascii().is_empty() => Ok(Parsed::Nothing),
            None => Err(Malformed::new("ASU,LBA,Size,Opcode,Timestamp", line)),
        }
    }
}

fn fields_of(line: &[u8]) -> Option<(u64, u32, u64, u64, Operation)> {
    let [asu, lba, size, opcode, time] = fields::split(line, b',')?;
    let operation = match opcode {
        b"r" | b"R" => Operation::Read,
        b"w" | b"W" => Operation::Write,
        _ => return None,
    };
    let device = u32::try_from(fields::number(asu)?).ok()?;
    let time_ns = fields::time_ns(time, TimeUnit::Seconds)?;
    Some((time_ns, device, fields::number(lba)?, fields::number(size)?, operation))
}

fn detect(head: &Head<'_>) -> Confidence {
    match fields_of(head.first_line()) {
        Some(_) => Confidence::Yes,
        None => Confidence::No,
    }
}

#[cfg(test)]
mod tests {
    //! Goal: ASUs are devices, opcodes have any case, lines of size 0 are not requests. Method: cases worked out by
    //! hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::{Device, TraceOptions};

    const TRACE: &str = "0,20941264,8192,W,0.551706,extra\n1,20939840,8192,r,0.554041\n0,5,0,W,0.6\n1,1,513,w,1.0\n";

    #[test]
    fn storage_units_are_devices() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("spc"));
        let expected = [
            timed(0, 0, Command::write(20_941_264, 16)),
            timed(2_335_000, 1, Command::read(20_939_840, 16)),
            timed(448_294_000, 1, Command::write(1, 2)),
        ];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
        assert_eq!(facts_of(TRACE, &TraceOptions::default()).not_requests, 1);
        let options = TraceOptions { device: Some(Device::Number(0)), ..TraceOptions::default() };
        assert_eq!(requests_of(TRACE, &options), expected[..1]);
    }

    #[test]
    fn another_opcode_is_an_error() {
        let error = error_of(TRACE.replace("r,", "x,"), &TraceOptions::default());
        assert!(error.starts_with("t, line 2: expected ASU,LBA,Size,Opcode,Timestamp"), "{error}");
    }
}
