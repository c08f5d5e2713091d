//! The reader of every text format: finds lines in large blocks and parses each line in the buffer.
//!
//! Invariants:
//! 1. A line is parsed in place, without allocation. Only a partial line is copied, to the front of the buffer.
//! 2. Lines are numbered from 1, including blank and skipped ones. A carriage return at a line's end, and a byte order
//!    mark before the first line, are not part of a line.
//! 3. A line has at most [`LINE_BYTES_MAX`] bytes. An input with longer lines is not text, and an error.

use std::io::Read;
use std::ops::Range;

use imbrex_units::SimTime;

use crate::admission::{Admission, Devices, Malformed, Parsed};
use crate::facts::Facts;
use crate::formats::Head;
use crate::input::{Contents, RandomAccess, Unpacked, unpacking_failed};
use crate::options::TraceOptions;
use crate::request::{Request, Source, TraceError};
use crate::table::quoting::Unquoter;
use crate::table::{Layout, Table};

/// Bytes read at once: enough to make the system call cheap, and few enough to stay in the second-level cache.
const BLOCK_BYTES: usize = 256 * 1024;

/// Maximum length of a line in bytes.
pub(crate) const LINE_BYTES_MAX: usize = BLOCK_BYTES;

/// The layout of a text format.
pub(crate) trait LineFormat: Send + 'static {
    /// Parses `line`.
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed>;

    /// Returns the delimiter of fields that may be quoted (RFC 4180), or `None` if this format has no quoted fields.
    fn quoted_delimiter(&self) -> Option<u8> {
        None
    }

    /// Parses a row whose quotation marks were removed; [`FIELD_END`](crate::table::quoting::FIELD_END) stands between
    /// its fields.
    fn parse_unquoted(&mut self, row: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        Err(Malformed::new("a row without quotation marks", row))
    }

    /// Returns the second request of the line parsed last, if that line stands for two requests.
    #[inline]
    fn second(&mut self) -> Option<Parsed> {
        None
    }
}

/// Splits a stream into lines.
struct Lines {
    reader: Box<dyn Read + Send>,
    name: String,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the stream before the start of the buffer.
    offset: u64,
    number: u64,
    at_end: bool,
    /// Last byte of each line.
    line_end: u8,
    /// Whether the buffer may contain quotation marks.
    has_marks: bool,
}

impl Lines {
    fn new(reader: Box<dyn Read + Send>, name: String, line_end: u8) -> Lines {
        let buffer = vec![0; BLOCK_BYTES + LINE_BYTES_MAX];
        Lines {
            reader,
            name,
            buffer,
            start: 0,
            end: 0,
            offset: 0,
            number: 0,
            at_end: false,
            line_end,
            has_marks: false,
        }
    }

    /// Advances to the next line and returns its range in the buffer, without its line ending. Returns `None` at the
    /// end.
    #[inline]
    fn advance(&mut self) -> Result<Option<Range<usize>>, TraceError> {
        let mut searched = 0;
        loop {
            let from = self.start + searched;
            if let Some(found) = memchr::memchr(self.line_end, &self.buffer[from..self.end]) {
                let line = self.start..from + found;
                self.start = from + found + 1;
                self.number += 1;
                return Ok(Some(self.without_return(line)));
            }
            searched = self.end - self.start;
            if self.at_end {
                return Ok(self.last_line());
            }
            self.refill()?;
        }
    }

    #[inline]
    fn without_return(&self, line: Range<usize>) -> Range<usize> {
        let carried = line.end > line.start && self.buffer[line.end - 1] == b'\r';
        line.start..line.end - usize::from(carried)
    }

    /// Returns the range of the text after the last line ending, if there is any.
    fn last_line(&mut self) -> Option<Range<usize>> {
        let line = self.start..self.end;
        self.start = self.end;
        self.number += u64::from(!line.is_empty());
        (!line.is_empty()).then(|| self.without_return(line))
    }

    /// Moves the partial line to the front of the buffer and reads a block behind it.
    #[cold]
    fn refill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.offset += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        if self.end >= LINE_BYTES_MAX {
            let place = format!("{}, line {}", self.name, self.number + 1);
            let reason = format!("no end of line within {LINE_BYTES_MAX} bytes: this is not a text trace");
            return Err(TraceError::new(place, reason));
        }
        let first = self.offset == 0 && self.end == 0;
        let goal = self.end + BLOCK_BYTES;
        while self.end < goal {
            match self.reader.read(&mut self.buffer[self.end..goal]) {
                Ok(0) => {
                    self.at_end = true;
                    break;
                }
                Ok(count) => self.end += count,
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(unpacking_failed(&self.name, self.offset + self.end as u64, cause)),
            }
        }
        if first && self.buffer[..self.end].starts_with(b"\xef\xbb\xbf") {
            self.start = 3;
        }
        self.has_marks = memchr::memchr(b'"', &self.buffer[..self.end]).is_some();
        Ok(())
    }
}

/// The source of requests for a trace in a text format.
pub(crate) struct LineReader<F> {
    lines: Lines,
    format: F,
    admission: Admission,
    unquoter: Option<Unquoter>,
    /// Number of the first line of a quoted row that has not ended.
    begun: Option<u64>,
}

impl LineReader<Table> {
    /// Returns a source that reads `input` as a table with `layout`.
    pub(crate) fn open_table(
        input: Unpacked,
        options: &TraceOptions,
        layout: Layout,
        delimiter: u8,
    ) -> Result<Box<dyn Source>, TraceError> {
        let (table, notes) = Table::open_input(layout, delimiter, &input)?;
        LineReader::open(input, options, table, notes)
    }
}

