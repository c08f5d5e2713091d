//! The CSV of the MSR Cambridge traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, without a
//! header.
//!
//! Times are in ticks of 100 ns since 1601, offset and size in bytes. Disk numbers repeat across hosts, so a device is
//! the pair of host and disk, called `host.disk`. Its number is the disk number if no other host's disk has taken it.
//! The lines are not always sorted by time.
//!
//! This parser has to be fast: traces in this format have tens of gigabytes.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, byte_record};
use crate::fields::{self, Cursor};
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "msr",
    summary: "CSV of the MSR Cambridge traces",
    detect,
    open: |input, options| LineReader::open(input, options, Msr::default(), Vec::new()),
};

const EXPECTED: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

/// The parser. It caches the device of the previous line, which is nearly always the device of the next one.
#[derive(Default)]
struct Msr {
    /// Text `host,disk,` of the previous line.
    place: Vec<u8>,
    device: u32,
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
            None if line.is_empty() => Ok(Parsed::Nothing),
            None => Err(Malformed::new(EXPECTED, line)),
        }
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

/// Parses `Read,` or `Write,`, in any case.
#[inline]
fn operation(cursor: &mut Cursor<'_>) -> Option<Operation> {
    let rest = cursor.rest();
    if rest.starts_with(b"Read,") {
        cursor.skip(5);
        return Some(Operation::Read);
    }
    if rest.starts_with(b"Write,") {
        cursor.skip(6);
        return Some(Operation::Write);
    }
    operation_of(cursor.field(b',')?)
}

fn operation_of(word: &[u8]) -> Option<Operation> {
    if word.eq_ignore_ascii_case(b"read") {
        Some(Operation::Read)
    } else if word.eq_ignore_ascii_case(b"write") {
        Some(Operation::Write)
    } else {
        None
    }
}

fn detect(head: &Head<'_>) -> Confidence {
    let Some([time, host, disk, word, offset, size, _response]) = fields::split::<7>(head.first_line(), b',') else {
        return Confidence::No;
    };
    let numeric = [time, disk, offset, size].into_iter().all(|field| fields::number(field).is_some());
    if numeric && operation_of(word).is_some() && !host.is_empty() { Confidence::Yes } else { Confidence::No }
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
        assert_eq!((facts.out_of_order, facts.unaligned, facts.requests), (1, 1, 4));
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
        assert!(error.starts_with("t, line 2: expected Timestamp,Hostname"), "{error}");
        assert!(error.contains("found «128166372016382155,hm,1,Erase"), "{error}");
        let options = TraceOptions { skip_malformed: true, ..TraceOptions::default() };
        assert_eq!(requests_of(&broken, &options).len(), 3);
        let facts = facts_of(&broken, &options);
        assert_eq!((facts.malformed, facts.first_malformed.as_deref()), (1, Some(error.as_str())));
    }

    #[test]
    fn a_file_cut_in_a_line_is_an_error() {
        let cut = &TRACE[..TRACE.find(",4096").unwrap() + 3];
        assert!(error_of(cut, &TraceOptions::default()).starts_with("t, line 2 (the last, without its end"));
    }
}
