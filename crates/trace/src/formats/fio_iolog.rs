//! The iologs of fio, versions 2 and 3: a line `fio version N iolog`, then lines `file action [offset length]`. Lines
//! of version 3 begin with a time in microseconds.
//!
//! Actions: `add`, `open`, `close` are not requests; `read`, `write`, `trim` have offset and length in bytes; `sync`
//! and `datasync` are flushes. `wait` of version 2 delays the following requests by its offset, in microseconds;
//! version 3 forbids it. Each file is a device. Its number is the number at the end of the file's name, if that number
//! is free.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, byte_record, sector_record};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "fio-iolog",
    summary: "iologs of fio, versions 2 and 3",
    options: &[],
    detect: |head| if version_of(head.first_line()).is_some() { Confidence::Yes } else { Confidence::No },
    open: |input, options| {
        // The user may name this format for a log without its first line: such a log is read as version 3.
        let version = version_of(Head::of(&input).first_line()).unwrap_or(Version::Three);
        LineReader::open(input, options, IoLog { version, waited_ns: 0 }, Vec::new())
    },
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

struct IoLog {
    version: Version,
    /// Sum of all waits so far, in nanoseconds: the current time in version 2.
    waited_ns: u64,
}

impl LineFormat for IoLog {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed> {
        if line.trim_ascii().is_empty() || version_of(line).is_some() {
            return Ok(Parsed::Nothing);
        }
        let parsed = match self.version {
            Version::Two => self.entry(line, None, devices),
            Version::Three => timed(line).and_then(|(time_ns, rest)| self.entry(rest, Some(time_ns), devices)),
        };
        parsed.unwrap_or_else(|| Err(Malformed::new(self.expected(), line)))
    }
}

impl IoLog {
    fn expected(&self) -> &'static str {
        match self.version {
            Version::Two => "file action offset length",
            Version::Three => "time_us file action offset length, where action is no wait",
        }
    }

    /// Parses `file action [offset length]`. Without `time_ns`, the time is the sum of the waits.
    fn entry(&mut self, line: &[u8], time_ns: Option<u64>, devices: &mut Devices) -> Option<Result<Parsed, Malformed>> {
        let [file, action] = fields::words(line)?;
        let device = devices.number(file, trailing_number(file));
        let span = || {
            fields::words::<4>(line).and_then(|[_, _, at, length]| Some((fields::number(at)?, fields::number(length)?)))
        };
        let now_ns = time_ns.unwrap_or(self.waited_ns);
        match action {
            b"add" | b"open" | b"close" => Some(Ok(Parsed::Nothing)),
            b"sync" | b"datasync" => Some(sector_record(now_ns, device, Operation::Flush, 0, 0)),
            b"wait" if time_ns.is_none() => {
                let wait_us = fields::number(fields::words::<3>(line)?[2])?;
                let wait_ns = wait_us.checked_mul(TimeUnit::Microseconds.nanoseconds())?;
                self.waited_ns = self.waited_ns.checked_add(wait_ns)?;
                Some(Ok(Parsed::Nothing))
            }
            _ => {
                let (offset_bytes, bytes) = span()?;
                Some(byte_record(now_ns, device, operation(action)?, offset_bytes, bytes))
            }
        }
    }
}

fn operation(action: &[u8]) -> Option<Operation> {
    match action {
        b"read" => Some(Operation::Read),
        b"write" => Some(Operation::Write),
        b"trim" => Some(Operation::Trim),
        _ => None,
    }
}

/// Returns the time in nanoseconds at the start of a line of version 3, and the rest of the line.
fn timed(line: &[u8]) -> Option<(u64, &[u8])> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(u8::is_ascii_whitespace)?;
    Some((fields::time_ns(&line[..end], TimeUnit::Microseconds)?, &line[end..]))
}

fn version_of(line: &[u8]) -> Option<Version> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(Version::Two),
        b"fio version 3 iolog" => Some(Version::Three),
        _ => None,
    }
}

/// Returns the number at the end of a name: 3 for `device3`.
fn trailing_number(name: &[u8]) -> Option<u32> {
    let start = name.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    u32::try_from(fields::number(&name[start..])?).ok()
}

#[cfg(test)]
mod tests {
    //! Goal: both versions, every action. Method: logs written here, with requests worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const TWO: &str = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda write 4096 8192\n\
        /dev/sda wait 1500 0\n/dev/sda read 0 512\n/dev/sda sync 0 0\n/dev/sda wait 500 0\n/dev/sda trim 512 512\n/dev/sda close\n";

    const THREE: &str = "fio version 3 iolog\n5 disk1 add\n5 disk1 open\n10 disk1 write 4096 8192\n10 disk7 add\n\
        1510 disk7 read 0 512\n1511 disk1 datasync\n1512 disk1 close\n";

    #[test]
    fn waits_are_the_time_of_version_2() {
        assert_eq!(format_of(TWO.as_bytes()), Some("fio-iolog"));
        let expected = [
            timed(0, 0, Command::write(8, 16)),
            timed(1_500_000, 0, Command::read(0, 1)),
            timed(1_500_000, 0, Command::flush()),
            timed(2_000_000, 0, Command::trim(1, 1)),
        ];
        assert_eq!(requests_of(TWO, &TraceOptions::default()), expected);
    }

    #[test]
    fn version_3_has_times_and_no_waits() {
        let expected = [
            timed(0, 1, Command::write(8, 16)),
            timed(1_500_000, 7, Command::read(0, 1)),
            timed(1_501_000, 1, Command::flush()),
        ];
        assert_eq!(requests_of(THREE, &TraceOptions::default()), expected);
        assert_eq!(facts_of(THREE, &TraceOptions::default()).device_names[&7], "disk7");
        let error = error_of(THREE.replace("datasync", "wait 5 0"), &TraceOptions::default());
        assert!(error.starts_with("t, line 7: expected time_us file action offset length"), "{error}");
    }
}
