//! The binary events of blktrace, in the form in which the kernel writes them and `blktrace -o -` outputs them.
//!
//! An event has 48 bytes in the byte order of the machine that wrote it: `u32 magic, u32 sequence, u64 time in ns, u64
//! sector, u32 bytes, u32 action, u32 pid, u32 device, u32 cpu, u16 error, u16 length of the payload`. The payload
//! follows and is skipped.
//!
//! The lower half of the action is the type of event (1 queued, 7 issued, 8 completed). The upper half has a bit for
//! each property of the request. A discard has the write bit too; a flush without data has the read bit.
//!
//! blktrace writes one file for each processor. [`open_streams`] reads these files as one trace, and [`merge`] merges
//! them into one file.
//!
//! Invariants:
//! 1. The event with the earliest time among all streams comes next; each stream keeps its order.
//! 2. An event that is cut short or has no magic number is malformed, and is reported with its offset. The rest of its
//!    stream is unreadable, since events differ in length.

use std::io::{BufReader, Read, Write};

use imbrex_units::{Command, Lba, Operation, SimTime};

use crate::admission::{Admission, Malformed, Parsed, SECTOR_BYTES, TraceRecord, out_of_reach, reached};
use crate::facts::Facts;
use crate::input::{Unpacked, unpacking_failed};
use crate::options::TraceOptions;
use crate::request::{Request, Source, TraceError};

use super::format::{Confidence, Format, OpenResult};

/// Entry of the format `blktrace`, binary events of the Linux block layer, in the registry of trace formats.
pub const FORMAT: Format = Format {
    name: "blktrace",
    summary: "binary events of blktrace, one action of them; the files of all processors together",
    options: &["action"],
    detect: |head| match Event::parse(head.bytes) {
        Some(_) => Confidence::Yes,
        None => Confidence::No,
    },
    open: |input, options| open_streams(vec![input], options),
};

const EVENT_BYTES: usize = 48;
/// The magic number without its last byte, which is the version.
const MAGIC: u32 = 0x0065_6174;
const VERSION: u32 = 7;
const QUEUED: u32 = 1;
const ISSUED: u32 = 7;
const COMPLETED: u32 = 8;
const IS_WRITE: u32 = 1 << 1;
const IS_FLUSH: u32 = 1 << 2;
const IS_READ: u32 = 1;
/// Bits of events that are not requests: a message (`notify`), or a SCSI command other than a read or write (`pc`).
const IS_NO_REQUEST: u32 = 1 << 9 | 1 << 10;
const IS_DISCARD: u32 = 1 << 13;
const IS_FUA: u32 = 1 << 15;

/// One event.
#[derive(Clone, Copy, Debug)]
struct Event {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    what: u32,
    kind: u32,
    device: u32,
    /// Length in bytes of the payload that follows the event.
    after: u16,
}

impl Event {
    fn parse(bytes: &[u8]) -> Option<Event> {
        let record: &[u8; EVENT_BYTES] = bytes.get(..EVENT_BYTES)?.try_into().ok()?;
        let little = u32::from_le_bytes(record[..4].try_into().ok()?);
        let is_magic = |magic: u32| magic >> 8 == MAGIC && magic & 0xff == VERSION;
        let is_little = is_magic(little);
        if !is_little && !is_magic(little.swap_bytes()) {
            return None;
        }
        let u32_at = |at: usize| {
            let bytes: [u8; 4] = record[at..at + 4].try_into().expect("four bytes are four");
            if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
        };
        let u64_at = |at: usize| {
            let bytes: [u8; 8] = record[at..at + 8].try_into().expect("eight bytes are eight");
            if is_little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
        };
        let after = [record[46], record[47]];
        let action = u32_at(28);
        Some(Event {
            time_ns: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            what: action & 0xffff,
            kind: action >> 16,
            device: u32_at(36),
            after: if is_little { u16::from_le_bytes(after) } else { u16::from_be_bytes(after) },
        })
    }
}

