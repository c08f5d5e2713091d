//! The binary records of VMware's vscsiStats in the CloudPhysics traces, versions 1 and 2, little-endian.
//!
//! Version 1, 32 bytes: `u32 sn, u32 length, u32 nSG, u16 cmd, u16 version, u64 lbn, u64 time`. Version 2, 40 bytes:
//! `u16 cmd, u16 version, u32 sn, u32 length, u32 nSG, u64 lbn, u64 time, u64 response`. Length is in bytes, lbn in
//! sectors, time in microseconds. The version number is the upper byte of its field; cmd is the SCSI operation code.

use imbrex_units::{Command, Lba, Operation};

use crate::admission::{Devices, Malformed, Parsed, SECTOR_BYTES, TraceRecord, out_of_reach, reached};
use crate::options::TimeUnit;
use crate::records::{RecordFormat, RecordReader};

use super::format::{Confidence, Format, Head};

/// Entry of version 1 in the registry.
pub(super) const VSCSI1: Format = Format {
    name: "vscsi1",
    summary: "VMware vscsiStats records, version 1 (CloudPhysics)",
    options: &[],
    detect: detect::<Version1>,
    open: |input, options| RecordReader::open(input, options, Version1),
};

/// Entry of version 2 in the registry.
pub(super) const VSCSI2: Format = Format {
    name: "vscsi2",
    summary: "VMware vscsiStats records, version 2 (CloudPhysics)",
    options: &[],
    detect: detect::<Version2>,
    open: |input, options| RecordReader::open(input, options, Version2),
};

struct Version1;
struct Version2;

/// The fields of either version that are used.
struct Fields {
    version: u16,
    code: u16,
    length_bytes: u32,
    lbn: u64,
    time_us: u64,
}

trait Layout: RecordFormat {
    const VERSION: u16;

    fn fields(record: &[u8]) -> Fields;
}

impl Layout for Version1 {
    const VERSION: u16 = 1;

    fn fields(record: &[u8]) -> Fields {
        Fields {
            length_bytes: u32_at(record, 4),
            code: u16_at(record, 12),
            version: u16_at(record, 14) >> 8,
            lbn: u64_at(record, 16),
            time_us: u64_at(record, 24),
        }
    }
}

impl Layout for Version2 {
    const VERSION: u16 = 2;

    fn fields(record: &[u8]) -> Fields {
        Fields {
            code: u16_at(record, 0),
            version: u16_at(record, 2) >> 8,
            length_bytes: u32_at(record, 8),
            lbn: u64_at(record, 16),
            time_us: u64_at(record, 24),
        }
    }
}

impl RecordFormat for Version1 {
    const BYTES: usize = 32;

    fn parse(&mut self, record: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        parse::<Version1>(record)
    }
}

impl RecordFormat for Version2 {
    const BYTES: usize = 40;

    fn parse(&mut self, record: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        parse::<Version2>(record)
    }
}

/// Returns the operation for a SCSI operation code, or `None` for commands that move no sectors of the medium.
pub(crate) fn operation_of(code: u64) -> Option<Operation> {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Operation::Read),
        0x0a | 0x2a | 0x8a | 0xaa => Some(Operation::Write),
        0x35 | 0x91 => Some(Operation::Flush),
        _ => None,
    }
}

#[inline]
fn parse<L: Layout>(record: &[u8]) -> Result<Parsed, Malformed> {
    let fields = L::fields(record);
    let time_ns = fields.time_us.checked_mul(TimeUnit::Microseconds.nanoseconds());
    let Some(time_ns) = time_ns.filter(|_| fields.version == L::VERSION) else {
        return Err(foreign::<L>(&fields));
    };
    let Some(operation) = operation_of(u64::from(fields.code)) else {
        return Ok(Parsed::NotRequest);
    };
    let (command, unaligned) = if operation == Operation::Flush {
        (Command::flush(), false)
    } else {
        let sectors = u64::from(fields.length_bytes).div_ceil(SECTOR_BYTES);
        let sectors = reached(fields.lbn, sectors).ok_or_else(|| out_of_reach(fields.lbn, sectors))?;
        let unaligned = !u64::from(fields.length_bytes).is_multiple_of(SECTOR_BYTES);
        (Command { operation, fua: false, sectors, lba: Lba(fields.lbn) }, unaligned)
    };
    Ok(Parsed::Request(TraceRecord { time_ns, device: 0, command, unaligned }))
}

#[cold]
fn foreign<L: Layout>(fields: &Fields) -> Malformed {
    let Fields { version, lbn, time_us, .. } = fields;
    Malformed::of(format!(
        "expected a record of version {}, found version {version}, lbn {lbn}, time {time_us} µs",
        L::VERSION
    ))
}

