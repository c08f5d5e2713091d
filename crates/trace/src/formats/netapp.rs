//! The CSV of NetApp's hfplayer, with a header that names the columns. The reader uses `ELAPSED_USECS`, `CMD`, `LBA`,
//! `NBLKS`.
//!
//! Times are in microseconds since the start, LBA and NBLKS in sectors of 512 bytes. The commands `RD_IN` and `WR_IN`
//! are requests; other lines, such as those of completions, are not.

use imbrex_units::Operation;

use crate::admission::{Malformed, Parsed, sector_record};
use crate::fields;
use crate::lines::LineReader;
use crate::options::TimeUnit;

use super::format::{Confidence, Format};
use super::headed::{Headed, Header};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "netapp",
    summary: "CSV of NetApp's hfplayer",
    detect: |head| match Columns::of(head.first_line()) {
        Some(_) => Confidence::Yes,
        None => Confidence::No,
    },
    open: |input, options| LineReader::open(input, options, Headed::<Columns>::new(), Vec::new()),
};

/// Positions of the columns.
#[derive(Clone, Copy)]
struct Columns {
    time: usize,
    command: usize,
    lba: usize,
    sectors: usize,
}

impl Header for Columns {
    const EXPECTED: &'static str = "a header with ELAPSED_USECS, CMD, LBA and NBLKS, and lines of those columns";

    fn of(header: &[u8]) -> Option<Columns> {
        let place = |name: &str| field_places(header).position(|field| field.eq_ignore_ascii_case(name.as_bytes()));
        Some(Columns {
            time: place("ELAPSED_USECS")?,
            command: place("CMD")?,
            lba: place("LBA")?,
            sectors: place("NBLKS")?,
        })
    }

    fn request(self, line: &[u8]) -> Option<Result<Parsed, Malformed>> {
        let field = |place: usize| field_places(line).nth(place);
        let operation = match field(self.command)? {
            b"RD_IN" => Operation::Read,
            b"WR_IN" => Operation::Write,
            word if !word.is_empty() => return Some(Ok(Parsed::NotRequest)),
            _ => return None,
        };
        let time_ns = fields::time_ns(field(self.time)?, TimeUnit::Microseconds)?;
        let (lba, sectors) = (fields::number(field(self.lba)?)?, fields::number(field(self.sectors)?)?);
        Some(sector_record(time_ns, 0, operation, lba, sectors))
    }
}

fn field_places(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    //! Goal: columns are found by their names, other commands are not requests. Method: cases worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const TRACE: &str = "ELAPSED_USECS,CMD,LBA,NBLKS\n10,WR_IN,4096,8\n15,RD_OUT,1,1\n25, RD_IN, 16, 2\n";

    #[test]
    fn columns_have_names() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("netapp"));
        let expected = [timed(0, 0, Command::write(4096, 8)), timed(15_000, 0, Command::read(16, 2))];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
        assert_eq!(facts_of(TRACE, &TraceOptions::default()).not_requests, 1);
        let other = "FLAGS,NBLKS,LBA,CMD,ELAPSED_USECS\n0,8,4096,WR_IN,10\n0,2,16,RD_IN,25\n";
        assert_eq!(requests_of(other, &TraceOptions::default()), expected);
    }

    #[test]
    fn a_number_that_is_none_is_an_error() {
        let error = error_of(TRACE.replace("4096", "x"), &TraceOptions::default());
        assert!(error.starts_with("t, line 2: expected a header with ELAPSED_USECS"), "{error}");
    }
}
