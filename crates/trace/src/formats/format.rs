//! The description of a trace format: how it is recognised by the beginning of a trace, and how a trace is opened.

use crate::input::Unpacked;
use crate::options::TraceOptions;
use crate::request::{Source, TraceError};

/// An entry of the registry of formats.
#[derive(Debug)]
pub struct Format {
    /// Name of the format for `--format`.
    pub name: &'static str,
    /// One line: the contents of the format, or the program that writes it.
    pub summary: &'static str,
    /// Names of the command-line options that apply to this format, beside `format`, `device` and `skip-malformed`,
    /// which apply to all.
    pub options: &'static [&'static str],
    /// Returns the confidence that a trace with this head has this format.
    pub detect: fn(&Head<'_>) -> Confidence,
    /// Opens a trace in this format.
    pub open: fn(Unpacked, &TraceOptions) -> OpenResult,
}

/// The source of a trace's requests, or the error that prevents it.
pub type OpenResult = Result<Box<dyn Source>, TraceError>;

/// Confidence of a recognition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// The trace has another format.
    No,
    /// The trace parses as this format, but might also parse as another.
    Maybe,
    /// The trace has the distinctive mark of this format.
    Yes,
}

/// The beginning of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Bytes of the head, decompressed.
    pub bytes: &'a [u8],
    /// Whether the head is the whole trace.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// Returns the head of `input`.
    pub fn of(input: &'a Unpacked) -> Head<'a> {
        Head { bytes: &input.head, whole: input.whole }
    }

    /// Returns the last byte of each line: a line feed, or a carriage return if the head has carriage returns and no
    /// line feed.
    pub fn line_end(&self) -> u8 {
        if !self.bytes.contains(&b'\n') && self.bytes.contains(&b'\r') { b'\r' } else { b'\n' }
    }

    /// Returns the lines of the head without line endings, without the byte order mark and without a partial last line.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let end = self.line_end();
        let text = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes);
        let last = text.iter().rposition(|&byte| byte == end).map_or(0, |at| at + 1);
        let text = if self.whole { text } else { &text[..last] };
        text.split(move |&byte| byte == end).map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Returns the lines of the head that are not blank.
    pub fn full_lines(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines().filter(|line| !line.trim_ascii().is_empty())
    }

    /// Returns the first line of the head that is not blank, or an empty line if there is none.
    pub fn first_line(&self) -> &'a [u8] {
        self.full_lines().next().unwrap_or(&[])
    }
}