/// The events of one processor, or of all processors in one stream.
struct Stream {
    name: String,
    reader: Box<dyn Read + Send>,
    offset: u64,
    next: Option<Event>,
}

impl Stream {
    /// Reads the next event into `next`, or sets `next` to `None` at the end of the stream.
    fn advance(&mut self) -> Result<(), Fault> {
        self.next = None;
        let mut record = [0; EVENT_BYTES];
        let got = fill(&mut self.reader, &mut record).map_err(|cause| Fault::Reading(self.offset, cause))?;
        if got == 0 {
            return Ok(());
        }
        let place = self.offset;
        if got < EVENT_BYTES {
            let reason = format!("the file ends {got} bytes into an event of {EVENT_BYTES}: it is cut short");
            return Err(Fault::Malformed(place, Malformed::of(reason)));
        }
        let Some(event) = Event::parse(&record) else {
            let found = u32::from_le_bytes(record[..4].try_into().expect("four bytes are four"));
            let reason = format!("expected an event of version {VERSION} (0x65617407), found 0x{found:08x}");
            return Err(Fault::Malformed(place, Malformed::of(reason)));
        };
        let after = u64::from(event.after);
        let passed = std::io::copy(&mut self.reader.by_ref().take(after), &mut std::io::sink());
        let passed = passed.map_err(|cause| Fault::Reading(place, cause))?;
        self.offset += EVENT_BYTES as u64 + passed;
        if passed < after {
            let reason =
                format!("the file ends {passed} bytes into the {after} that follow the event: it is cut short");
            return Err(Fault::Malformed(place, Malformed::of(reason)));
        }
        let sectors = u64::from(event.bytes).div_ceil(SECTOR_BYTES);
        let is_request = event.bytes > 0 && event.kind & IS_NO_REQUEST == 0;
        if is_request && reached(event.sector, sectors).is_none() {
            return Err(Fault::Malformed(place, out_of_reach(event.sector, sectors)));
        }
        self.next = Some(event);
        Ok(())
    }
}

/// The reason why a stream ends early, with the offset in bytes.
enum Fault {
    Malformed(u64, Malformed),
    Reading(u64, std::io::Error),
}

fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(got)
}

/// Opens the binary blktrace files of all processors as one trace, in the order of the events' times. The name of the
/// first file is the name of the trace. Without an `action` in the options, reads the first of the actions Q, D and C
/// that occurs at the beginning of a file.
///
/// # Errors
///
/// If `action` of the options is not Q, D or C, or if the first event of a file cannot be read. A malformed first event
/// is an error unless the options say to skip malformed records.
pub fn open_streams(inputs: Vec<Unpacked>, options: &TraceOptions) -> OpenResult {
    let name = inputs.first().map_or_else(String::new, |input| input.name.clone());
    let what = match options.action {
        Some('Q') => QUEUED,
        Some('D') => ISSUED,
        Some('C') => COMPLETED,
        Some(other) => {
            let reason = format!("there is no action «{other}»: --action Q, D or C");
            return Err(TraceError::usage(name, reason));
        }
        None => inputs.iter().map(|input| first_action(&input.head)).min_by_key(|&what| rank(what)).unwrap_or(QUEUED),
    };
    let mut admission = Admission::new(name, options);
    if options.action.is_none() {
        admission.note(format!("requests taken from action {}: --action chooses another", letter(what)));
    }
    let streams = inputs.into_iter().map(|input| Stream {
        name: input.name,
        reader: Box::new(BufReader::with_capacity(1 << 16, input.contents.into_stream())),
        offset: 0,
        next: None,
    });
    let mut trace = BlkTrace { streams: streams.collect(), what, admission, second: None };
    for index in 0..trace.streams.len() {
        trace.advance(index)?;
    }
    Ok(Box::new(trace))
}

fn rank(what: u32) -> usize {
    [QUEUED, ISSUED, COMPLETED].iter().position(|&known| known == what).unwrap_or(usize::MAX)
}

