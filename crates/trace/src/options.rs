//! Options of the user about a trace, for choices that its contents leave open: the format, the device, the columns of
//! a table.

use std::fmt;
use std::str::FromStr;

use imbrex_units::Operation;

pub use crate::table::Decimal;

/// How to read a trace. By default, the reader decides by the trace's contents.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// Name of the format. By default, the format is recognised by the contents.
    pub format: Option<String>,
    /// The only device whose requests are read. By default, all devices are read.
    pub device: Option<Device>,
    /// Handling of malformed records.
    pub skip_malformed: SkipMalformed,
    /// Format `csv`: the contents of each column, as in `time,op,offset,size`; `_` for a column to ignore.
    pub columns: Option<String>,
    /// Format `csv`: the unit of each column, as in `us,,B,B`.
    pub units: Option<String>,
    /// Format `blkparse`, and also `blktrace`: the action that counts as the request: `Q`, `D` or `C`.
    pub action: Option<char>,
    /// Format `disksim`: the value of the flags' lowest bit that means a read; 1 by default.
    pub read_flag: Option<u8>,
    /// Unit of the trace's times, for formats that leave it open or whose converters disagree.
    pub time_unit: Option<TimeUnit>,
    /// Formats `csv` and `wpa`: the decimal mark of the numbers. By default, the numbers of the head show it.
    pub decimal: Option<Decimal>,
    /// Format `csv`: the operation of all requests, for tables without a column of operations.
    pub all: Option<Operation>,
}

impl TraceOptions {
    /// Returns the command-line names of the options that were given and that only some formats honour.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("columns", self.columns.is_some()),
            ("units", self.units.is_some()),
            ("action", self.action.is_some()),
            ("read-flag", self.read_flag.is_some()),
            ("time-unit", self.time_unit.is_some()),
            ("decimal", self.decimal.is_some()),
            ("all", self.all.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

/// Handling of malformed records.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SkipMalformed {
    /// The first malformed record ends the reading with an error.
    #[default]
    No,
    /// Malformed records are counted and skipped. If they are more than half of all records, the end of the trace is an
    /// error.
    Some,
    /// Malformed records are counted and skipped, however many.
    All,
}

impl FromStr for SkipMalformed {
    type Err = String;

    fn from_str(text: &str) -> Result<SkipMalformed, String> {
        match text {
            "false" => Ok(SkipMalformed::No),
            "true" => Ok(SkipMalformed::Some),
            "all" => Ok(SkipMalformed::All),
            _ => Err(format!("«{text}» is not true, false or all")),
        }
    }
}

/// Parses the value of the option `all`: `reads` or `writes`.
///
/// # Errors
///
/// If `text` is neither; the text says so.
pub fn all_of(text: &str) -> Result<Operation, String> {
    match text {
        "reads" => Ok(Operation::Read),
        "writes" => Ok(Operation::Write),
        _ => Err(format!("«{text}» is not reads or writes")),
    }
}

/// The choice of one device of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// The device with this number, as in [`crate::Request::device`].
    Number(u32),
    /// The device with this name in the trace.
    Name(String),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Number(number) => write!(f, "{number}"),
            Device::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for Device {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Device, Self::Err> {
        Ok(text.parse().map_or_else(|_| Device::Name(text.into()), Device::Number))
    }
}

/// A unit of a trace's times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// `ns`.
    Nanoseconds,
    /// `100ns`: the unit of Windows file times.
    Ticks,
    /// `us`.
    Microseconds,
    /// `ms`.
    Milliseconds,
    /// `s`.
    Seconds,
}

impl TimeUnit {
    /// Returns the length of one unit in nanoseconds.
    pub const fn nanoseconds(self) -> u64 {
        match self {
            TimeUnit::Nanoseconds => 1,
            TimeUnit::Ticks => 100,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Seconds => 1_000_000_000,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Ticks => "100ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        })
    }
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeUnit, String> {
        match text {
            "ns" => Ok(TimeUnit::Nanoseconds),
            "100ns" => Ok(TimeUnit::Ticks),
            "us" | "µs" => Ok(TimeUnit::Microseconds),
            "ms" => Ok(TimeUnit::Milliseconds),
            "s" => Ok(TimeUnit::Seconds),
            _ => Err(format!("«{text}» is no unit of time: s, ms, us, 100ns or ns")),
        }
    }
}
