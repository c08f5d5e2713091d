//! Reads any csv with a column `latency`: `--columns time,op,offset,size,latency --units s,,B,B,us`.

use imbrex_disk::{Command, Operation, SimDuration, SimTime};
use imbrex_trace::{TraceError, sectors_of};
use imbrex_units::names::suggestion;

use super::record::ReadOptions;
use super::words::{time_ns, wrong};
use crate::measured::{Measured, MeasuredRequest};

/// Index of each column, and its unit in nanoseconds or bytes.
struct Columns {
    time: Option<(usize, f64)>,
    op: usize,
    offset: (usize, u64),
    size: (usize, u64),
    latency: (usize, f64),
}

/// Names of columns.
const NAMES: [&str; 6] = ["time", "op", "offset", "size", "latency", "_"];

/// Longest latency of a request, in nanoseconds. Longer ones show that the unit is wrong.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// A line of the file.
enum Line {
    Request {
        time: Option<u64>,
        command: Command,
        taken_ns: u64,
        /// Whether the request had parts of sectors, and the command has these sectors whole.
        is_widened: bool,
    },
    /// A flush, which has no address, or a request without an answer.
    LeftOut,
}

/// Reads a whole file.
pub(super) fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Measured, TraceError> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let columns = Columns::of(options).map_err(|reason| TraceError::usage(name, reason))?;
    let mut measured = Measured { format: "csv".into(), ..Measured::default() };
    let mut next = SimTime::ZERO;
    let mut origin = None;
    let (mut left_out, mut widened) = (0, 0);
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (time, command, taken_ns) = match columns.line(line) {
            Ok(Line::Request { time, command, taken_ns, is_widened }) => {
                widened += u64::from(is_widened);
                (time, command, taken_ns)
            }
            Ok(Line::LeftOut) => {
                left_out += 1;
                continue;
            }
            Err(_) if index == 0 && is_header(line) => {
                measured.notes.push("the first line has no number, so it holds the names of the columns".into());
                continue;
            }
            Err(expected) => return Err(wrong(name, index + 1, expected, line)),
        };
        if taken_ns > LATENCY_MAX_NS {
            let place = format!("{name}, line {}", index + 1);
            let reason =
                format!("a latency of {:.0} h: --units names the unit, as in s,,B,B,us", taken_ns as f64 / 3.6e12);
            return Err(TraceError::new(place, reason));
        }
        let issued = match time {
            Some(time) => SimTime(time.saturating_sub(*origin.get_or_insert(time))),
            None => next,
        };
        let request = MeasuredRequest { command, issued, taken: SimDuration(taken_ns), hit: None };
        next = request.completed();
        measured.requests.push(request);
    }
    if !measured.requests.is_empty() && measured.requests.iter().all(|request| request.taken.is_zero()) {
        return Err(TraceError::new(name, "all latencies are 0: --units names their unit, as in s,,B,B,us"));
    }
    if left_out > 0 {
        measured.notes.push(format!("{left_out} flushes and requests without an answer are left out"));
    }
    if widened > 0 {
        measured.notes.push(format!("requests widened to whole sectors of 512 bytes: {widened}"));
    }
    measured.requests.sort_by_key(|request| request.issued);
    Ok(measured)
}

/// Returns whether a line has no number, so that it holds the names of columns.
fn is_header(line: &str) -> bool {
    line.split(',').all(|word| word.trim().trim_matches('"').parse::<f64>().is_err())
}

impl Columns {
    fn of(options: &ReadOptions) -> Result<Columns, String> {
        let names: Vec<&str> = options.columns.as_deref().unwrap_or("").split(',').map(str::trim).collect();
        let units: Vec<&str> = options.units.as_deref().unwrap_or("").split(',').map(str::trim).collect();
        for (index, name) in names.iter().enumerate() {
            if !NAMES.contains(name) {
                let meant = suggestion(name, NAMES);
                return Err(format!("--columns names '{name}', which is none of {}{meant}", NAMES.join(", ")));
            }
            if *name != "_" && names[..index].contains(name) {
                return Err(format!("--columns names '{name}' twice"));
            }
        }
        if units.len() > names.len() {
            return Err(format!("--units has {} units, and --columns {} columns", units.len(), names.len()));
        }
        let find = |name: &str| names.iter().position(|known| *known == name);
        let needed = |name: &str| find(name).ok_or(format!("--columns names no `{name}`: a measurement needs it"));
        let unit = |at: usize| units.get(at).copied().unwrap_or("");
        let time_unit = |at: usize| match unit(at) {
            "" | "s" => Ok(1e9),
            "ms" => Ok(1e6),
            "us" | "µs" => Ok(1e3),
            "100ns" => Ok(100.0),
            "ns" => Ok(1.0),
            other => Err(format!("'{other}' is no unit of time: s, ms, us, 100ns or ns")),
        };
        let byte_unit = |at: usize| match unit(at) {
            "" | "B" => Ok(1),
            "sectors" => Ok(512),
            other => Err(format!("'{other}' is no unit of size: B or sectors")),
        };
        let (offset, size, latency) = (needed("offset")?, needed("size")?, needed("latency")?);
        let time = find("time").map(|at| Ok::<_, String>((at, time_unit(at)?))).transpose()?;
        Ok(Columns {
            time,
            op: needed("op")?,
            offset: (offset, byte_unit(offset)?),
            size: (size, byte_unit(size)?),
            latency: (latency, time_unit(latency)?),
        })
    }

    /// Returns the contents of a line of the file, or the name of a part that is missing or wrong.
    fn line(&self, line: &str) -> Result<Line, &'static str> {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        let word = |at: usize, expected: &'static str| words.get(at).copied().ok_or(expected);
        let operation = match word(self.op, "a column with the operation")?.to_ascii_lowercase().as_str() {
            "r" | "read" | "0" => Operation::Read,
            "w" | "write" | "write-fua" | "1" => Operation::Write,
            "t" | "trim" | "discard" => Operation::Trim,
            "f" | "flush" => return Ok(Line::LeftOut),
            _ => return Err("an operation: read, write, trim or flush"),
        };
        let bytes = |(at, unit): (usize, u64), expected| {
            word(at, expected)?.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or(expected)
        };
        let offset = bytes(self.offset, "an offset")?;
        let length = bytes(self.size, "a size")?;
        if length == 0 {
            return Err("a size above 0");
        }
        let (lba, sectors, is_widened) =
            sectors_of(offset, length).ok_or("an offset and a size that a drive can have")?;
        let time = match self.time {
            Some((at, unit)) => Some(time_ns(word(at, "a time")?, unit).ok_or("a time")?),
            None => None,
        };
        let latency = word(self.latency.0, "a column with the latency")?;
        if latency.is_empty() {
            return Ok(Line::LeftOut);
        }
        let taken_ns = time_ns(latency, self.latency.1).ok_or("a latency")?;
        Ok(Line::Request { time, command: Command { operation, fua: false, sectors, lba }, taken_ns, is_widened })
    }
}
