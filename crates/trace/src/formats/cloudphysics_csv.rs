//! CloudPhysics traces as CSV: a header `version,time,op,size,lbn`, then one SCSI command a line. The operation is the
//! SCSI operation code in hexadecimal, the size is in bytes, lbn is in sectors.
//!
//! Public copies have times in seconds or in microseconds. The unit is seconds if a time has a decimal point. It is
//! microseconds if the first time is a date in microseconds. Otherwise the mean gap between the requests of the head
//! decides. The notes report the choice, and `time_unit` of the options overrides it.

use crate::admission::SECTOR_BYTES;
use crate::fields;
use crate::lines::LineReader;
use crate::options::TimeUnit;
use crate::table::{self, Header, Layout, Operations, Role, Table};

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "cloudphysics-csv",
    summary: "CloudPhysics traces as CSV (version,time,op,size,lbn)",
    options: &["time-unit"],
    detect,
    open: |input, options| {
        let (unit, why) = match options.time_unit {
            Some(unit) => (unit, "the unit that was given"),
            None => unit_of(&Head::of(&input)),
        };
        let note = format!("times taken as {unit}: {why}");
        let (table, notes) = Table::open_input(layout(unit), b',', &input)?;
        LineReader::open(input, options, table, [vec![note], notes].concat())
    },
};

const HEADER: [&str; 5] = ["version", "time", "op", "size", "lbn"];

fn layout(time_unit: TimeUnit) -> Layout {
    let roles = [None, Some(Role::Time), Some(Role::Operation), Some(Role::Size), Some(Role::Offset)];
    let header = Header::Expected;
    Layout { offset_unit: SECTOR_BYTES, header, ..Layout::of("cloudphysics-csv", &roles, Operations::Scsi, time_unit) }
}

/// Maximum mean gap, in units of the times, at which the times are seconds: above, requests would be over a minute
/// apart. As microseconds, smaller gaps would mean a request every 60 µs, too fast for any traced machine.
const GAP_UNITS_MAX_OF_SECONDS: u64 = 60;

/// Minimum of a first time that is a date in microseconds. In seconds, the date would lie three million years ahead.
const DATE_US_MIN: u64 = 100_000_000_000_000;

fn detect(head: &Head<'_>) -> Confidence {
    match table::rows_of(head, b',', 1).first() {
        Some(row) if row.iter().eq(HEADER.map(str::as_bytes)) => Confidence::Yes,
        _ => Confidence::No,
    }
}

/// Returns the unit of the times of a trace with this head, and the reason for the choice.
fn unit_of(head: &Head<'_>) -> (TimeUnit, &'static str) {
    let rows = table::rows_of(head, b',', table::HEAD_ROWS);
    let times = || rows.iter().skip(1).filter_map(|row| row.get(1)).map(Vec::as_slice);
    if times().any(|time| time.contains(&b'.')) {
        return (TimeUnit::Seconds, "they have decimals");
    }
    let whole: Vec<u64> = times().filter_map(fields::number).collect();
    let (Some(first), Some(least), Some(most)) = (whole.first(), whole.iter().min(), whole.iter().max()) else {
        return (TimeUnit::Microseconds, "there are none in the head");
    };
    if *first >= DATE_US_MIN {
        (TimeUnit::Microseconds, "the first is a date in microseconds")
    } else if (most - least) / whole.len() as u64 > GAP_UNITS_MAX_OF_SECONDS {
        (TimeUnit::Microseconds, "in seconds, requests would be minutes apart")
    } else {
        (TimeUnit::Seconds, "in microseconds, requests would come faster than a disk can take")
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the unit of the times is recognised. Method: three requests, in every form found in public copies.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::{TimeUnit, TraceOptions};

    fn trace(times: [&str; 3]) -> String {
        let [first, second, third] = times;
        format!("version,time,op,size,lbn\n1,{first},2a,4096,100\n1,{second},0x28,512,7\n1,{third},12,36,0\n")
    }

    #[test]
    fn the_unit_of_the_time_is_found_out() {
        for (times, said) in [
            (["5", "7", "9"], "times taken as s"),
            (["5.0", "7.0", "1000.0"], "times taken as s"),
            (["5000000", "7000000", "9000000"], "times taken as us"),
            (["1400000000000000", "1400000002000000", "1400000002000001"], "times taken as us"),
        ] {
            let trace = trace(times);
            assert_eq!(format_of(trace.as_bytes()), Some("cloudphysics-csv"));
            let expected = [timed(0, 0, Command::write(100, 8)), timed(2_000_000_000, 0, Command::read(7, 1))];
            assert_eq!(requests_of(&trace, &TraceOptions::default()), expected, "{times:?}");
            let facts = facts_of(&trace, &TraceOptions::default());
            assert!(facts.notes[0].starts_with(said), "{:?}", facts.notes);
            assert_eq!(facts.not_requests, 1);
        }
    }

    #[test]
    fn the_unit_can_be_told() {
        let options = TraceOptions { time_unit: Some(TimeUnit::Milliseconds), ..TraceOptions::default() };
        assert_eq!(requests_of(trace(["5", "7", "9"]), &options)[1], timed(2_000_000, 0, Command::read(7, 1)));
    }

    #[test]
    fn a_bad_field_is_an_error() {
        let error = error_of(trace(["5", "x", "9"]), &TraceOptions::default());
        assert_eq!(error, "t, line 3: column 2 (time): «x» is not a number");
    }
}