impl<F: LineFormat> LineReader<F> {
    /// Returns a source that reads `input` as `format`. `notes` are the decisions made while the format was recognised,
    /// for the user.
    pub(crate) fn open(
        input: Unpacked,
        options: &TraceOptions,
        format: F,
        notes: Vec<String>,
    ) -> Result<Box<dyn Source>, TraceError> {
        if input.head.starts_with(b"\xff\xfe") || input.head.starts_with(b"\xfe\xff") {
            let reason = "this text is UTF-16: convert it to UTF-8 first, as with iconv -f UTF-16 -t UTF-8";
            return Err(TraceError::new(input.name, reason));
        }
        let mut admission = Admission::new(input.name.clone(), options);
        notes.into_iter().for_each(|note| admission.note(note));
        let line_end = Head::of(&input).line_end();
        let lines = Lines::new(input.contents.into_stream(), input.name, line_end);
        let unquoter = format.quoted_delimiter().map(Unquoter::new);
        Ok(Box::new(LineReader { lines, format, admission, unquoter, begun: None }))
    }

    /// Parses `line`, which has quotation marks or continues a quoted row.
    #[cold]
    fn parse_quoted(&mut self, line: Range<usize>) -> Result<Parsed, Malformed> {
        let Some(unquoter) = &mut self.unquoter else { return Ok(Parsed::Nothing) };
        match unquoter.line(&self.lines.buffer[line]) {
            Some(row) => {
                self.begun = None;
                self.format.parse_unquoted(row, &mut self.admission.devices)
            }
            None => {
                self.begun.get_or_insert(self.lines.number);
                Ok(Parsed::Nothing)
            }
        }
    }

    /// Ends the trace. A quoted row that has not ended is malformed.
    fn finish(&mut self) -> Result<Option<Request>, TraceError> {
        if let Some(line) = self.begun.take() {
            let malformed = Malformed::of("a quotation mark is opened and not closed".into());
            self.admission.malformed(&format!("line {line}"), malformed)?;
        }
        self.admission.finish()
    }

    #[cold]
    fn malformed(&mut self, malformed: Malformed) -> Result<(), TraceError> {
        let last = self.lines.at_end && self.lines.start == self.lines.end;
        let unended = last && self.lines.end > 0 && self.lines.buffer[self.lines.end - 1] != b'\n';
        let hint = if unended { " (the last, without its end: the file may be cut short)" } else { "" };
        self.admission.malformed(&format!("line {}{hint}", self.lines.number), malformed)
    }
}

impl<F: LineFormat> Source for LineReader<F> {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        loop {
            if let Some(request) = self.format.second().and_then(|parsed| self.admission.admit(parsed)) {
                return Ok(Some(request));
            }
            let Some(line) = self.lines.advance()? else {
                return self.finish();
            };
            let is_quoted = self.unquoter.is_some()
                && (self.begun.is_some()
                    || self.lines.has_marks && memchr::memchr(b'"', &self.lines.buffer[line.clone()]).is_some());
            let parsed = if is_quoted {
                self.parse_quoted(line)
            } else {
                self.format.parse(&self.lines.buffer[line], &mut self.admission.devices)
            };
            match parsed {
                Ok(parsed) => {
                    if let Some(request) = self.admission.admit(parsed) {
                        return Ok(Some(request));
                    }
                }
                Err(malformed) => self.malformed(malformed)?,
            }
        }
    }

    fn facts(&self) -> Facts {
        self.admission.facts()
    }
}

impl Contents {
    /// Returns a reader of the whole decompressed trace. A file with random access is read only from its current
    /// position on, and [`Input::unpack`](crate::Input::unpack) leaves that behind the head.
    pub fn into_stream(self) -> Box<dyn Read + Send> {
        match self {
            Contents::Stream(reader) => reader,
            Contents::Random(RandomAccess::File(file)) => Box::new(file),
            Contents::Random(RandomAccess::Bytes(bytes)) => Box::new(std::io::Cursor::new(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: lines are complete wherever blocks end. Method: a reader that returns few bytes at a time, compared with
    //! the standard library's own lines.

    use super::*;

    /// A reader that returns at most `step` bytes at a time.
    struct Drip(std::io::Cursor<Vec<u8>>, usize);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let step = self.1.min(buffer.len());
            self.0.read(&mut buffer[..step])
        }
    }

    fn lines_of(text: &[u8], step: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Box::new(Drip(std::io::Cursor::new(text.to_vec()), step)), "t".into(), b'\n');
        let mut found = Vec::new();
        while let Some(line) = lines.advance().unwrap() {
            found.push(lines.buffer[line].to_vec());
        }
        assert_eq!(lines.number as usize, found.len());
        found
    }

    #[test]
    fn lines_come_out_whole() {
        let text = "\u{feff}first\r\n\nthird\nlast";
        let expected: Vec<Vec<u8>> = text[3..].lines().map(|line| line.as_bytes().to_vec()).collect();
        assert_eq!(lines_of(text.as_bytes(), 1), expected);
        assert_eq!(lines_of(text.as_bytes(), 100), expected);
        let long: String = (0..100_000).map(|number| format!("{number},x\n")).collect();
        let expected: Vec<Vec<u8>> = long.lines().map(|line| line.as_bytes().to_vec()).collect();
        assert_eq!(lines_of(long.as_bytes(), 7_777), expected);
    }

    #[test]
    fn an_endless_line_is_an_error() {
        let text = vec![b'x'; 3 * LINE_BYTES_MAX];
        let mut lines = Lines::new(Box::new(std::io::Cursor::new(text)), "t".into(), b'\n');
        assert!(lines.advance().unwrap_err().to_string().starts_with("t, line 1: no end of line"));
    }
}
