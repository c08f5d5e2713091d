//! Requests and replies. Without a pace one thread reads, serves and answers, and sends what it has answered whenever no
//! further request has come in; with one, answers are sent by whoever brings them.
//!
//! Invariants:
//! 1. Every request with the right magic is answered once, in any order, or the connection ends.
//! 2. A reply goes out whole: the writer is locked.
//! 3. What a request asks for is bounded before anything is allocated for it.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::sync::{Arc, Condvar, Mutex};

use imbrex_device::{DeviceError, Io, IoKind};

use super::handshake::Session;
use super::protocol::*;
use crate::front::{Answer, Front, Target};

/// Bytes read ahead of the requests: many small ones with one call.
const READ_BUFFER_BYTES: usize = 256 << 10;
/// Replies are sent when there are so many bytes of them, even if more requests wait.
const SEND_AT_BYTES: usize = 256 << 10;
/// Requests of one connection that may be on their way to a paced drive.
const IN_FLIGHT_MAX: usize = 1024;
/// Extents in one answer to BLOCK_STATUS.
const EXTENTS_MAX: usize = 8192;
/// Zeroes are written in pieces of this many bytes, where the layer keeps no trims.
const ZEROES_BYTES: u64 = 8 << 20;

/// What is needed to answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    request: Request,
    session: Session,
}

/// Serves one connection until it ends.
pub fn run(
    front: &Arc<Front>,
    session: Session,
    reader: impl Read,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    if front.is_unpaced() {
        Inline { front, session, writer, out: Vec::new(), spare: Vec::new() }.run(reader)
    } else {
        run_paced(front, session, reader, writer)
    }
}

/// The next request; nothing at the end of the stream, or when the client says good-bye or breaks the protocol.
fn next_request(reader: &mut impl Read) -> io::Result<Option<Request>> {
    let mut header = [0; REQUEST_BYTES];
    match reader.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok(Request::parse(&header).filter(|request| request.command != command::DISCONNECT))
}

/// The request as the drive takes it, or the error it deserves; its payload, if any, has been read.
fn io_of(
    request: &Request,
    session: Session,
    front: &Front,
    reader: &mut impl Read,
    mut buffer: Vec<u8>,
) -> io::Result<Result<Io, u32>> {
    let facts = front.facts();
    let is_write = request.command == command::WRITE;
    if is_write && request.length > PAYLOAD_BYTES_MAX {
        io::copy(&mut reader.take(u64::from(request.length)), &mut io::sink())?;
        return Ok(Err(errno::EINVAL));
    }
    if is_write {
        buffer.resize(request.length as usize, 0);
        reader.read_exact(&mut buffer)?;
    }
    let known_flags = command_flag::FUA
        | match request.command {
            command::WRITE_ZEROES => command_flag::NO_HOLE | command_flag::FAST_ZERO,
            command::BLOCK_STATUS => command_flag::REQ_ONE,
            // "Do not fragment": we never do.
            command::READ => 1 << 2,
            _ => 0,
        };
    if request.flags & !known_flags != 0 {
        return Ok(Err(errno::EINVAL));
    }
    let fua = request.flags & command_flag::FUA != 0;
    let kind = match request.command {
        command::READ if request.length > PAYLOAD_BYTES_MAX => return Ok(Err(errno::EOVERFLOW)),
        command::READ => IoKind::Read,
        command::WRITE => IoKind::Write { fua },
        command::FLUSH if request.offset != 0 || request.length != 0 => return Ok(Err(errno::EINVAL)),
        command::FLUSH => IoKind::Flush,
        command::TRIM => IoKind::Trim,
        command::WRITE_ZEROES if facts.trims_to_zeros && request.flags & command_flag::NO_HOLE == 0 => IoKind::Trim,
        command::WRITE_ZEROES if request.flags & command_flag::FAST_ZERO != 0 => return Ok(Err(errno::ENOTSUP)),
        command::WRITE_ZEROES => IoKind::Write { fua },
        command::BLOCK_STATUS if !session.allocation => return Ok(Err(errno::EINVAL)),
        command::BLOCK_STATUS => IoKind::Read,
        _ => return Ok(Err(errno::EINVAL)),
    };
    Ok(Ok(Io { tag: request.cookie, kind, offset: request.offset, length: u64::from(request.length), buffer }))
}

