//! A request from outside the simulation, and the trait of sources that yield requests.

use std::fmt;

use imbrex_units::{Command, SimDuration, SimTime};

use crate::facts::Facts;

/// The time at which a request arrives at the drive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// At this simulated time. The reader of a trace gives the first request the time 0.
    At(SimTime),
    /// This long after a slot in the drive's queue becomes free. Generators that keep a number of requests outstanding
    /// use this variant.
    Free(SimDuration),
    /// This long after all earlier requests have completed: the request follows a pause in which the drive is idle.
    Drained(SimDuration),
}

/// One request of a trace or of a generator: a command, its device and its time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// Time at which the request arrives at the drive.
    pub when: When,
    /// Number of the device that the request addresses, as the trace numbers its devices; 0 if the trace does not
    /// number them or the request is generated.
    pub device: u32,
    /// Operation, first sector and length of the request, in sectors of 512 bytes.
    pub command: Command,
}

/// An error in a trace: its place and its reason.
#[derive(Debug, thiserror::Error)]
pub struct TraceError {
    /// Place of the error: the name of the trace, and the line or the byte offset where it is known.
    pub place: String,
    /// Description of the fault at `place`, for the user. If the trace is malformed, the text names the contents
    /// expected.
    pub reason: String,
    /// Error of the operating system that caused this error; `None` if there is none.
    #[source]
    pub cause: Option<std::io::Error>,
    /// Whether the cause is an option that the user gave. `false` if the trace itself is at fault or cannot be read.
    pub is_usage: bool,
}

impl TraceError {
    /// Returns an error in the trace at `place`: `cause` is `None` and `is_usage` is `false`.
    pub fn new(place: impl Into<String>, reason: impl Into<String>) -> TraceError {
        TraceError { place: place.into(), reason: reason.into(), cause: None, is_usage: false }
    }

    /// Returns an error at `place` with `cause`, the error of the operating system; `is_usage` is `false`.
    pub fn caused(place: impl Into<String>, reason: impl Into<String>, cause: std::io::Error) -> TraceError {
        TraceError { cause: Some(cause), ..TraceError::new(place, reason) }
    }

    /// Returns the error for an option of the user that is wrong or does not apply to the trace called `place`:
    /// `is_usage` is `true`.
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

/// A source of requests: a reader of a trace, a generator, or a list in memory.
pub trait Source: Send {
    /// Returns the next request, or `None` at the end.
    ///
    /// `now` is the simulated time of the call: a slot in the drive's queue is free. Generators measure the `runtime`
    /// of a phase and the end of a pause by `now`; readers of traces ignore it.
    ///
    /// # Errors
    ///
    /// If the trace cannot be read, or if a record is malformed and the options do not say to skip it. At the end of a
    /// trace: if too many records were malformed, or if the trace has no request for the device that the user chose.
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError>;

    /// Returns the requests that the next calls of [`Source::next`] will return, in order, as far as the source has
    /// them in memory. The default is an empty list, which does not mean that the source has ended.
    fn upcoming(&self) -> &[Request] {
        &[]
    }

    /// Returns whether the requests depend on the times passed to [`Source::next`]. If so, drives that are compared
    /// cannot share one list of requests: each needs its own source. The default is `false`.
    fn heeds_time(&self) -> bool {
        false
    }

    /// Returns the expected number of requests from beginning to end, including those already yielded, or `None` if it
    /// is unknown. It is an estimate for the display of progress: malformed and filtered records may be included. The
    /// default is `None`.
    fn expected_requests(&self) -> Option<u64> {
        None
    }

    /// Returns the counts of records left out and the reader's decisions so far. They are complete once
    /// [`Source::next`] has returned `None`. The default, for sources that are not traces, is [`Facts::default`].
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
