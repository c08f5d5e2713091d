//! Readers of measurements of real drives with the time of each request, by format: how each is recognized and read.
//!
//! Invariants:
//! 1. A format is recognized by its contents, never by its name alone.
//! 2. An unreadable line is an error that names the line and the expected form.

mod blocks;
mod columns;
mod disksim;
mod fio;
mod record;
mod words;

pub use record::{ReadOptions, Reading};

use imbrex_trace::TraceError;

/// Reads a measurement of a real drive from `bytes`, the contents of a file. The format is recognized by the contents:
/// blktrace, blkparse, DiskSim's validation traces, fio's latency log or json+. With [`ReadOptions::columns`], the file
/// is CSV. Messages call the file `name`.
///
/// # Errors
///
/// The format is unknown, a line is malformed, a CSV file has not the columns needed, or a blktrace has no request with
/// both issue and completion.
pub fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Reading, TraceError> {
    if options.columns.is_some() {
        return columns::read(name, bytes, options).map(Reading::Requests);
    }
    if blocks::is_one(bytes) {
        return blocks::read(name, bytes, options).map(Reading::Requests);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(unknown(name, "it is binary, and no blktrace"));
    };
    if disksim::is_one(text) {
        return disksim::read(name, text).map(Reading::Requests);
    }
    if fio::is_json(text) {
        return fio::distribution(name, text);
    }
    if fio::is_log(text) {
        return fio::read(name, text).map(Reading::Requests);
    }
    Err(unknown(name, "its first line is none of theirs"))
}

fn unknown(name: &str, why: &str) -> TraceError {
    let reason = format!(
        "is no measurement that is known ({why}): expected DiskSim's validation format, blktrace or blkparse with issues (D) and \
         completions (C), fio's latency log with --log_offset=1, fio's json+, ios.parquet, or csv with \
         --columns time,op,offset,size,latency"
    );
    TraceError::new(name, reason)
}