/// Recognises the layout: each of the first two records must have the version and an operation code of one byte.
fn detect<L: Layout>(head: &Head<'_>) -> Confidence {
    let mut records = head.bytes.chunks_exact(L::BYTES).map(L::fields);
    let sound = |fields: &Fields| fields.version == L::VERSION && fields.code <= 0xff;
    match (records.next(), records.next()) {
        (Some(first), Some(second)) if sound(&first) && sound(&second) => Confidence::Yes,
        (Some(first), None) if sound(&first) && operation_of(u64::from(first.code)).is_some() => Confidence::Maybe,
        _ => Confidence::No,
    }
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes are four"))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes are eight"))
}

#[cfg(test)]
mod tests {
    //! Goal: both layouts, the byte of the version, the operation codes, a cut file. Method: records packed here field
    //! by field.

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    use super::*;

    fn version1(code: u16, length: u32, lbn: u64, time: u64) -> Vec<u8> {
        let mut record = Vec::new();
        record.extend(9u32.to_le_bytes());
        record.extend(length.to_le_bytes());
        record.extend(1u32.to_le_bytes());
        record.extend(code.to_le_bytes());
        record.extend(0x0105u16.to_le_bytes());
        record.extend(lbn.to_le_bytes());
        record.extend(time.to_le_bytes());
        record
    }

    fn version2(code: u16, length: u32, lbn: u64, time: u64) -> Vec<u8> {
        let mut record = Vec::new();
        record.extend(code.to_le_bytes());
        record.extend(0x0205u16.to_le_bytes());
        record.extend(9u32.to_le_bytes());
        record.extend(length.to_le_bytes());
        record.extend(1u32.to_le_bytes());
        record.extend(lbn.to_le_bytes());
        record.extend(time.to_le_bytes());
        record.extend(77u64.to_le_bytes());
        record
    }

    fn trace(record: fn(u16, u32, u64, u64) -> Vec<u8>) -> Vec<u8> {
        let codes = [0x28, 0x2a, 0x08, 0x88, 0xa8, 0x0a, 0x8a, 0xaa, 0x12, 0x35];
        codes.iter().zip(0..).flat_map(|(&code, index)| record(code, 4096, 100 + index, 5_000_000 + index)).collect()
    }

    #[test]
    fn both_versions() {
        for (name, bytes) in [("vscsi1", trace(version1)), ("vscsi2", trace(version2))] {
            assert_eq!(format_of(&bytes), Some(name));
            let kind = |index: u64| if [0, 2, 3, 4].contains(&index) { Command::read } else { Command::write };
            let mut expected: Vec<_> =
                (0..8).map(|index| timed(index * 1000, 0, kind(index)(100 + index, 8))).collect();
            expected.push(timed(9000, 0, Command::flush()));
            assert_eq!(requests_of(&bytes, &TraceOptions::default()), expected, "{name}");
            assert_eq!(facts_of(&bytes, &TraceOptions::default()).not_requests, 1);
        }
    }

    #[test]
    fn a_cut_file_and_a_foreign_record_are_errors() {
        let mut bytes = trace(version2);
        bytes.truncate(bytes.len() - 7);
        let error = error_of(&bytes, &TraceOptions::default());
        assert_eq!(error, "t, byte 360: the file ends 33 bytes into a record of 40: it is cut short");
        let mut bytes = trace(version1);
        bytes[5 * 32 + 15] = 3;
        let error = error_of(&bytes, &TraceOptions::default());
        assert!(error.starts_with("t, byte 160: expected a record of version 1, found version 3"), "{error}");
        let options = TraceOptions { skip_malformed: crate::options::SkipMalformed::Some, ..TraceOptions::default() };
        assert_eq!(requests_of(&bytes, &options).len(), 8);
    }

    #[test]
    fn an_address_that_no_drive_has_is_an_error() {
        let bytes = [trace(version1), version1(0x28, 4096, i64::MAX as u64, 5_000_100)].concat();
        let error = error_of(&bytes, &TraceOptions::default());
        assert!(error.starts_with("t, byte 320: the address, sector 9223372036854775807, is past"), "{error}");
        // The address field of a flush is ignored.
        let bytes = [trace(version1), version1(0x35, 0, u64::MAX, 5_000_100)].concat();
        assert_eq!(requests_of(&bytes, &TraceOptions::default()).len(), 10);
    }

    #[test]
    fn one_record_is_recognised_too() {
        assert_eq!(format_of(&version1(0x2a, 512, 7, 1)), Some("vscsi1"));
        assert_eq!(format_of(&version2(0x2a, 512, 7, 1)), Some("vscsi2"));
    }
}
