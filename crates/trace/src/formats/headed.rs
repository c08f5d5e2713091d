//! Formats with a first line that names the columns of all other lines.

use crate::admission::{Devices, Malformed, Parsed};
use crate::lines::LineFormat;

/// Positions of a format's columns.
pub(super) trait Header: Copy + Send + 'static {
    /// Description of a valid header and its lines, for error messages.
    const EXPECTED: &'static str;

    /// Returns the columns that the header `line` names, or `None` if the line is not a header of this format.
    fn of(line: &[u8]) -> Option<Self>;

    /// Parses a line with these columns. Returns `None` if the line is malformed.
    fn request(self, line: &[u8]) -> Option<Result<Parsed, Malformed>>;
}

/// The parser of a format with a header.
pub(super) struct Headed<H> {
    header: Option<H>,
}

impl<H> Headed<H> {
    /// Returns a parser that expects the header next.
    pub(super) fn new() -> Headed<H> {
        Headed { header: None }
    }
}

impl<H: Header> LineFormat for Headed<H> {
    fn parse(&mut self, line: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let malformed = || Err(Malformed::new(H::EXPECTED, line));
        match self.header {
            Some(header) => header.request(line).unwrap_or_else(malformed),
            None => {
                self.header = H::of(line);
                self.header.map_or_else(malformed, |_| Ok(Parsed::Nothing))
            }
        }
    }
}
