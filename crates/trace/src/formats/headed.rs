//! Formats whose first line names the columns of all others.

use crate::admission::{Devices, Malformed, Parsed};
use crate::lines::LineFormat;

/// Where the columns of a format are.
pub(super) trait Header: Copy + Send + 'static {
    /// What a header and lines should be, for errors.
    const EXPECTED: &'static str;

    /// As this first line has them; nothing if it is no header of the format.
    fn of(line: &[u8]) -> Option<Self>;

    /// What a line of such columns is; nothing if it is none.
    fn request(self, line: &[u8]) -> Option<Result<Parsed, Malformed>>;
}

/// The reader of such a format.
pub(super) struct Headed<H> {
    header: Option<H>,
}

impl<H> Headed<H> {
    /// One that has not seen its header yet.
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
