//! The block traces of two cloud providers. Each trace is a table of requests to many volumes, with or without a header.
//!
//! `alibaba`: `device,opcode,offset,length,timestamp`: the opcode is `R` or `W`, offset and length are in bytes, the
//! time is in microseconds. `tencent`: `timestamp,offset,size,type,volume`: the time is in whole seconds, offset and
//! size are in sectors, the type is 0 for a read and 1 for a write.

use imbrex_units::Operation;

use crate::admission::SECTOR_BYTES;
use crate::lines::LineReader;
use crate::options::TimeUnit;
use crate::table::{self, Columns, Layout, Operations, Role, Table};

use super::format::{Confidence, Format, Head};

/// Entry of Alibaba's traces in the registry.
pub(super) const ALIBABA: Format = Format {
    name: "alibaba",
    summary: "Alibaba cloud block traces",
    options: &[],
    detect: |head| if table::fits(alibaba(), b',', head, 1) { Confidence::Yes } else { Confidence::No },
    open: |input, options| LineReader::open_table(input, options, alibaba(), b','),
};

/// Entry of Tencent's traces in the registry.
pub(super) const TENCENT: Format = Format {
    name: "tencent",
    summary: "Tencent cloud block traces",
    options: &[],
    detect: detect_tencent,
    open: |input, options| {
        let (table, mut notes) = Table::open_input(tencent(), b',', &input)?;
        notes.push("times are whole seconds: requests of one second are all at its start".into());
        LineReader::open(input, options, table, notes)
    },
};

fn alibaba() -> Layout {
    use Role::{Device, Offset, Operation as Op, Size, Time};
    let operations = Operations::codes(&[("R", Operation::Read), ("W", Operation::Write)]);
    let roles = [Some(Device), Some(Op), Some(Offset), Some(Size), Some(Time)];
    Layout::of("alibaba", &roles, operations, TimeUnit::Microseconds)
}

fn tencent() -> Layout {
    use Role::{Device, Offset, Operation as Op, Size, Time};
    let operations = Operations::codes(&[("0", Operation::Read), ("1", Operation::Write)]);
    let roles = [Some(Time), Some(Offset), Some(Size), Some(Op), Some(Device)];
    Layout {
        columns: Columns::Exactly(roles.len()),
        offset_unit: SECTOR_BYTES,
        size_unit: SECTOR_BYTES,
        ..Layout::of("tencent", &roles, operations, TimeUnit::Seconds)
    }
}

/// Returns whether the trace may be Tencent's. Rows of five numbers have no distinctive mark, so a hundred lines must
/// match, without a sixth column.
fn detect_tencent(head: &Head<'_>) -> Confidence {
    if table::fits(tencent(), b',', head, 100) { Confidence::Maybe } else { Confidence::No }
}

#[cfg(test)]
mod tests {
    //! Goal: the units of each provider. Method: cases worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    #[test]
    fn alibaba_counts_bytes_and_microseconds() {
        let trace = "419,W,8792731648,16384,1577808144360767\n725,R,512,513,1577808144360768\n";
        assert_eq!(format_of(trace.as_bytes()), Some("alibaba"));
        let expected = [timed(0, 419, Command::write(17_173_304, 32)), timed(1000, 725, Command::read(1, 2))];
        assert_eq!(requests_of(trace, &TraceOptions::default()), expected);
        let error = error_of(trace.replace(",R,", ",Q,"), &TraceOptions::default());
        assert_eq!(error, "t, line 2: column 2 (op): found «Q», expected R or W");
    }

    #[test]
    fn published_headers_are_skipped_and_told() {
        for (header, rows, name) in [
            ("device_id,opcode,offset,length,timestamp", "4,W,512,512,7\n", "alibaba"),
            ("Timestamp,Offset,Size,IOType,VolumeID", "7,1,1,1,4\n", "tencent"),
        ] {
            let trace = format!("{header}\n{rows}{header}\n{rows}");
            assert_eq!(format_of(trace.as_bytes()), Some(name));
            assert_eq!(requests_of(&trace, &TraceOptions::default()), [timed(0, 4, Command::write(1, 1)); 2]);
            let notes = facts_of(&trace, &TraceOptions::default()).notes;
            assert!(
                notes[0].contains("the first row is a header and skipped") && notes[0].contains(header),
                "{notes:?}"
            );
        }
        let options = TraceOptions { format: Some("alibaba".into()), ..TraceOptions::default() };
        let error = error_of("device_id,opcode,length,offset,timestamp\n4,W,512,512,7\n", &options);
        assert!(error.starts_with("t: the header calls column 3 «length», where alibaba has the offset"), "{error}");
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
        assert_eq!(error, "t, line 2: column 4 (op): found «2», expected 0 or 1");
    }
}
