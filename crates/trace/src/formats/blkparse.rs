//! Text that blkparse prints for a blktrace: `major,minor cpu sequence time pid action rwbs sector + count [command]`.
//!
//! A request passes several actions: queued `Q`, issued `D`, completed `C`. The reader takes the requests of only one
//! action. This is `action` of the options, or the first of Q, D, C in the head of the trace; the notes report the
//! choice.
//!
//! Lines of action `m` and lines without `+ count` move no sectors. Among them, a flush without data, whose letters
//! begin with F, is a request; the others are not. The letters mean: R read, W write, D discard; F before W a flush
//! before the write, F after W FUA. Lines that do not begin with a device belong to the summary at the end of
//! blkparse's output, and are skipped.

use imbrex_units::{Command, Lba};

use crate::admission::{Devices, Malformed, Parsed, TraceRecord, reached};
use crate::fields;
use crate::lines::{LineFormat, LineReader};
use crate::options::TimeUnit;
use crate::table::words;

use super::format::{Confidence, Format, Head};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    summary: "text of blkparse, one action of it",
    options: &["action"],
    detect: |head| {
        if head.full_lines().take(8).any(|line| event(line).is_some()) { Confidence::Yes } else { Confidence::No }
    },
    open: |input, options| {
        let found = || action_of(&Head::of(&input));
        let action = options.action.and_then(|letter| u8::try_from(letter).ok()).unwrap_or_else(found);
        let note = format!("requests taken from action {}: --action chooses another", char::from(action));
        LineReader::open(input, options, BlkParse { action, second: None }, vec![note])
    },
};

const EXPECTED: &str = "maj,min cpu sequence seconds pid action rwbs sector + count";

struct BlkParse {
    action: u8,
    /// The write after a flush, if one line stands for both and the flush was yielded.
    second: Option<Parsed>,
}

/// The words that the line of every event has.
struct Event<'a> {
    device: &'a [u8],
    time: &'a [u8],
    action: &'a [u8],
    /// The part of the line that begins with the letters of the request (`rwbs`).
    rest: &'a [u8],
}

impl LineFormat for BlkParse {
    fn parse(&mut self, line: &[u8], devices: &mut Devices) -> Result<Parsed, Malformed> {
        let Some(event) = event(line) else {
            return not_an_event(line);
        };
        if event.action != [self.action] {
            return Ok(Parsed::Nothing);
        }
        self.request(&event, devices).ok_or_else(|| Malformed::new(EXPECTED, line))
    }

    #[inline]
    fn second(&mut self) -> Option<Parsed> {
        self.second.take()
    }
}

impl BlkParse {
    fn request(&mut self, event: &Event<'_>, devices: &mut Devices) -> Option<Parsed> {
        let time_ns = fields::time_ns(event.time, TimeUnit::Seconds)?;
        let device = devices.number(event.device, None);
        let parsed = |command| Parsed::Request(TraceRecord { time_ns, device, command, unaligned: false });
        let letters = words::letters(fields::words::<1>(event.rest)?[0]);
        let extent = match fields::words::<4>(event.rest) {
            Some([_, sector, b"+", count]) => Some((fields::number(sector)?, fields::number(count)?)),
            _ => None,
        };
        let data = match (letters.operation, extent) {
            (Some(operation), Some((lba, count))) if count > 0 => {
                let sectors = reached(lba, count)?;
                Some(parsed(Command { operation, fua: letters.fua, sectors, lba: Lba(lba) }))
            }
            _ => None,
        };
        if letters.flush_first {
            self.second = data;
            return Some(parsed(Command::flush()));
        }
        Some(data.unwrap_or(Parsed::NotRequest))
    }
}

fn event(line: &[u8]) -> Option<Event<'_>> {
    let [device, cpu, sequence, time, pid, action] = fields::words(line)?;
    let comma = device.iter().position(|&byte| byte == b',')?;
    let numbers = [&device[..comma], &device[comma + 1..], cpu, sequence, pid];
    let sound = numbers.into_iter().all(|word| fields::number(word).is_some());
    fields::time_ns(time, TimeUnit::Seconds).filter(|_| sound)?;
    Some(Event { device, time, action, rest: fields::past_words(line, 6) })
}

/// Skips a line of the summary; returns an error for a damaged event.
fn not_an_event(line: &[u8]) -> Result<Parsed, Malformed> {
    let broken = fields::words::<1>(line).is_some_and(|[word]| {
        let [major, minor] = fields::split::<2>(word, b',').unwrap_or([b"", b""]);
        fields::number(major).is_some() && fields::number(minor).is_some()
    });
    if broken { Err(Malformed::new(EXPECTED, line)) } else { Ok(Parsed::Nothing) }
}

/// Returns the first of Q, D, C that occurs in the head.
fn action_of(head: &Head<'_>) -> u8 {
    let has = |action: &u8| head.lines().filter_map(event).any(|event| event.action == [*action]);
    b"QDC".iter().copied().find(has).unwrap_or(b'Q')
}

#[cfg(test)]
mod tests {
    //! Goal: only one action counts, the letters are parsed, the summary is skipped. Method: lines that blkparse
    //! prints, with requests worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const TRACE: &str = "\
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]
  8,0    3        0     0.000002000     0  m   N cfq697 insert_request
  8,0    3        3     0.000010000   697  D   W 223490 + 8 [kjournald]
  8,0    1        4     0.000020000   700  Q  RA 64 + 16 [cat]
  8,16   1        5     0.000030000   700  Q FWFS 128 + 8 [jbd2]
  8,0    1        6     0.000040000   700  Q FWS [jbd2]
  8,0    1        7     0.000050000   700  Q   N [smartctl]
  8,0    1        8     0.000060000   700  Q  DS 1024 + 2048 [fstrim]
  8,0    3        9     0.001000000     0  C   W 223490 + 8 [0]
CPU3 (8,0):
 Reads Queued:           1,        8KiB  Writes Queued:           1,        4KiB
";

    #[test]
    fn one_action_counts() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("blkparse"));
        let expected = [
            timed(0, 0, Command::write(223_490, 8)),
            timed(20_000, 0, Command::read(64, 16)),
            timed(30_000, 1, Command::flush()),
            timed(30_000, 1, Command { fua: true, ..Command::write(128, 8) }),
            timed(40_000, 0, Command::flush()),
            timed(60_000, 0, Command::trim(1024, 2048)),
        ];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
        let facts = facts_of(TRACE, &TraceOptions::default());
        assert_eq!((facts.not_requests, facts.device_names[&1].as_str()), (1, "8,16"));
        assert_eq!(facts.notes, ["requests taken from action Q: --action chooses another"]);
    }

    #[test]
    fn the_action_can_be_told_or_is_the_first_there_is() {
        let options = TraceOptions { action: Some('C'), ..TraceOptions::default() };
        assert_eq!(requests_of(TRACE, &options), [timed(0, 0, Command::write(223_490, 8))]);
        let issued: String =
            TRACE.lines().filter(|line| !line.contains(" Q ")).map(|line| format!("{line}\n")).collect();
        assert!(facts_of(issued, &TraceOptions::default()).notes[0].contains("action D"));
    }

    #[test]
    fn a_broken_event_is_an_error() {
        let error = error_of(TRACE.replace("64 + 16", "6x + 16"), &TraceOptions::default());
        assert!(error.starts_with("t, line 5: expected maj,min cpu"), "{error}");
        let error = error_of(TRACE.replace("0.000020000", "soon"), &TraceOptions::default());
        assert!(error.starts_with("t, line 5: expected maj,min cpu"), "{error}");
    }
}
