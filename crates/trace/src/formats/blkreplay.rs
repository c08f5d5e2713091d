//! The `.load` files of blkreplay: a notice in free text, a line `start ; sector; length ; op ; …`, then one request a
//! line as `seconds.nanoseconds ; sector ; sectors ; R|W ; …`. The operation may have the letters that blktrace adds,
//! as in `RA` for read-ahead. Published files repeat the notice and the header line, so only the first request ends the
//! notice.

use imbrex_units::Operation;

use crate::admission::{Devices, Malformed, Parsed, sector_record};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;
use crate::table;

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "blkreplay",
    summary: "load files of blkreplay",
    options: &[],
    detect,
    open: |input, options| LineReader::open(input, options, BlkReplay::Notice { lines: 0 }, Vec::new()),
};

/// Maximum number of lines of a notice.
const NOTICE_LINES_MAX: u32 = 1000;

/// State of the parser: `Notice ──a request──► Requests`.
enum BlkReplay {
    /// In the notice: lines are skipped.
    Notice { lines: u32 },
    /// After the notice: every line must be a request or blank.
    Requests,
}

impl LineFormat for BlkReplay {
    fn parse(&mut self, line: &[u8], _devices: &mut Devices) -> Result<Parsed, Malformed> {
        if let Some((time_ns, lba, sectors, operation)) = request(line) {
            *self = BlkReplay::Requests;
            return sector_record(time_ns, 0, operation, lba, sectors);
        }
        match self {
            BlkReplay::Notice { lines } if *lines < NOTICE_LINES_MAX => {
                *lines += 1;
                Ok(Parsed::Nothing)
            }
            _ if line.trim_ascii().is_empty() => Ok(Parsed::Nothing),
            _ => Err(Malformed::new("seconds ; sector ; sectors ; R|W", line)),
        }
    }
}

fn is_header(line: &[u8]) -> bool {
    match fields::split::<4>(line, b';') {
        Some(names) => names == [&b"start"[..], b"sector", b"length", b"op"],
        None => false,
    }
}

fn request(line: &[u8]) -> Option<(u64, u64, u64, Operation)> {
    let [time, sector, sectors, op] = fields::split::<4>(line, b';')?;
    let (kind, letters) = op.split_first()?;
    let operation = match kind {
        b'R' | b'r' => Operation::Read,
        b'W' | b'w' => Operation::Write,
        _ => return None,
    };
    if !letters.iter().all(|letter| b"ASMF".contains(letter)) {
        return None;
    }
    let time_ns = table::time_ns(time, TimeUnit::Seconds)?;
    Some((time_ns, table::whole(sector)?, table::whole(sectors)?, operation))
}

fn detect(head: &Head<'_>) -> Confidence {
    if head.lines().take(NOTICE_LINES_MAX as usize).any(is_header) {
        Confidence::Yes
    } else if request(head.first_line()).is_some() {
        Confidence::Maybe
    } else {
        Confidence::No
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the notice is skipped, requests are not. Method: a small file, with requests worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const TRACE: &str = "Copyright someone; all of it ; even; this\n\
        12 monkeys\n\
        start ; sector; length ; op ;\n\
        ####\n\
        start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n\
        \x20     1.000000001 ;     37766853 ;   64 ; W ; 0.0 ; 0.0\n\
        \x20     1.449518165 ;            0 ;    1 ;RA ; 0.0 ; 0.0\n";

    #[test]
    fn requests_follow_the_notice() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("blkreplay"));
        let expected = [timed(0, 0, Command::write(37_766_853, 64)), timed(449_518_164, 0, Command::read(0, 1))];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
    }

    #[test]
    fn behind_the_notice_every_line_is_a_request() {
        let error = error_of(TRACE.replace(";RA ;", "; X ;"), &TraceOptions::default());
        assert!(error.starts_with("t, line 7: expected seconds ; sector ; sectors ; R|W, found «"), "{error}");
    }
}
