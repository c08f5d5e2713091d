//! The block traces of two cloud providers. Each trace is a table of requests to many volumes, without a header.
//!
//! `alibaba`: `device,opcode,offset,length,timestamp`: the opcode is `R` or `W`, offset and length are in bytes, the
//! time is in microseconds. `tencent`: `timestamp,offset,size,type,volume`: the time is in whole seconds, offset and
//! size are in sectors, the type is 0 for a read and 1 for a write.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, byte_record, sector_record};
use crate::fields::{self, number};
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;

use super::format::{Confidence, Format, Head};

/// Entry of Alibaba's traces in the registry.
pub(super) const ALIBABA: Format = Format {
    name: "alibaba",
    summary: "Alibaba cloud block traces",
    detect: |head| if alibaba(head.first_line()).is_some() { Confidence::Yes } else { Confidence::No },
    open: |input, options| LineReader::open(input, options, Cloud::Alibaba, Vec::new()),
};

/// Entry of Tencent's traces in the registry.
pub(super) const TENCENT: Format = Format {
    name: "tencent",
    summary: "Tencent cloud block traces",
    detect: detect_tencent,
    open: |input, options| {
        let note = "times are whole seconds: requests of one second are all at its start".into();
        LineReader::open(input, options, Cloud::Tencent, vec![note])
    },
};

enum Cloud {
    Alibaba,
    Tencent,
}

/// The request of a row, with offset and size in the unit of its format.
struct Row {
    time_ns: u64,
    device: u32,
    operation: Operation,
    offset: u64,
    size: u64,
}

impl LineFormat for Cloud {
    fn parse(&mut self, line: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        let (row, expected) = match self {
            Cloud::Alibaba => (alibaba(line), "device,R|W,offset,length,timestamp"),
            Cloud::Tencent => (tencent(line), "timestamp,offset,size,0|1,volume"),
        };
        match (row, &self) {
            (Some(row), Cloud::Alibaba) => byte_record(row.time_ns, row.device, row.operation, row.offset, row.size),
            (Some(row), Cloud::Tencent) => sector_record(row.time_ns, row.device, row.operation, row.offset, row.size),
            (None, _) if line.trim_ascii().is_empty() => Ok(Parsed::Nothing),
            (None, _) => Err(Malformed::new(expected, line)),
        }
    }
}

fn alibaba(line: &[u8]) -> Option<Row> {
    let [device, kind, offset, length, time] = fields::split(line, b',')?;
    let operation = match kind {
        b"R" => Operation::Read,
        b"W" => Operation::Write,
        _ => return None,
    };
    let time_ns = fields::time_ns(time, TimeUnit::Microseconds)?;
    let device = u32::try_from(number(device)?).ok()?;
    Some(Row { time_ns, device, operation, offset: number(offset)?, size: number(length)? })
}

fn tencent(line: &[u8]) -> Option<Row> {
    let [time, offset, size, kind, volume] = fields::split(line, b',')?;
    let operation = match kind {
        b"0" => Operation::Read,
        b"1" => Operation::Write,
        _ => return None,
    };
    let time_ns = number(time)?.checked_mul(TimeUnit::Seconds.nanoseconds())?;
    let device = u32::try_from(number(volume)?).ok()?;
    Some(Row { time_ns, device, operation, offset: number(offset)?, size: number(size)? })
}

/// Returns whether the trace may be Tencent's. Rows of five numbers have no distinctive mark, so a hundred lines must
/// match, without a sixth column.
fn detect_tencent(head: &Head<'_>) -> Confidence {
    let fits = |line: &[u8]| tencent(line).is_some() && fields::split::<6>(line, b',').is_none();
    if !head.first_line().is_empty() && head.full_lines().take(100).all(fits) {
        Confidence::Maybe
    } else {
        Confidence::No
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the units of each provider. Method: cases worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    #[test]
    fn alibaba_counts_bytes_and_microseconds() {
        let trace = "419,W,8792731648,16384,1577808144360767\n725,R,512,513,1577808144360768\n";
        assert_eq!(format_of(trace.as_bytes()), Some("alibaba"));
        let expected = [timed(0, 419, Command::write(17_173_304, 32)), timed(1000, 725, Command::read(1, 2))];
        assert_eq!(requests_of(trace, &TraceOptions::default()), expected);
        let error = error_of(trace.replace(",R,", ",Q,"), &TraceOptions::default());
        assert_eq!(
            error,
            "t, line 2: expected device,R|W,offset,length,timestamp, found «725,Q,512,513,1577808144360768»"
        );
    }

    #[test]
    fn tencent_counts_sectors_and_seconds() {
        let trace = "1538323200,12910952,128,0,1063\n1538323202,6265688,8,1,1628\n";
        assert_eq!(format_of(trace.as_bytes()), Some("tencent"));
        let expected =
            [timed(0, 1063, Command::read(12_910_952, 128)), timed(2_000_000_000, 1628, Command::write(6_265_688, 8))];
        assert_eq!(requests_of(trace, &TraceOptions::default()), expected);
        let error = error_of(
            trace.replace(",1,1628", ",2,1628"),
            &TraceOptions { format: Some("tencent".into()), ..TraceOptions::default() },
        );
        assert!(error.starts_with("t, line 2: expected timestamp,offset,size,0|1,volume"), "{error}");
    }
}
