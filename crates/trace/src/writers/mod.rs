//! Writers of trace formats: one file each, and the registry of all.
//!
//! Invariants:
//! 1. What a format cannot say is counted in [`Written`], by reason: nothing is left out in silence.
//! 2. Reading what was written yields the requests written, but for what [`Written`] counts.

mod disksim;
mod fio_iolog;
mod imbrex;
mod msr;

use std::collections::BTreeMap;
use std::io::Write;

use imbrex_units::{Command, Direction, Operation, SimTime};

use crate::admission::SECTOR_BYTES;
use crate::request::{Request, Source, TraceError, When};

/// A writer of the registry.
#[derive(Debug)]
pub struct WriterInfo {
    /// The format's name, as its reader has it.
    pub name: &'static str,
    /// One line: what it is and who reads it.
    pub summary: &'static str,
    /// What files of it are usually called.
    pub extension: &'static str,
    /// A writer into `output`, which errors call by the name.
    pub open: fn(Output, &str) -> WriterResult,
}

/// Where a trace is written to.
pub type Output = Box<dyn Write + Send>;

/// The writer of a format, or why there can be none.
pub type WriterResult = Result<Box<dyn Writer>, TraceError>;

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Requests written.
    pub requests: u64,
    /// Requests the format has no word for, and what else was lost, by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Written {
    fn lose(&mut self, reason: &'static str) {
        *self.lost.entry(reason).or_insert(0) += 1;
    }

    /// Which way `command` moves sectors, for formats that know nothing else; what they cannot say counts as lost.
    fn direction(&mut self, command: &Command) -> Option<Direction> {
        if command.fua {
            self.lose("FUA not written");
        }
        match command.operation {
            Operation::Read => return Some(Direction::Read),
            Operation::Write => return Some(Direction::Write),
            Operation::Flush => self.lose("flushes left out"),
            Operation::Trim => self.lose("trims left out"),
        }
        None
    }
}

/// A trace being written.
pub trait Writer: Send {
    /// Appends a request.
    fn write(&mut self, request: &Request) -> Result<(), TraceError>;

    /// Ends the trace; without it the file is cut short.
    fn finish(self: Box<Self>) -> Result<Written, TraceError>;
}

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

/// The time of `request`, which has to have one of its own.
fn time_ns(request: &Request, name: &str) -> Result<u64, TraceError> {
    match request.when {
        When::At(time) => Ok(time.0),
        When::Free(_) | When::Drained(_) => Err(TraceError {
            place: name.into(),
            reason:
                "the workload has no times of its own: its requests follow the drive's answers, and a trace cannot \
                     say that"
                    .into(),
            cause: None,
        }),
    }
}

/// Offset and length of `request` in bytes.
fn bytes_of(request: &Request, name: &str) -> Result<(u64, u64), TraceError> {
    let offset_bytes = request.command.lba.0.checked_mul(SECTOR_BYTES).ok_or_else(|| TraceError {
        place: name.into(),
        reason: format!("{} lies past 2^64 bytes, which the format cannot say", request.command.lba),
        cause: None,
    })?;
    Ok((offset_bytes, u64::from(request.command.sectors) * SECTOR_BYTES))
}

fn failed(name: &str, cause: std::io::Error) -> TraceError {
    TraceError { place: name.into(), reason: "cannot be written".into(), cause: Some(cause) }
}
