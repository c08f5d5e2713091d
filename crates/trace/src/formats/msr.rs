//! The CSV of the MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, with or without
//! a header.
//!
//! Times are in ticks of 100 ns since 1601, offset and size in bytes. Disk numbers repeat across hosts, so a device is
//! the pair of host and disk, called `host.disk`. Its number is the disk number if no other host's disk has taken it.
//! The lines are not always sorted by time.
//!
//! This parser has to be fast: traces in this format have tens of gigabytes. Lines as the original traces have them are
//! parsed here, and all others as any table.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, byte_record};
use crate::fields::{self, Cursor};
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;
use crate::table::{self, Layout, Operations, Role, Table};

use super::format::{Confidence, Format};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "msr",
    summary: "CSV of the MSR Cambridge traces",
    options: &[],
    detect: |head| if table::fits(layout(), b',', head, 1) { Confidence::Yes } else { Confidence::No },
    open: |input, options| {
        let (table, notes) = Table::open_input(layout(), b',', &input)?;
        LineReader::open(input, options, Msr { place: Vec::new(), device: 0, table }, notes)
    },
};

fn layout() -> Layout {
    use Role::{Device, Host, Offset, Operation as Op, Size, Time};
    let operations = Operations::codes(&[("Read", Operation::Read), ("Write", Operation::Write)]);
    let roles = [Some(Time), Some(Host), Some(Device), Some(Op), Some(Offset), Some(Size)];
    let layout = Layout::of("msr", &roles, operations, TimeUnit::Ticks);
    Layout { columns: table::Columns::AtLeast(7), ..layout }
}

/// The parser. It caches the device of the previous line, which is nearly always the device of the next one.
struct Msr {
    /// Text `host,disk,` of the previous line.
    place: Vec<u8>,
    device: u32,
    /// The parser of all lines that are not as the original traces have them.
    table: Table,
}

/// The fields that are used, in the units of a request.
struct Fields {
    time_ns: u64,
    device: u32,
    operation: Operation,
    offset_bytes: u64,
    bytes: u64,
}

impl LineFormat for Msr {
    #[inline]
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed> {
        match self.fields(line, devices) {
            Some(fields) => {
                byte_record(fields.time_ns, fields.device, fields.operation, fields.offset_bytes, fields.bytes)
            }
            None => self.table.parse(line, devices),
        }
    }

    fn parse_unquoted(&mut self, row: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed> {
        self.table.parse_unquoted(row, devices)
    }

    fn quoted_delimiter(&self) -> Option<u8> {
        self.table.quoted_delimiter()
    }
}

impl Msr {
    #[inline]
    fn fields(&mut self, line: &[u8], devices: &mut Devices) -> Option<Fields> {
        let mut cursor = Cursor::new(line);
        let time_ns = cursor.number(b',')?.checked_mul(TimeUnit::Ticks.nanoseconds())?;
        let device = self.device(&mut cursor, devices)?;
        let operation = operation(&mut cursor)?;
        let offset_bytes = cursor.number(b',')?;
        let bytes = cursor.number(b',')?;
        (!cursor.rest().is_empty()).then_some(Fields { time_ns, device, operation, offset_bytes, bytes })
    }

    #[inline]
    fn device(&mut self, cursor: &mut Cursor<'_>, devices: &mut Devices) -> Option<u32> {
        if !self.place.is_empty() && cursor.rest().starts_with(&self.place) {
            cursor.skip(self.place.len());
            return Some(self.device);
        }
        self.new_device(cursor, devices)
    }

