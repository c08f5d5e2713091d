//! A request as it comes from outside, and the trait of whatever yields them.

use std::fmt;

use imbrex_units::{Command, SimDuration, SimTime};

use crate::facts::Facts;

/// When a request is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// At this time after the trace began.
    At(SimTime),
    /// This long after a place in the queue is free (generators that keep a queue full).
    Free(SimDuration),
    /// This long after everything before it has completed.
    Drained(SimDuration),
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// When it is made.
    pub when: When,
    /// The device it is for, as the format numbers it; 0 where there is one.
    pub device: u32,
    /// What is asked, in sectors of 512 bytes.
    pub command: Command,
}

/// What went wrong in a trace: where, and what was expected.
#[derive(Debug, thiserror::Error)]
pub struct TraceError {
    /// File and line or offset.
    pub place: String,
    /// What is wrong there and what was expected.
    pub reason: String,
    /// The system's own word, if it is to blame.
    #[source]
    pub cause: Option<std::io::Error>,
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

/// Whatever yields requests: a reader of a trace, or a generator. Streaming, in constant memory.
pub trait Source: Send {
    /// The next request; `now` is the simulated time at which a place in the queue is free (generators with a
    /// `runtime` end by it; traces ignore it).
    fn next(&mut self, now: SimTime) -> Result<Option<Request>, TraceError>;

    /// What [`Source::next`] will give next, as far as that is known without asking for it: a hint.
    fn upcoming(&self) -> &[Request] {
        &[]
    }

    /// Whether the requests depend on the times that [`Source::next`] is called with: each drive then needs a source of its own.
    fn heeds_time(&self) -> bool {
        false
    }

    /// Requests in all, where known: for progress.
    fn expected_requests(&self) -> Option<u64> {
        None
    }

    /// What was left out or decided so far; complete once the last request was yielded.
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
