//! Writers of trace formats: one file each, and the registry of them all.
//!
//! Invariants:
//! 1. Each loss of information that a format forces is counted in [`Written`], by reason: no loss is silent.
//! 2. Reading a written file yields the requests written, except for the losses that [`Written`] counts.

mod csv;
mod disksim;
mod fields;
mod fio_iolog;
mod imbrex;
mod msr;
mod writer;

pub use writer::{Output, Writer, WriterInfo, WriterResult, Written};

use imbrex_units::SimTime;

use crate::request::{Source, TraceError};

/// Returns all formats that traces can be written in.
pub fn all() -> &'static [&'static WriterInfo] {
    &[&imbrex::WRITER, &fio_iolog::WRITER, &disksim::WRITER, &msr::WRITER, &csv::WRITER]
}

/// Returns the writer of Imbrex's own trace format, a Parquet file.
pub fn imbrex() -> &'static WriterInfo {
    &imbrex::WRITER
}

/// Returns the writer of the format with exactly this name, or `None` if there is none.
pub fn by_name(name: &str) -> Option<&'static WriterInfo> {
    all().iter().copied().find(|writer| writer.name == name)
}

/// Writes all requests of `source` with `writer` and finishes the trace. Returns the number of requests written and the
/// losses. Passes the time 0 to every call of [`Source::next`].
///
/// # Errors
///
/// The first error of `source` or `writer`. The output is then cut short.
pub fn copy(source: &mut dyn Source, mut writer: Box<dyn Writer>) -> Result<Written, TraceError> {
    while let Some(request) = source.next(SimTime::ZERO)? {
        writer.write(&request)?;
    }
    writer.finish()
}
