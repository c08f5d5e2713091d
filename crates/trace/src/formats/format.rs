//! The description of a trace format: how it is recognised by the beginning of a trace, and how a trace is opened.

use crate::input::Unpacked;
use crate::options::TraceOptions;
use crate::request::{Source, TraceError};

/// Description of a format that traces are read from: an entry of the registry of formats.
#[derive(Debug)]
pub struct Format {
    /// Name of the format, as the user writes it after `--format`.
    pub name: &'static str,
    /// One line for lists of formats: the contents of the format, or the program that writes it.
    pub summary: &'static str,
    /// Command-line names, without `--`, of the options that apply to this format, beside `format`, `device` and
    /// `skip-malformed`, which apply to all formats.
    pub options: &'static [&'static str],
    /// Returns the confidence that a trace with this head is in this format.
    pub detect: fn(&Head<'_>) -> Confidence,
    /// Opens a trace as this format, without recognising it first. The options are those of the user.
    pub open: fn(Unpacked, &TraceOptions) -> OpenResult,
}

/// The source of a trace's requests, or the error that prevents it.
pub type OpenResult = Result<Box<dyn Source>, TraceError>;

/// Confidence that a trace has a format, judged by the beginning of the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// The trace is not in this format, or this format is never recognised by contents.
    No,
    /// The beginning of the trace parses as this format, but might also parse as another.
    Maybe,
    /// The beginning of the trace has the distinctive mark of this format, such as a magic number or a header.
    Yes,
}

/// The beginning of a decompressed trace, by which its format is recognised.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The first bytes of the trace after decompression: at most 64 KiB.
    pub bytes: &'a [u8],
    /// Whether `bytes` are the whole trace.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// Returns the head of the trace `input`: its first bytes after decompression, at most 64 KiB.
    pub fn of(input: &'a Unpacked) -> Head<'a> {
        Head { bytes: &input.head, whole: input.whole }
    }

    /// Returns the byte that ends a line: a carriage return if the head has carriage returns and no line feed, else a
    /// line feed.
    pub fn line_end(&self) -> u8 {
        if !self.bytes.contains(&b'\n') && self.bytes.contains(&b'\r') { b'\r' } else { b'\n' }
    }

    /// Returns the lines of the head, without line endings and without a byte order mark at the start. Leaves out the
    /// partial last line unless the head is the whole trace. After a final line ending, the last line is empty if the
    /// head is the whole trace.
    pub fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let end = self.line_end();
        let text = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.bytes);
        let last = text.iter().rposition(|&byte| byte == end).map_or(0, |at| at + 1);
        let text = if self.whole { text } else { &text[..last] };
        text.split(move |&byte| byte == end).map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Returns the lines of the head that have a byte other than white space, without line endings. Leaves out the
    /// partial last line unless the head is the whole trace.
    pub fn full_lines(&self) -> impl Iterator<Item = &'a [u8]> {
        self.lines().filter(|line| !line.trim_ascii().is_empty())
    }

    /// Returns the first line of the head that is not blank, or an empty slice if there is none.
    pub fn first_line(&self) -> &'a [u8] {
        self.full_lines().next().unwrap_or(&[])
    }
}
