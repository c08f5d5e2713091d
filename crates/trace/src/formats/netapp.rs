//! The CSV of NetApp's hfplayer: a header that names the columns, of which `ELAPSED_USECS`, `CMD`, `LBA` and `NBLKS` count.
//!
//! Times are in microseconds since the start, LBA and NBLKS in sectors of 512 bytes. Commands are `RD_IN` and `WR_IN`; other
//! lines, such as those of completions, are no requests.

use imbrex_units::Operation;

use crate::admission::{sector_record, Devices, Malformed, Parsed};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;

use super::format::{Confidence, Format};

/// The registry's entry.
pub const FORMAT: Format = Format {
    name: "netapp",
    summary: "CSV of NetApp's hfplayer",
    detect: |head| match Columns::of(head.first_line()) {
        Some(_) => Confidence::Yes,
        None => Confidence::No,
    },
    open: |input, options| LineReader::open(input, options, NetApp { columns: None }, Vec::new()),
};

const EXPECTED: &str = "a header with ELAPSED_USECS, CMD, LBA and NBLKS, and lines of those columns";

/// Where the columns are.
#[derive(Clone, Copy)]
struct Columns {
    time: usize,
    command: usize,
    lba: usize,
    sectors: usize,
}

impl Columns {
    fn of(header: &[u8]) -> Option<Columns> {
        let place = |name: &str| field_places(header).position(|field| field.eq_ignore_ascii_case(name.as_bytes()));
        Some(Columns {
            time: place("ELAPSED_USECS")?,
            command: place("CMD")?,
            lba: place("LBA")?,
            sectors: place("NBLKS")?,
        })
    }
}

fn field_places(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

struct NetApp {
    columns: Option<Columns>,
}

impl LineFormat for NetApp {
    fn parse(&mut self, line: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let Some(columns) = self.columns else {
            self.columns = Columns::of(line);
            return if self.columns.is_some() { Ok(Parsed::Nothing) } else { Err(Malformed::new(EXPECTED, line)) };
        };
        request(columns, line).unwrap_or_else(|| Err(Malformed::new(EXPECTED, line)))
    }
}

fn request(columns: Columns, line: &[u8]) -> Option<Result<Parsed, Malformed>> {
    let field = |place: usize| field_places(line).nth(place);
    let operation = match field(columns.command)? {
        b"RD_IN" => Operation::Read,
        b"WR_IN" => Operation::Write,
        word if !word.is_empty() => return Some(Ok(Parsed::NotRequest)),
        _ => return None,
    };
    let time_ns = fields::time_ns(field(columns.time)?, TimeUnit::Microseconds)?;
    let (lba, sectors) = (fields::number(field(columns.lba)?)?, fields::number(field(columns.sectors)?)?);
    Some(sector_record(time_ns, 0, operation, lba, sectors))
}

#[cfg(test)]
mod tests {
    //! Goal: columns are found by their names, other commands are none. Method: worked by hand.

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