    #[cold]
    fn new_device(&mut self, cursor: &mut Cursor<'_>, devices: &mut Devices) -> Option<u32> {
        let place = cursor.rest();
        let host = cursor.field(b',')?;
        let disk = cursor.field(b',')?;
        let number = u32::try_from(fields::number(disk)?).ok()?;
        self.place = place[..host.len() + disk.len() + 2].to_vec();
        self.device = devices.number(&[host, b".", disk].concat(), Some(number));
        Some(self.device)
    }
}

/// Parses `Read,` or `Write,` in this case.
#[inline]
fn operation(cursor: &mut Cursor<'_>) -> Option<Operation> {
    let rest = cursor.rest();
    let (operation, length) = if rest.starts_with(b"Read,") {
        (Operation::Read, 5)
    } else if rest.starts_with(b"Write,") {
        (Operation::Write, 6)
    } else {
        return None;
    };
    cursor.skip(length);
    Some(operation)
}

#[cfg(test)]
mod tests {
    //! Goal: the pitfalls of the layout. Method: lines written here, with requests worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, requests_of, timed};
    use crate::options::{Device, TraceOptions};

    const TRACE: &str = "\
128166372003061629,hm,0,Read,383496192,32768,113736\n\
128166372016382155,hm,1,Write,2822144000,4096,12356\n\
128166372016382154,usr,0,write,512,1024,7\n\
128166372026382245,hm,0,Write,1023,2,10\r\n";

    #[test]
    fn ticks_bytes_and_devices() {
        let expected = [
            timed(0, 0, Command::read(749_016, 64)),
            timed(1_332_052_600, 1, Command::write(5_512_000, 8)),
            timed(1_332_052_500, 2, Command::write(1, 2)),
            timed(2_332_061_600, 0, Command::write(1, 2)),
        ];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
        let facts = facts_of(TRACE, &TraceOptions::default());
        assert_eq!((facts.out_of_order, facts.longest_step_back_ns), (1, 100));
        assert_eq!((facts.unaligned, facts.requests), (1, 4));
        assert_eq!(facts.device_names[&2], "usr.0");
    }

    #[test]
    fn one_device_by_name_begins_at_zero() {
        let options = TraceOptions { device: Some(Device::Name("hm.1".into())), ..TraceOptions::default() };
        assert_eq!(requests_of(TRACE, &options), [timed(0, 1, Command::write(5_512_000, 8))]);
        assert_eq!(facts_of(TRACE, &options).other_devices, 3);
        let options = TraceOptions { device: Some(Device::Name("web.0".into())), ..TraceOptions::default() };
        assert_eq!(error_of(TRACE, &options), "t: no request is for device web.0; it has hm.0, hm.1, usr.0");
    }

    #[test]
    fn malformed_lines_are_told_or_counted() {
        let broken = TRACE.replace("hm,1,Write", "hm,1,Erase");
        let error = error_of(&broken, &TraceOptions::default());
        assert_eq!(error, "t, line 2: column 4 (op): found «Erase», expected Read or Write");
        let options = TraceOptions { skip_malformed: crate::options::SkipMalformed::Some, ..TraceOptions::default() };
        assert_eq!(requests_of(&broken, &options).len(), 3);
        let facts = facts_of(&broken, &options);
        assert_eq!((facts.malformed, facts.first_malformed.as_deref()), (1, Some(error.as_str())));
    }

    #[test]
    fn every_form_of_a_table_has_the_same_requests() {
        let quoted: String =
            TRACE.lines().map(|line| format!("\"{}\"\n", line.trim_end().replace(',', "\",\""))).collect();
        let header = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
        let floats = TRACE.replace(",32768,", ",32768.0,").replace("2822144000", "0xa8368000");
        let returns = TRACE.replace("\r\n", "\n").replace('\n', "\r");
        let marked = format!("\u{feff}{header}{TRACE}");
        for trace in [quoted.clone(), format!("{header}{quoted}"), floats, returns, marked] {
            assert_eq!(crate::formats::testing::format_of(trace.as_bytes()), Some("msr"), "{trace}");
            assert_eq!(
                requests_of(&trace, &TraceOptions::default()),
                requests_of(TRACE, &TraceOptions::default()),
                "{trace}"
            );
            assert_eq!(facts_of(&trace, &TraceOptions::default()).device_names[&2], "usr.0");
        }
    }

    #[test]
    fn a_file_cut_in_a_line_is_an_error() {
        let cut = &TRACE[..TRACE.find(",4096").unwrap() + 3];
        assert!(error_of(cut, &TraceOptions::default()).starts_with("t, line 2 (the last, without its end"));
    }
}