/// Whether the request is served as several: zeroes that must be written, or what must be durable after a trim.
fn steps_of(request: &Request, io: &Io) -> Steps {
    let fua = request.flags & command_flag::FUA != 0;
    match (request.command, io.kind) {
        (command::WRITE_ZEROES, IoKind::Write { .. }) => Steps::Zeroes,
        (command::WRITE_ZEROES | command::TRIM, IoKind::Trim) if fua => Steps::TrimAndFlush,
        (command::BLOCK_STATUS, _) => Steps::Status,
        _ => Steps::One,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Steps {
    One,
    Zeroes,
    TrimAndFlush,
    Status,
}

/// Calls `serve` with what a request of several steps comes to; the first error ends it.
fn in_steps(steps: Steps, io: Io, serve: &mut dyn FnMut(Io) -> Answer) -> Answer {
    let tag = io.tag;
    match steps {
        Steps::One | Steps::Status => serve(io),
        Steps::TrimAndFlush => {
            let trimmed = serve(io);
            if trimmed.outcome.is_err() {
                return trimmed;
            }
            serve(Io { tag, kind: IoKind::Flush, offset: 0, length: 0, buffer: Vec::new() })
        }
        Steps::Zeroes => {
            let (mut offset, end) = (io.offset, io.offset.saturating_add(io.length));
            let mut buffer = Vec::new();
            loop {
                let length = ZEROES_BYTES.min(end - offset);
                buffer.clear();
                buffer.resize(length as usize, 0);
                let answer = serve(Io { tag, kind: io.kind, offset, length, buffer });
                offset += length;
                if answer.outcome.is_err() || offset >= end {
                    return answer;
                }
                buffer = answer.buffer;
            }
        }
    }
}

/// Appends the reply to `asked`, but for the data of a read, which the caller sends after it.
fn reply(out: &mut Vec<u8>, asked: &Asked, outcome: &Result<(), DeviceError>) {
    let Asked { request, session } = asked;
    let is_read = request.command == command::READ;
    match outcome {
        Ok(()) if is_read && session.structured => {
            chunk_header(out, chunk::DONE, chunk::OFFSET_DATA, request.cookie, request.length + 8);
            out.extend_from_slice(&request.offset.to_be_bytes());
        }
        Ok(()) => simple_reply(out, request.cookie, 0),
        Err(error) => refuse(out, asked, errno_of(error), &error.to_string()),
    }
}

fn refuse(out: &mut Vec<u8>, asked: &Asked, error: u32, words: &str) {
    if asked.session.structured {
        error_chunk(out, asked.request.cookie, error, words);
    } else {
        simple_reply(out, asked.request.cookie, error);
    }
}

/// Appends the answer to BLOCK_STATUS.
fn status(out: &mut Vec<u8>, front: &Front, asked: &Asked) {
    let Request { cookie, offset, length, flags, .. } = asked.request;
    let capacity = front.facts().capacity_bytes;
    if length == 0 || offset.checked_add(u64::from(length)).is_none_or(|end| end > capacity) {
        return refuse(out, asked, errno::EINVAL, "the extent asked for is not within the drive");
    }
    let mut runs = Vec::new();
    if let Err(error) = front.with(|drive, _| drive.allocation(offset, u64::from(length), &mut runs)) {
        return refuse(out, asked, errno_of(&error), &error.to_string());
    }
    let wants_one = flags & command_flag::REQ_ONE != 0;
    runs.truncate(if wants_one { 1 } else { EXTENTS_MAX });
    chunk_header(out, chunk::DONE, chunk::BLOCK_STATUS, cookie, 4 + 8 * runs.len() as u32);
    out.extend_from_slice(&ALLOCATION_ID.to_be_bytes());
    let mut left = u64::from(length);
    for (bytes, is_stored) in runs {
        let bytes = bytes.min(left);
        left -= bytes;
        out.extend_from_slice(&(bytes as u32).to_be_bytes());
        out.extend_from_slice(&if is_stored { 0 } else { HOLE_AND_ZERO }.to_be_bytes());
    }
}

/// A connection to an unpaced drive.
struct Inline<'a, W> {
    front: &'a Front,
    session: Session,
    writer: W,
    out: Vec<u8>,
    /// The last buffer, to be filled again.
    spare: Vec<u8>,
}

impl<W: Write> Inline<'_, W> {
    fn run(mut self, reader: impl Read) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, reader);
        while let Some(request) = next_request(&mut reader)? {
            let asked = Asked { request, session: self.session };
            let spare = std::mem::take(&mut self.spare);
            match io_of(&request, self.session, self.front, &mut reader, spare)? {
                Ok(io) => self.serve(&asked, io)?,
                Err(error) => refuse(&mut self.out, &asked, error, "the request cannot be served"),
            }
            if reader.buffer().len() < REQUEST_BYTES || self.out.len() >= SEND_AT_BYTES {
                self.send()?;
            }
        }
        self.send()
    }

    fn serve(&mut self, asked: &Asked, io: Io) -> io::Result<()> {
        let steps = steps_of(&asked.request, &io);
        if steps == Steps::Status {
            status(&mut self.out, self.front, asked);
            return Ok(());
        }
        let answer = in_steps(steps, io, &mut |io| self.front.serve(io));
        reply(&mut self.out, asked, &answer.outcome);
        if asked.request.command == command::READ && answer.outcome.is_ok() {
            if answer.buffer.len() >= SEND_AT_BYTES {
                self.send()?;
                self.writer.write_all(&answer.buffer)?;
            } else {
                self.out.extend_from_slice(&answer.buffer);
            }
        }
        self.spare = answer.buffer;
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.writer.write_all(&self.out)?;
            self.out.clear();
        }
        self.writer.flush()
    }
}

