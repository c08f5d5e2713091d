//! The ASCII traces of DiskSim: `time device block count flags`, between blanks; block and count in sectors, flags in base
//! sixteen.
//!
//! The lowest bit of the flags means a read, but converters disagree: `read_flag` of the options says which value does.
//! Time is in milliseconds, with decimals; MQSim and SSDsim write nanoseconds: `time_unit` says so.

use imbrex_units::Operation;

use crate::admission::{sector_record, Devices, Malformed, Parsed};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;

use super::format::{Confidence, Format, Head};

/// The registry's entry.
pub const FORMAT: Format = Format {
    name: "disksim",
    summary: "ASCII traces of DiskSim, MQSim, SSDsim",
    detect,
    open: |input, options| {
        let unit = options.time_unit.unwrap_or(TimeUnit::Milliseconds);
        let read_flag = u64::from(options.read_flag.unwrap_or(1));
        let note =
            format!("times taken as {unit}, flags ending in {read_flag} as reads: --time-unit and --read-flag differ");
        LineReader::open(input, options, DiskSim { unit, read_flag }, vec![note])
    },
};

struct DiskSim {
    unit: TimeUnit,
    read_flag: u64,
}

impl LineFormat for DiskSim {
    fn parse(&mut self, line: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        match fields_of(line, self.unit) {
            Some((time_ns, device, block, count, flags)) => {
                let read = flags & 1 == self.read_flag;
                sector_record(time_ns, device, if read { Operation::Read } else { Operation::Write }, block, count)
            }
            None if line.trim_ascii().is_empty() || line.starts_with(b"#") => Ok(Parsed::Nothing),
            None => Err(Malformed::new("time device block count flags", line)),
        }
    }
}

fn fields_of(line: &[u8], unit: TimeUnit) -> Option<(u64, u32, u64, u64, u64)> {
    let [time, device, block, count, flags] = fields::words(line)?;
    let device = u32::try_from(fields::number(device)?).ok()?;
    let flags = fields::hexadecimal(flags)?;
    Some((fields::time_ns(time, unit)?, device, fields::number(block)?, fields::number(count)?, flags))
}

/// Five numbers bear no mark: other formats are asked first.
fn detect(head: &Head<'_>) -> Confidence {
    let line = head.full_lines().find(|line| !line.starts_with(b"#")).unwrap_or(&[]);
    let five = fields::words::<6>(line).is_none();
    if five && fields_of(line, TimeUnit::Milliseconds).is_some() {
        Confidence::Maybe
    } else {
        Confidence::No
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the flag and the unit that converters disagree about. Method: worked by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, format_of, requests_of, timed};
    use crate::options::{TimeUnit, TraceOptions};

    const TRACE: &str = "0.000000 0 4096 8 1\n0.500001 1 16  2 0\n2 0 0 1 1\n";

    #[test]
    fn a_set_bit_is_a_read() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("disksim"));
        let expected = [
            timed(0, 0, Command::read(4096, 8)),
            timed(500_001, 1, Command::write(16, 2)),
            timed(2_000_000, 0, Command::read(0, 1)),
        ];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
    }

    #[test]
    fn flag_and_unit_can_be_told() {
        let time_unit = Some(TimeUnit::Nanoseconds);
        let options = TraceOptions { read_flag: Some(0), time_unit, ..TraceOptions::default() };
        let expected = [timed(0, 0, Command::write(7, 1)), timed(90, 0, Command::read(7, 1))];
        assert_eq!(requests_of("10 0 7 1 1\n100 0 7 1 0\n", &options), expected);
    }

    #[test]
    fn a_missing_field_is_an_error() {
        let error = error_of(format!("{TRACE}3 0 1\n"), &TraceOptions::default());
        assert_eq!(error, "t, line 4: expected time device block count flags, found «3 0 1»");
    }
}
