//! Records of real drives with the time of each request, by format: what each is known by and how it is read.
//!
//! Invariants:
//! 1. A format is recognised by its contents, never by a name alone.
//! 2. What cannot be read is an error with its line, and what was expected.

mod blocks;
mod columns;
mod disksim;
mod fio;

use imbrex_trace::TraceError;

use crate::distribution::Distribution;
use crate::measured::Measured;

/// How to read a record, where it does not say so itself.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// `csv`: what each column holds; one of them is `latency`.
    pub columns: Option<String>,
    /// `csv`: the unit of each column.
    pub units: Option<String>,
    /// The one device that is wanted, by number or name.
    pub device: Option<String>,
}

/// What a record came to.
#[derive(Clone, Debug)]
pub enum Record {
    /// Requests, one by one.
    Requests(Measured),
    /// Only how long requests took.
    Distribution(Distribution),
}

/// Reads `bytes`, called `name` in messages.
pub fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Record, TraceError> {
    if options.columns.is_some() {
        return columns::read(name, bytes, options).map(Record::Requests);
    }
    if blocks::is_one(bytes) {
        return blocks::read(name, bytes, options).map(Record::Requests);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(unknown(name, "it is binary, and no blktrace"));
    };
    if disksim::is_one(text) {
        return disksim::read(name, text).map(Record::Requests);
    }
    if fio::is_json(text) {
        return fio::distribution(name, text);
    }
    if fio::is_log(text) {
        return fio::read(name, text).map(Record::Requests);
    }
    Err(unknown(name, "its first line is none of theirs"))
}

fn unknown(name: &str, why: &str) -> TraceError {
    let reason = format!(
        "is no measurement that is known ({why}): expected DiskSim's validation format, blktrace or blkparse with issues (D) and \
         completions (C), fio's latency log with --log_offset=1, fio's json+, ios.parquet, or csv with \
         --columns time,op,offset,size,latency"
    );
    TraceError { place: name.into(), reason, cause: None }
}

/// An error at `line` of `name`.
fn wrong(name: &str, line: usize, expected: &str, found: &str) -> TraceError {
    let shown: String = found.chars().take(80).collect();
    TraceError {
        place: format!("{name}, line {line}"),
        reason: format!("expected {expected}, found «{shown}»"),
        cause: None,
    }
}

/// A number with decimals in units of `unit_ns`, as nanoseconds.
fn time_ns(word: &str, unit_ns: f64) -> Option<u64> {
    let value = word.trim().parse::<f64>().ok()? * unit_ns;
    (value.is_finite() && (0.0..1e18).contains(&value)).then(|| value.round() as u64)
}
