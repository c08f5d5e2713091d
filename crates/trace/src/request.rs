//! A request from outside the simulation, and the trait of sources that yield requests.

use std::fmt;

use imbrex_units::{Command, SimDuration, SimTime};

use crate::facts::Facts;

/// The time at which a request is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// At this time after the trace began.
    At(SimTime),
    /// This long after a slot in the queue becomes free (generators that keep a queue full).
    Free(SimDuration),
    /// This long after all earlier requests have completed.
    Drained(SimDuration),
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Time at which the request is made.
    pub when: When,
    /// Number of the device, as the format numbers it; 0 where there is only one.
    pub device: u32,
    /// The command, in sectors of 512 bytes.
    pub command: Command,
}

/// An error in a trace: its place and its reason.
#[derive(Debug, thiserror::Error)]
pub struct TraceError {
    /// Place of the error: the name of the trace, and the line or the byte offset where it is known.
    pub place: String,
    /// Description of the fault at `place`. If other contents were expected there, the text names them.
    pub reason: String,
    /// Error of the operating system that caused this error; `None` if there is none.
    #[source]
    pub cause: Option<std::io::Error>,
    /// Whether an option is wrong, rather than the trace.
    pub is_usage: bool,
}

impl TraceError {
    /// Returns an error in the trace at `place`.
    pub fn new(place: impl Into<String>, reason: impl Into<String>) -> TraceError {
        TraceError { place: place.into(), reason: reason.into(), cause: None, is_usage: false }
    }

    /// Returns an error at `place` whose cause is an error of the operating system.
    pub fn caused(place: impl Into<String>, reason: impl Into<String>, cause: std::io::Error) -> TraceError {
        TraceError { cause: Some(cause), ..TraceError::new(place, reason) }
    }

    /// Returns the error of an option that does not suit the trace called `place`.
    pub fn usage(place: impl Into<String>, reason: impl Into<String>) -> TraceError {
        TraceError { is_usage: true, ..TraceError::new(place, reason) }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)?;
        match &self.cause {
            Some(cause) => write!(f, " ({cause})"),
            None => Ok(()),
        }
    }
}

/// A source of requests: a reader of a trace, or a generator. It streams in constant memory.
pub trait Source: Send {
    /// Returns the next request, or `None` at the end. `now` is the simulated time at which a slot in the queue is
    /// free: generators with a `runtime` end by it, and traces ignore it.
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError>;

    /// Returns the next requests that [`Source::next`] will return, as far as they are known without calling it: a
    /// hint.
    fn upcoming(&self) -> &[Request] {
        &[]
    }

    /// Returns whether the requests depend on the times passed to [`Source::next`]. Each drive then needs its own
    /// source.
    fn heeds_time(&self) -> bool {
        false
    }

    /// Returns the total number of requests, where known. Serves to display progress.
    fn expected_requests(&self) -> Option<u64> {
        None
    }

    /// Returns the records left out and the decisions made so far. The facts are complete once the last request was
    /// yielded.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError> {
        (**self).next(now)
    }

    fn upcoming(&self) -> &[Request] {
        (**self).upcoming()
    }

    fn heeds_time(&self) -> bool {
        (**self).heeds_time()
    }

    fn expected_requests(&self) -> Option<u64> {
        (**self).expected_requests()
    }

    fn facts(&self) -> Facts {
        (**self).facts()
    }
}
