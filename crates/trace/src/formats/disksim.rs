//! The ASCII traces of DiskSim: `time device block count flags`, separated by blanks. Block and count are in sectors,
//! flags are hexadecimal.
//!
//! The lowest bit of the flags distinguishes reads from writes, but converters disagree: `read_flag` of the options is
//! the value of the bit for a read. Times are in milliseconds, with decimals. MQSim and SSDsim write nanoseconds, which
//! `time_unit` of the options selects.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, sector_record};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;
use crate::table;

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "disksim",
    summary: "ASCII traces of DiskSim, MQSim, SSDsim",
    options: &["read-flag", "time-unit"],
    detect,
    open: |input, options| {
        let unit = options.time_unit.unwrap_or_else(|| plausible_unit(&Head::of(&input)));
        let read_flag = u64::from(options.read_flag.unwrap_or(1));
        let note =
            format!("times taken as {unit}, flags ending in {read_flag} as reads: --time-unit and --read-flag differ");
        LineReader::open(input, options, DiskSim { unit, read_flag }, vec![note])
    },
};

/// Number of requests in the head from which their mean gap describes the trace, rather than one pause.
const TIMES_ENOUGH: usize = 4;
/// Maximum mean gap of whole times in milliseconds: ten seconds. With larger gaps the times are nanoseconds.
const MEAN_GAP_MAX: u64 = 10_000;
/// Maximum mean gap in milliseconds if the head has fewer than [`TIMES_ENOUGH`] requests: one hour. A few requests may
/// have a pause between them, but hardly a longer one.
const PAUSE_MAX: u64 = 3_600_000;

/// Returns the unit of the times. DiskSim writes milliseconds with decimals. MQSim and SSDsim write whole nanoseconds;
/// taken as milliseconds, they would put minutes or hours between requests.
fn plausible_unit(head: &Head<'_>) -> TimeUnit {
    let first = |line: &[u8]| fields::words::<5>(line).map(|words| words[0].to_vec());
    let times: Vec<Vec<u8>> = head.full_lines().filter(|line| !line.starts_with(b"#")).filter_map(first).collect();
    let whole: Option<Vec<u64>> = times.iter().map(|time| fields::number(time)).collect();
    let Some(times) = whole.filter(|times| times.len() > 1) else { return TimeUnit::Milliseconds };
    let span = times.iter().max().zip(times.iter().min()).map_or(0, |(last, first)| last - first);
    let gap_max = if times.len() >= TIMES_ENOUGH { MEAN_GAP_MAX } else { PAUSE_MAX };
    let is_far = span / (times.len() as u64 - 1) > gap_max;
    if is_far { TimeUnit::Nanoseconds } else { TimeUnit::Milliseconds }
}

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
    let device = u32::try_from(table::whole(device)?).ok()?;
    let flags = fields::hexadecimal(flags)?;
    Some((table::time_ns(time, unit)?, device, table::whole(block)?, table::whole(count)?, flags))
}

/// Returns whether the trace may have this format. Rows of five numbers have no distinctive mark, so other formats take
/// precedence.
fn detect(head: &Head<'_>) -> Confidence {
    let line = head.full_lines().find(|line| !line.starts_with(b"#")).unwrap_or(&[]);
    let five = fields::words::<6>(line).is_none();
    if five && fields_of(line, TimeUnit::Milliseconds).is_some() { Confidence::Maybe } else { Confidence::No }
}

#[cfg(test)]
mod tests {
    //! Goal: the flag and the unit, on which converters disagree. Method: cases worked out by hand.

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
    fn whole_nanoseconds_are_not_taken_for_milliseconds() {
        let lines: String = (0..10).map(|at: u64| format!("{} 0 {at} 8 0\n", at * 13_600)).collect();
        let requests = requests_of(&lines, &TraceOptions::default());
        assert_eq!(requests[9], timed(9 * 13_600, 0, Command::write(9, 8)));
        // Whole numbers half a second apart, and any numbers with decimals, are milliseconds.
        let lines: String = (0..10).map(|at: u64| format!("{} 0 {at} 8 0\n", at * 500)).collect();
        assert_eq!(requests_of(&lines, &TraceOptions::default())[1], timed(500_000_000, 0, Command::write(1, 8)));
    }

    #[test]
    fn two_requests_may_be_an_hour_apart_and_no_more() {
        let second = |lines: &str| requests_of(lines, &TraceOptions::default())[1];
        // 5 ms in nanoseconds; taken as milliseconds, 1 h 23 min.
        assert_eq!(second("0 0 8 8 1\n5000000 0 8 8 0\n"), timed(5_000_000, 0, Command::write(8, 8)));
        // Times may begin at any value: only the gap counts.
        let begun = "9000000000000 0 8 8 1\n9000005000000 0 8 8 0\n";
        assert_eq!(second(begun), timed(5_000_000, 0, Command::write(8, 8)));
        // A gap of exactly an hour is a pause. So is any gap between times with decimals.
        let hour_ns = 3_600_000_000_000;
        assert_eq!(second("0 0 8 8 1\n3600000 0 8 8 0\n"), timed(hour_ns, 0, Command::write(8, 8)));
        assert_eq!(second("0.0 0 8 8 1\n7200000.0 0 8 8 0\n"), timed(2 * hour_ns, 0, Command::write(8, 8)));
    }

    #[test]
    fn a_missing_field_is_an_error() {
        let error = error_of(format!("{TRACE}3 0 1\n"), &TraceOptions::default());
        assert_eq!(error, "t, line 4: expected time device block count flags, found «3 0 1»");
    }
}