fn letter(what: u32) -> char {
    match what {
        ISSUED => 'D',
        COMPLETED => 'C',
        _ => 'Q',
    }
}

/// Returns the first of the actions Q, D and C that occurs in `head`, or `u32::MAX` if none does.
fn first_action(head: &[u8]) -> u32 {
    let (mut at, mut best) = (0, u32::MAX);
    while let Some(event) = head.get(at..).and_then(Event::parse) {
        if event.kind & IS_NO_REQUEST == 0 && rank(event.what) < rank(best) {
            best = event.what;
        }
        at += EVENT_BYTES + usize::from(event.after);
    }
    best
}

/// Merges binary blktrace files, each given as its name and contents, into one stream of events, and writes the stream
/// to `out`. At each step, the event with the earliest time among the next events of all files comes first; among
/// equals, the event of the earlier file.
///
/// # Errors
///
/// If a file cannot be read, has a malformed event or ends within an event, or if `out` cannot be written.
pub fn merge(parts: Vec<(String, Box<dyn Read + Send>)>, out: &mut dyn Write) -> Result<(), TraceError> {
    let mut parts: Vec<Part> = parts.into_iter().map(|(name, reader)| Part::new(name, reader)).collect();
    for part in &mut parts {
        part.advance()?;
    }
    loop {
        let waiting = parts.iter().enumerate().filter_map(|(index, part)| Some((part.time_ns?, index)));
        let Some((_, index)) = waiting.min() else { return Ok(()) };
        let part = &mut parts[index];
        out.write_all(&part.event).map_err(|cause| {
            TraceError::caused(
                part.name.clone(),
                "its events cannot be written beside those of the other processors",
                cause,
            )
        })?;
        part.advance()?;
    }
}

/// A file to be merged, with the bytes of its next event.
struct Part {
    name: String,
    reader: BufReader<Box<dyn Read + Send>>,
    offset: u64,
    event: Vec<u8>,
    time_ns: Option<u64>,
}

impl Part {
    fn new(name: String, reader: Box<dyn Read + Send>) -> Part {
        Part { name, reader: BufReader::with_capacity(1 << 16, reader), offset: 0, event: Vec::new(), time_ns: None }
    }

    fn advance(&mut self) -> Result<(), TraceError> {
        self.offset += self.event.len() as u64;
        self.time_ns = None;
        self.event.resize(EVENT_BYTES, 0);
        let got = fill(&mut self.reader, &mut self.event)
            .map_err(|cause| unpacking_failed(&self.name, self.offset, cause))?;
        if got == 0 {
            return Ok(());
        }
        let Some(event) = Event::parse(&self.event[..got]) else {
            return Err(self.malformed(format!("expected an event of version {VERSION}, or the end of the file")));
        };
        let whole = EVENT_BYTES + usize::from(event.after);
        self.event.resize(whole, 0);
        let more = fill(&mut self.reader, &mut self.event[EVENT_BYTES..])
            .map_err(|cause| unpacking_failed(&self.name, self.offset, cause))?;
        if EVENT_BYTES + more < whole {
            return Err(self.malformed("the file ends within the data of an event: it is cut short".into()));
        }
        self.time_ns = Some(event.time_ns);
        Ok(())
    }

    fn malformed(&self, reason: String) -> TraceError {
        TraceError::new(format!("{}, byte {}", self.name, self.offset), reason)
    }
}

/// The source of requests for one or several streams of events.
struct BlkTrace {
    streams: Vec<Stream>,
    what: u32,
    admission: Admission,
    /// The write after a flush, if one event stands for both and the flush was yielded.
    second: Option<Parsed>,
}

