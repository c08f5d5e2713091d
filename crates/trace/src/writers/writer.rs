//! The trait of trace writers, and the result of writing a trace.

use std::collections::BTreeMap;
use std::io::Write;

use imbrex_units::{Command, Direction, Operation};

use crate::request::{Request, TraceError};

/// An entry of the registry of writers.
#[derive(Debug)]
pub struct WriterInfo {
    /// Name of the format, equal to the name of its reader.
    pub name: &'static str,
    /// One line that describes the format.
    pub summary: &'static str,
    /// Usual extension of the format's file names, without the dot.
    pub extension: &'static str,
    /// Returns a writer of this format that writes into the first argument. The second argument is the name of the
    /// trace for error messages.
    pub open: fn(Output, &str) -> WriterResult,
}

/// The output that a trace is written to.
pub type Output = Box<dyn Write + Send>;

/// The writer of a format, or the error that prevents it.
pub type WriterResult = Result<Box<dyn Writer>, TraceError>;

/// Counts of the requests written and of the losses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Number of requests written.
    pub requests: u64,
    /// Number of losses by reason: requests that the format cannot represent, and details that it cannot store.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Written {
    pub(super) fn lose(&mut self, reason: &'static str) {
        *self.lost.entry(reason).or_insert(0) += 1;
    }

    /// Returns the direction of `command`, for formats with only reads and writes. Returns `None` for a flush or a
    /// trim. Counts a flush, a trim and an FUA flag as lost.
    pub(super) fn direction(&mut self, command: &Command) -> Option<Direction> {
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

/// A trace that is being written.
pub trait Writer: Send {
    /// Appends `request` to the trace.
    fn write(&mut self, request: &Request) -> Result<(), TraceError>;

    /// Ends the trace. Without this call the file is cut short.
    fn finish(self: Box<Self>) -> Result<Written, TraceError>;
}
