//! What a writer of traces is, and what it says of the trace it wrote.

use std::collections::BTreeMap;
use std::io::Write;

use imbrex_units::{Command, Direction, Operation};

use crate::request::{Request, TraceError};

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
    pub(super) fn lose(&mut self, reason: &'static str) {
        *self.lost.entry(reason).or_insert(0) += 1;
    }

    /// Which way `command` moves sectors, for formats that know nothing else; what they cannot say counts as lost.
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

/// A trace being written.
pub trait Writer: Send {
    /// Appends a request.
    fn write(&mut self, request: &Request) -> Result<(), TraceError>;

    /// Ends the trace; without it the file is cut short.
    fn finish(self: Box<Self>) -> Result<Written, TraceError>;
}