impl BlkTrace {
    /// Reads the next event of stream `index`. If the stream ends early at a malformed event, the event is counted or
    /// returned as an error.
    fn advance(&mut self, index: usize) -> Result<(), TraceError> {
        let stream = &mut self.streams[index];
        match stream.advance() {
            Ok(()) => Ok(()),
            Err(Fault::Malformed(offset, malformed)) => {
                let place = match index {
                    0 => format!("byte {offset}"),
                    _ => format!("{}, byte {offset}", stream.name),
                };
                self.admission.malformed(&place, malformed)
            }
            Err(Fault::Reading(offset, cause)) => Err(unpacking_failed(&stream.name, offset, cause)),
        }
    }

    /// Converts an event. Events of other actions than the chosen one are ignored.
    fn parsed(&mut self, event: &Event) -> Parsed {
        if event.what != self.what {
            return Parsed::Nothing;
        }
        if event.kind & IS_NO_REQUEST != 0 {
            return Parsed::NotRequest;
        }
        let bytes = u64::from(event.bytes);
        let of = |command: Command| {
            let unaligned = !bytes.is_multiple_of(SECTOR_BYTES);
            Parsed::Request(TraceRecord { time_ns: event.time_ns, device: event.device, command, unaligned })
        };
        let operation = match event.kind {
            kind if kind & IS_DISCARD != 0 => Operation::Trim,
            kind if kind & IS_WRITE != 0 => Operation::Write,
            kind if kind & IS_READ != 0 => Operation::Read,
            _ => Operation::Flush,
        };
        let data = (bytes > 0 && operation != Operation::Flush).then(|| {
            let fua = event.kind & IS_FUA != 0 && operation == Operation::Write;
            of(Command { operation, fua, sectors: bytes.div_ceil(SECTOR_BYTES) as u32, lba: Lba(event.sector) })
        });
        if event.kind & IS_FLUSH != 0 {
            self.second = data;
            return of(Command::flush());
        }
        data.unwrap_or(Parsed::NotRequest)
    }
}

impl Source for BlkTrace {
    fn next(&mut self, _now: SimTime) -> Result<Option<Request>, TraceError> {
        loop {
            if let Some(second) = self.second.take()
                && let Some(request) = self.admission.admit(second)
            {
                return Ok(Some(request));
            }
            let waiting = self.streams.iter().enumerate().filter_map(|(index, stream)| Some((stream.next?, index)));
            let Some((event, index)) = waiting.min_by_key(|(event, index)| (event.time_ns, *index)) else {
                return self.admission.finish();
            };
            self.advance(index)?;
            let parsed = self.parsed(&event);
            if let Some(request) = self.admission.admit(parsed) {
                return Ok(Some(request));
            }
        }
    }

