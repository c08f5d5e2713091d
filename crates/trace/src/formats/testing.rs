//! Helpers for the tests of all formats: a trace in memory, read to its end.

use bytes::Bytes;
use imbrex_units::{Command, SimTime};

use crate::facts::Facts;
use crate::formats::{Head, open, recognise};
use crate::input::Input;
use crate::options::TraceOptions;
use crate::recorded::Recorded;
use crate::request::{Request, Source, TraceError, When};

fn read(trace: impl AsRef<[u8]>, options: &TraceOptions) -> Result<Recorded, TraceError> {
    let input = Input::bytes("t", Bytes::copy_from_slice(trace.as_ref()));
    Recorded::read(&mut *open(input, options)?.source)
}

/// Returns all requests of `trace`, whose name in messages is `t`.
pub(crate) fn requests_of(trace: impl AsRef<[u8]>, options: &TraceOptions) -> Vec<Request> {
    read(trace, options).expect("a sound trace").requests().to_vec()
}

/// Returns the facts after `trace` was read to its end.
pub(crate) fn facts_of(trace: impl AsRef<[u8]>, options: &TraceOptions) -> Facts {
    read(trace, options).expect("a sound trace").facts()
}

/// Returns the error with which reading `trace` ends.
pub(crate) fn error_of(trace: impl AsRef<[u8]>, options: &TraceOptions) -> String {
    read(trace, options).map(|recorded| recorded.requests().len()).expect_err("a broken trace").to_string()
}

/// Returns the name of the format recognised for `trace`.
pub(crate) fn format_of(trace: &[u8]) -> Option<&'static str> {
    recognise(&Head { bytes: trace, whole: true }).map(|format| format.name)
}

/// Returns a request at `time_ns`.
pub(crate) fn timed(time_ns: u64, device: u32, command: Command) -> Request {
    Request { when: When::At(SimTime(time_ns)), device, command }
}
