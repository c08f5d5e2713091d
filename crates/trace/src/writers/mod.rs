//! Writers of trace formats: one file each, and the registry of all.
//!
//! Invariants:
//! 1. What a format cannot say is counted in [`Written`], by reason: nothing is left out in silence.
//! 2. Reading what was written yields the requests written, but for what [`Written`] counts.

mod disksim;
mod fields;
mod fio_iolog;
mod imbrex;
mod msr;
mod writer;

pub use writer::{Output, Writer, WriterInfo, WriterResult, Written};

use imbrex_units::SimTime;

use crate::request::{Source, TraceError};

/// Every writer.
pub fn all() -> &'static [&'static WriterInfo] {
    &[&imbrex::WRITER, &fio_iolog::WRITER, &disksim::WRITER, &msr::WRITER]
}

/// The writer of Imbrex's own format.
pub fn imbrex() -> &'static WriterInfo {
    &imbrex::WRITER
}

/// The writer of the format called `name`.
pub fn by_name(name: &str) -> Option<&'static WriterInfo> {
    all().iter().copied().find(|writer| writer.name == name)
}

/// Writes all of `source`.
pub fn copy(source: &mut dyn Source, mut writer: Box<dyn Writer>) -> Result<Written, TraceError> {
    while let Some(request) = source.next(SimTime::ZERO)? {
        writer.write(&request)?;
    }
    writer.finish()
}
