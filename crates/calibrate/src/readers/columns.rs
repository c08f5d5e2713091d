//! Reads any csv with a column `latency`: `--columns time,op,offset,size,latency --units s,,B,B,us`.

use imbrex_disk::{Command, Lba, Operation, SimDuration, SimTime};
use imbrex_trace::TraceError;

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

/// Reads a whole file.
pub(super) fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Measured, TraceError> {
    let text = String::from_utf8_lossy(bytes);
    let columns = Columns::of(options).map_err(|reason| TraceError::new(name, reason))?;
    let mut measured = Measured { format: "csv".into(), ..Measured::default() };
    let mut next = SimTime::ZERO;
    let mut origin = None;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let parsed = columns.request(line);
        // The first line may hold the names of the columns.
        let Some((time, command, taken_ns)) = parsed else {
            if index == 0 {
                continue;
            }
            return Err(wrong(name, index + 1, "a request in the columns given", line));
        };
        let issued = match time {
            Some(time) => SimTime(time.saturating_sub(*origin.get_or_insert(time))),
            None => next,
        };
        let request = MeasuredRequest { command, issued, taken: SimDuration(taken_ns), hit: None };
        next = request.completed();
        measured.requests.push(request);
    }
    measured.requests.sort_by_key(|request| request.issued);
    Ok(measured)
}

impl Columns {
    fn of(options: &ReadOptions) -> Result<Columns, String> {
        let names: Vec<&str> = options.columns.as_deref().unwrap_or("").split(',').map(str::trim).collect();
        let units: Vec<&str> = options.units.as_deref().unwrap_or("").split(',').map(str::trim).collect();
        let find = |name: &str| names.iter().position(|known| *known == name);
        let needed = |name: &str| find(name).ok_or(format!("--columns names no `{name}`: a measurement needs it"));
        let unit = |at: usize| units.get(at).copied().unwrap_or("");
        let time_unit = |at: usize, default: f64| match unit(at) {
            "" => Ok(default),
            "s" => Ok(1e9),
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
        let time = find("time").map(|at| Ok::<_, String>((at, time_unit(at, 1e9)?))).transpose()?;
        Ok(Columns {
            time,
            op: needed("op")?,
            offset: (offset, byte_unit(offset)?),
            size: (size, byte_unit(size)?),
            latency: (latency, time_unit(latency, 1.0)?),
        })
    }

    fn request(&self, line: &str) -> Option<(Option<u64>, Command, u64)> {
        let words: Vec<&str> = line.split(',').map(str::trim).collect();
        let word = |at: usize| words.get(at).copied();
        let operation = match word(self.op)?.to_ascii_lowercase().as_str() {
            "r" | "read" | "0" => Operation::Read,
            "w" | "write" | "1" => Operation::Write,
            "t" | "trim" | "discard" => Operation::Trim,
            _ => return None,
        };
        let offset = word(self.offset.0)?.parse::<u64>().ok()?.checked_mul(self.offset.1)?;
        let bytes = word(self.size.0)?.parse::<u64>().ok()?.checked_mul(self.size.1)?;
        let sectors = u32::try_from(bytes.div_ceil(512)).ok().filter(|&sectors| sectors > 0)?;
        let time = match self.time {
            Some((at, unit)) => Some(time_ns(word(at)?, unit)?),
            None => None,
        };
        let taken_ns = time_ns(word(self.latency.0)?, self.latency.1)?;
        Some((time, Command { operation, fua: false, sectors, lba: Lba(offset / 512) }, taken_ns))
    }
}
