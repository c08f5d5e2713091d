//! What a user may say about a trace where its contents leave a choice: the format, the device, the columns of a table.

use std::fmt;
use std::str::FromStr;

/// How to read a trace. The default asks the contents.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// The format by name, instead of by recognition.
    pub format: Option<String>,
    /// The one device whose requests are wanted; all of them by default.
    pub device: Option<Device>,
    /// Count malformed records and go on, instead of stopping at the first.
    pub skip_malformed: bool,
    /// `csv`: what each column holds, as in `time,op,offset,size`; `_` for one to ignore.
    pub columns: Option<String>,
    /// `csv`: the unit of each column, as in `us,,B,B`.
    pub units: Option<String>,
    /// `blkparse`: the action that counts as the request: `Q`, `D` or `C`.
    pub action: Option<char>,
    /// `disksim`: the value of the flags' lowest bit that means a read; 1 by default.
    pub read_flag: Option<u8>,
    /// The unit of the trace's times, where the format leaves it open or converters disagree.
    pub time_unit: Option<TimeUnit>,
}

/// A device of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// As requests number it.
    Number(u32),
    /// As the trace names it.
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

/// The unit of a trace's times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// `ns`.
    Nanoseconds,
    /// `100ns`: the ticks of Windows.
    Ticks,
    /// `us`.
    Microseconds,
    /// `ms`.
    Milliseconds,
    /// `s`.
    Seconds,
}

impl TimeUnit {
    /// Nanoseconds of one.
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
