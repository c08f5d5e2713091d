//! Options of the user about a trace, for choices that its contents leave open: the format, the device, the columns of
//! a table.

use std::fmt;
use std::str::FromStr;

use imbrex_units::Operation;

pub use crate::table::Decimal;

/// Options for reading a trace. By default, the reader decides by the trace's contents.
///
/// An option that is given and that does not apply to the trace's format is an error when the trace is opened.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// Name of the format, such as `msr`. By default, the format is `csv` if `columns` is given; otherwise, it is
    /// recognised by the contents.
    pub format: Option<String>,
    /// The only device whose requests are read. By default, all devices are read.
    pub device: Option<Device>,
    /// Handling of malformed records; by default, the first one is an error.
    pub skip_malformed: SkipMalformed,
    /// Format `csv`, which needs this option: the meaning of each column in order, separated by commas, as in
    /// `time,op,offset,size`. The names are `time`, `op`, `offset`, `size`, `device`, and `_` for a column to ignore.
    pub columns: Option<String>,
    /// Format `csv`: the unit of each column in the order of `columns`, separated by commas, as in `us,,B,B`. Without a
    /// unit, times are in `time_unit`, or else in seconds, and offsets and sizes in bytes. A column `op` takes its
    /// codes here, as in `0=read 1=write`. By default, no column has a unit.
    pub units: Option<String>,
    /// Formats `blkparse` and `blktrace`: the action whose events are read as requests. `Q` is queued, `D` issued to
    /// the drive, `C` completed. By default, the first of Q, D and C that occurs in the first 64 KiB of the trace.
    pub action: Option<char>,
    /// Format `disksim`: the value (0 or 1) of the lowest bit of the flags that means a read; 1 by default.
    pub read_flag: Option<u8>,
    /// Unit of the times in the trace. Applies only to formats that leave the unit open or whose converters disagree,
    /// such as `disksim` and `csv`. By default, the unit is that of the format or is guessed from the times.
    pub time_unit: Option<TimeUnit>,
    /// Formats `csv` and `wpa`: the decimal mark of the numbers. By default, the reader infers it from the numbers in
    /// the first 64 KiB of the trace, or else from the first later number that allows only one mark.
    pub decimal: Option<Decimal>,
    /// Format `csv`: the operation of all requests. It must be given exactly if `columns` has no `op`.
    pub all: Option<Operation>,
}

impl TraceOptions {
    /// Returns the command-line names, without `--`, of the options that were given, among those that apply to some
    /// formats only. Leaves out `format`, `device` and `skip-malformed`, which apply to all formats.
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

/// Handling of malformed records: text lines or binary records that do not have the form of the format.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SkipMalformed {
    /// The first malformed record ends the reading with an error.
    #[default]
    No,
    /// Malformed records are counted and skipped. If they are more than half of all records read, the reader returns an
    /// error at the end of the trace.
    Some,
    /// Malformed records are counted and skipped, however many there are.
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

/// Parses the operation that all requests of a `csv` trace without an `op` column have: `reads` or `writes`
/// ([`TraceOptions::all`]).
///
/// # Errors
///
/// A message for the user if `text` is neither.
pub fn all_of(text: &str) -> Result<Operation, String> {
    match text {
        "reads" => Ok(Operation::Read),
        "writes" => Ok(Operation::Write),
        _ => Err(format!("«{text}» is not reads or writes")),
    }
}

/// The choice of one device of a trace that records several. A text that is a decimal number of 32 bits parses as
/// [`Device::Number`], any other text as [`Device::Name`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// The device with this number in the trace ([`crate::Request::device`]).
    Number(u32),
    /// The device with exactly this name in the trace.
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

/// A unit of the times in a trace. Each variant gives the text that it is parsed from and printed as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Nanoseconds: `ns`.
    Nanoseconds,
    /// Ticks of 100 ns: `100ns`, the unit of Windows file times.
    Ticks,
    /// Microseconds: `us`, or `µs` when parsed.
    Microseconds,
    /// Milliseconds: `ms`.
    Milliseconds,
    /// Seconds: `s`.
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
