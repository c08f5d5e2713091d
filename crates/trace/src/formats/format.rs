//! What a trace format is: how it is recognised by the beginning of a trace, and how one is opened.

use crate::input::Unpacked;
use crate::options::TraceOptions;
use crate::request::{Source, TraceError};

/// A format of the registry.
#[derive(Debug)]
pub struct Format {
    /// The word for `--format`.
    pub name: &'static str,
    /// One line: what it is and who writes it.
    pub summary: &'static str,
    /// How sure one can be that a trace that begins so is in this format.
    pub detect: fn(&Head<'_>) -> Confidence,
    /// The source of a trace in this format.
    pub open: fn(Unpacked, &TraceOptions) -> OpenResult,
}

/// The source a format makes of a trace, or why it cannot.
pub type OpenResult = Result<Box<dyn Source>, TraceError>;

/// How sure a recognition is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// It is something else.
    No,
    /// It parses as this format, as it might as another.
    Maybe,
    /// It bears the format's mark.
    Yes,
}

/// The beginning of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Its bytes, unpacked.
    pub bytes: &'a [u8],
    /// Whether that is all of it.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// The head of `input`.
    pub fn of(input: &'a Unpacked) -> Head<'a> {
        Head { bytes: &input.head, whole: input.whole }
    }

    /// Its lines without their ends, byte order mark and last partial line left off.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let text = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes);
        let last = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let text = if self.whole { text } else { &text[..last] };
        text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Its lines that are not blank.
    pub fn full_lines(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines().filter(|line| !line.trim_ascii().is_empty())
    }

    /// Its first line that is not blank; empty where there is none.
    pub fn first_line(&self) -> &'a [u8] {
        self.full_lines().next().unwrap_or(&[])
    }
}