/// A connection to a paced drive, as its answers see it.
struct Paced {
    session: Session,
    in_flight: Mutex<InFlight>,
    changed: Condvar,
    writer: Mutex<Box<dyn Write + Send>>,
}

#[derive(Default)]
struct InFlight {
    /// By our own number, since a client may use a cookie twice.
    asked: BTreeMap<u64, Request>,
    next: u64,
    is_broken: bool,
}

impl Target for Paced {
    fn answer(&self, answer: Answer) {
        let request = {
            let mut in_flight = self.in_flight.lock().expect("no thread panics while it holds the list");
            in_flight.asked.remove(&answer.tag)
        };
        let Some(request) = request else { return };
        let asked = Asked { request, session: self.session };
        let mut out = Vec::new();
        reply(&mut out, &asked, &answer.outcome);
        if request.command == command::READ && answer.outcome.is_ok() {
            out.extend_from_slice(&answer.buffer);
        }
        self.send(&out);
    }
}

impl Paced {
    fn send(&self, out: &[u8]) {
        let mut writer = self.writer.lock().expect("no thread panics while it writes");
        let sent = writer.write_all(out).and_then(|()| writer.flush());
        drop(writer);
        let mut in_flight = self.in_flight.lock().expect("no thread panics while it holds the list");
        in_flight.is_broken |= sent.is_err();
        self.changed.notify_all();
    }
}

/// One step of a request of several: the thread that asked waits for it.
#[derive(Default)]
struct Waited {
    answer: Mutex<Option<Answer>>,
    arrived: Condvar,
}

impl Target for Waited {
    fn answer(&self, answer: Answer) {
        *self.answer.lock().expect("no thread panics while it holds the answer") = Some(answer);
        self.arrived.notify_one();
    }
}

fn run_paced(
    front: &Arc<Front>,
    session: Session,
    reader: impl Read,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    let paced = Arc::new(Paced {
        session,
        in_flight: Mutex::new(InFlight::default()),
        changed: Condvar::new(),
        writer: Mutex::new(Box::new(writer)),
    });
    let target: Arc<dyn Target> = paced.clone();
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, reader);
    while let Some(request) = next_request(&mut reader)? {
        let asked = Asked { request, session };
        let io = match io_of(&request, session, front, &mut reader, Vec::new())? {
            Ok(io) => io,
            Err(error) => {
                let mut out = Vec::new();
                refuse(&mut out, &asked, error, "the request cannot be served");
                paced.send(&out);
                continue;
            }
        };
        match steps_of(&request, &io) {
            Steps::One => {
                let Some(tag) = paced.enter(request) else { break };
                front.submit(Io { tag, ..io }, &target);
            }
            Steps::Status => {
                let mut out = Vec::new();
                status(&mut out, front, &asked);
                paced.send(&out);
            }
            several => {
                let answer = in_steps(several, io, &mut |io| serve_and_wait(front, io));
                let mut out = Vec::new();
                reply(&mut out, &asked, &answer.outcome);
                paced.send(&out);
            }
        }
    }
    paced.wait_until_empty();
    Ok(())
}

fn serve_and_wait(front: &Front, io: Io) -> Answer {
    let waited = Arc::new(Waited::default());
    let target: Arc<dyn Target> = waited.clone();
    front.submit(io, &target);
    let mut answer = waited.answer.lock().expect("no thread panics while it holds the answer");
    loop {
        if let Some(answer) = answer.take() {
            return answer;
        }
        answer = waited.arrived.wait(answer).expect("no thread panics while it holds the answer");
    }
}

impl Paced {
    /// A number for the request, once there is room for it; nothing when the client is gone.
    fn enter(&self, request: Request) -> Option<u64> {
        let mut in_flight = self.in_flight.lock().expect("no thread panics while it holds the list");
        while in_flight.asked.len() >= IN_FLIGHT_MAX && !in_flight.is_broken {
            in_flight = self.changed.wait(in_flight).expect("no thread panics while it holds the list");
        }
        if in_flight.is_broken {
            return None;
        }
        let number = in_flight.next;
        in_flight.next += 1;
        in_flight.asked.insert(number, request);
        Some(number)
    }

    fn wait_until_empty(&self) {
        let mut in_flight = self.in_flight.lock().expect("no thread panics while it holds the list");
        while !in_flight.asked.is_empty() && !in_flight.is_broken {
            in_flight = self.changed.wait(in_flight).expect("no thread panics while it holds the list");
        }
    }
}