    fn facts(&self) -> Facts {
        self.admission.facts()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the layout in both byte orders, the kinds of events, the merge of several files, and the error for a cut
    //! file. Method: events packed here field by field.

    use super::*;
    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::input::Input;

    const READ: u32 = 1;
    const WRITE: u32 = 2;

    fn event(time_ns: u64, sector: u64, bytes: u32, what: u32, kind: u32, after: &[u8], big: bool) -> Vec<u8> {
        let mut packed = Vec::new();
        let put4 = |value: u32, packed: &mut Vec<u8>| {
            packed.extend(if big { value.to_be_bytes() } else { value.to_le_bytes() });
        };
        put4(0x6561_7407, &mut packed);
        put4(1, &mut packed);
        packed.extend(if big { time_ns.to_be_bytes() } else { time_ns.to_le_bytes() });
        packed.extend(if big { sector.to_be_bytes() } else { sector.to_le_bytes() });
        for value in [bytes, kind << 16 | what, 99, 8 << 20, 0] {
            put4(value, &mut packed);
        }
        let length = after.len() as u16;
        packed.extend([0, 0]);
        packed.extend(if big { length.to_be_bytes() } else { length.to_le_bytes() });
        packed.extend(after);
        packed
    }

    fn trace(big: bool) -> Vec<u8> {
        [
            event(0, 0, 0, 0, 1 << 10, b"a message", big),
            event(100, 64, 4096, QUEUED, READ, b"", big),
            event(200, 64, 4096, ISSUED, READ, b"", big),
            event(300, 128, 512, QUEUED, WRITE | IS_FUA, b"xyz", big),
            event(400, 0, 0, QUEUED, READ | IS_FLUSH, b"", big),
            event(500, 2048, 1 << 20, QUEUED, WRITE | IS_DISCARD, b"", big),
            event(600, 256, 1024, QUEUED, WRITE | IS_FLUSH, b"", big),
            event(700, 64, 4096, COMPLETED, READ, b"", big),
        ]
        .concat()
    }

    #[test]
    fn both_byte_orders_and_every_kind() {
        let device = 8 << 20;
        for big in [false, true] {
            let bytes = trace(big);
            assert_eq!(format_of(&bytes), Some("blktrace"));
            let expected = [
                timed(0, device, Command::read(64, 8)),
                timed(200, device, Command { fua: true, ..Command::write(128, 1) }),
                timed(300, device, Command::flush()),
                timed(400, device, Command::trim(2048, 2048)),
                timed(500, device, Command::flush()),
                timed(500, device, Command::write(256, 2)),
            ];
            assert_eq!(requests_of(&bytes, &TraceOptions::default()), expected);
            let facts = facts_of(&bytes, &TraceOptions::default());
            assert_eq!(facts.origin_ns, Some(100));
            assert_eq!(facts.notes, ["requests taken from action Q: --action chooses another"]);
            let options = TraceOptions { action: Some('C'), ..TraceOptions::default() };
            assert_eq!(requests_of(&bytes, &options), [timed(0, device, Command::read(64, 8))]);
        }
    }

    #[test]
    fn files_of_several_processors_are_one_trace() {
        let part = |times: &[u64]| -> Unpacked {
            let events = times.iter().map(|&time| event(time, time, 512, QUEUED, READ, b"", false));
            Input::bytes("t", events.collect::<Vec<_>>().concat()).unpack().expect("is not packed")
        };
        let inputs = vec![part(&[10, 40, 50]), part(&[20, 30, 60]), part(&[])];
        let mut source = open_streams(inputs, &TraceOptions::default()).expect("all are traces");
        let mut sectors = Vec::new();
        while let Some(request) = source.next(SimTime::ZERO).expect("nothing is malformed") {
            sectors.push(request.command.lba.0);
        }
        assert_eq!(sectors, [10, 20, 30, 40, 50, 60]);
    }

    #[test]
    fn files_of_several_processors_become_one_file() {
        let events = |times: &[u64]| -> Vec<u8> {
            times.iter().flat_map(|&time| event(time, time, 512, QUEUED, READ, b"abc", false)).collect()
        };
        let part =
            |times: &[u64]| ("t".to_string(), Box::new(std::io::Cursor::new(events(times))) as Box<dyn Read + Send>);
        let mut merged = Vec::new();
        merge(vec![part(&[10, 40]), part(&[20, 30, 60])], &mut merged).expect("nothing is malformed");
        assert_eq!(merged, events(&[10, 20, 30, 40, 60]));
    }

    #[test]
    fn a_cut_file_and_a_foreign_event_are_errors() {
        let mut bytes = trace(false);
        bytes.truncate(bytes.len() - 7);
        let error = error_of(&bytes, &TraceOptions::default());
        assert!(error.contains("the file ends 41 bytes into an event of 48"), "{error}");
        let mut bytes = trace(false);
        bytes[57 + 3] = 0;
        let error = error_of(&bytes, &TraceOptions::default());
        assert!(error.starts_with("t, byte 57: expected an event of version 7"), "{error}");
        let far = [trace(false), event(900, 1 << 60, 512, QUEUED, READ, b"", false)].concat();
        let error = error_of(&far, &TraceOptions::default());
        assert!(error.contains("the address, sector 1152921504606846976, is past"), "{error}");
        let options = TraceOptions { skip_malformed: crate::options::SkipMalformed::All, ..TraceOptions::default() };
        assert_eq!(facts_of(&bytes, &options).malformed, 1);
    }
}
