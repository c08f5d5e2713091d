//! The trait of trace writers, and the result of writing a trace.

use std::collections::BTreeMap;
use std::io::Write;

use imbrex_units::{Command, Direction, Operation};

use crate::request::{Request, TraceError};

/// Description of a format that traces can be written in: an entry of the registry of writers.
#[derive(Debug)]
pub struct WriterInfo {
    /// Name of the format, equal to the name of its reader in [`Format::name`](crate::formats::Format::name).
    pub name: &'static str,
    /// One line for lists of formats: the contents of the format, or the program that reads it.
    pub summary: &'static str,
    /// Usual extension of the format's file names, without the dot.
    pub extension: &'static str,
    /// Begins a trace in this format: returns a writer into the given output, and may write a header. The text is the
    /// name of the trace for error messages.
    pub open: fn(Output, &str) -> WriterResult,
}

/// The destination of a trace that is written, such as a file.
pub type Output = Box<dyn Write + Send>;

/// The writer of a format, or the error because of which the trace could not be begun.
pub type WriterResult = Result<Box<dyn Writer>, TraceError>;

/// Counts of the requests written to a trace, and of the information lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Number of requests written. Requests left out because the format cannot represent them do not count.
    pub requests: u64,
    /// Number of losses by reason, a text for the user such as `trims left out`. A loss is a request left out, or a
    /// detail of a written request that the format cannot store.
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

/// A trace that is being written in one format.
pub trait Writer: Send {
    /// Appends `request` to the trace. If the format cannot represent the request, leaves it out and counts a loss.
    ///
    /// # Errors
    ///
    /// If the request has no time of its own (only [`When::At`](crate::When::At) has one), if its address has no place
    /// in the format, or if the output cannot be written.
    fn write(&mut self, request: &Request) -> Result<(), TraceError>;

    /// Writes the rest of the trace and flushes the output. Returns the counts of requests written and of losses. If
    /// this method is not called, the trace is cut short.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    fn finish(self: Box<Self>) -> Result<Written, TraceError>;
}
