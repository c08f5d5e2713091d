//! Conversion of NBD requests to drive operations, and the bytes of replies.
//!
//! Invariants:
//! 1. The memory for a request is limited before any is allocated, and is claimed from the memory shared by all
//!    clients. Memory for a payload is claimed as its bytes arrive, and memory for a read before the drive is called.
//! 2. A request that does not name whole sectors of the drive changes nothing.

use std::io::{self, IoSlice, Read, Write};

use imbrex_device::{DeviceError, Io, IoKind};

use super::handshake::Session;
use super::incoming::{Incoming, read_past};
use super::protocol::*;
use crate::drive_server::{Answer, DriveServer, Facts};
use crate::limits::PAYLOAD_STEP_BYTES;
use crate::payload::{Account, Claim};

/// Number of bytes of a reply that a client must take within its deadline; each such step has a new deadline.
pub(super) const SEND_STEP_BYTES: usize = 256 << 10;
/// Maximum number of extents in one answer to BLOCK_STATUS.
const EXTENTS_MAX: usize = 8192;
/// Maximum number of bytes covered by one answer to BLOCK_STATUS; the client asks again for the rest.
const STATUS_BYTES_MAX: u64 = 1 << 30;
/// Number of bytes in which zeroes are written if the layer does not keep trims.
const ZEROES_BYTES: u64 = 1 << 20;

/// A request, with the session needed for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct NbdRequest {
    pub(super) request: Request,
    pub(super) session: Session,
}

/// Writes `head` and then `data`. One call writes the start of both, so that the reader wakes only once.
pub(super) fn write_both(writer: &mut impl Write, head: &[u8], data: &[u8]) -> io::Result<()> {
    let step = data.len().min(SEND_STEP_BYTES);
    let sent = match writer.write_vectored(&[IoSlice::new(head), IoSlice::new(&data[..step])]) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        sent => sent?,
    };
    writer.write_all(&head[sent.min(head.len())..])?;
    writer.write_all(&data[sent.saturating_sub(head.len())..])
}

/// Returns the next request; `None` at the end of the stream, after DISCONNECT, or if the client breaks the protocol. A
/// client may be idle for any time; from the first byte of a request on it has a deadline.
pub(super) fn next_request(reader: &mut Incoming<impl Read>, account: &Account) -> io::Result<Option<Request>> {
    account.client().received();
    if !reader.wait()? {
        return Ok(None);
    }
    account.client().receive_within(account.limits().request_time);
    let mut header = [0; REQUEST_BYTES];
    match reader.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let request = Request::parse(&header).filter(|request| request.command != command::DISCONNECT);
    reader.expect_payload(request.as_ref().map_or(0, payload_bytes));
    Ok(request)
}

/// Returns the request as an operation of the drive, or the error number for the client. The payload has then been
/// read, and `claim` covers the memory that the request needs.
pub(super) fn io_of(
    request: &Request,
    session: Session,
    front: &DriveServer,
    reader: &mut impl Read,
    mut buffer: Vec<u8>,
    claim: &mut Claim,
) -> io::Result<Result<Io, u32>> {
    let facts = front.facts();
    let is_write = request.command == command::WRITE;
    if is_write && request.length > PAYLOAD_BYTES_MAX {
        read_past(reader, request.length)?;
        return Ok(Err(errno::EINVAL));
    }
    if is_write {
        read_payload(reader, request.length as usize, &mut buffer, claim)?;
    }
    // The whole request has arrived.
    claim.account().client().received();
    let known_flags = command_flag::FUA
        | match request.command {
            command::WRITE_ZEROES => command_flag::NO_HOLE | command_flag::FAST_ZERO,
            command::BLOCK_STATUS => command_flag::REQ_ONE,
            // "Do not fragment": this server never fragments.
            command::READ => 1 << 2,
            _ => 0,
        };
    if request.flags & !known_flags != 0 {
        return Ok(Err(errno::EINVAL));
    }
    if let Some(error) = misplaced(request, facts) {
        return Ok(Err(error));
    }
    let fua = request.flags & command_flag::FUA != 0;
    let kind = match request.command {
        command::READ if request.length > PAYLOAD_BYTES_MAX => return Ok(Err(errno::EOVERFLOW)),
        command::READ => IoKind::Read,
        command::WRITE => IoKind::Write { fua },
        command::FLUSH => IoKind::Flush,
        command::TRIM => IoKind::Trim,
        command::WRITE_ZEROES if facts.trims_to_zeros && request.flags & command_flag::NO_HOLE == 0 => IoKind::Trim,
        command::WRITE_ZEROES if request.flags & command_flag::FAST_ZERO != 0 => return Ok(Err(errno::ENOTSUP)),
        command::WRITE_ZEROES => IoKind::Write { fua },
        command::BLOCK_STATUS if !session.allocation => return Ok(Err(errno::EINVAL)),
        command::BLOCK_STATUS => IoKind::Read,
        _ => return Ok(Err(errno::EINVAL)),
    };
    match request.command {
        command::READ => claim.grow(u64::from(request.length))?,
        command::WRITE_ZEROES => claim.grow(ZEROES_BYTES.min(u64::from(request.length)))?,
        _ => {}
    }
    Ok(Ok(Io { kind, offset: request.offset, length: u64::from(request.length), buffer }))
}

/// Returns whether `read` holds a whole request, with its payload.
pub(super) fn holds_request(read: &[u8]) -> bool {
    let Some(request) = read.first_chunk().and_then(Request::parse) else { return false };
    read.len() - REQUEST_BYTES >= payload_bytes(&request)
}

/// Returns the number of payload bytes that follow `request`.
fn payload_bytes(request: &Request) -> usize {
    if request.command == command::WRITE { request.length as usize } else { 0 }
}

/// Fills `buffer` with `length` bytes. Memory is claimed and allocated as they arrive, because a client may announce
/// more than it sends.
fn read_payload(reader: &mut impl Read, length: usize, buffer: &mut Vec<u8>, claim: &mut Claim) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        let end = length.min(done + PAYLOAD_STEP_BYTES);
        claim.grow((end - done) as u64)?;
        if buffer.len() < end {
            buffer.reserve_exact(end - buffer.len());
            buffer.resize(end, 0);
        }
        let account = claim.account();
        account.client().receive_within(account.limits().request_time);
        reader.read_exact(&mut buffer[done..end])?;
        done = end;
    }
    buffer.truncate(length);
    Ok(())
}

/// Returns the error number for a change of a read-only drive, or for a range that is not whole sectors of the drive.
fn misplaced(request: &Request, facts: &Facts) -> Option<u32> {
    let Request { command, offset, length, .. } = *request;
    let (length, sector) = (u64::from(length), u64::from(facts.sector_bytes));
    let stores = matches!(command, command::WRITE | command::WRITE_ZEROES);
    if command == command::FLUSH {
        return (offset != 0 || length != 0).then_some(errno::EINVAL);
    }
    if facts.read_only && (stores || command == command::TRIM) {
        return Some(errno::EPERM);
    }
    if offset.checked_add(length).is_none_or(|end| end > facts.capacity_bytes) {
        return Some(if stores { errno::ENOSPC } else { errno::EINVAL });
    }
    (length == 0 || !offset.is_multiple_of(sector) || !length.is_multiple_of(sector)).then_some(errno::EINVAL)
}

/// Returns whether the request takes several operations of the drive: zeroes that must be written, or a flush after a
/// trim with FUA.
pub(super) fn steps_of(request: &Request, io: &Io) -> Steps {
    let fua = request.flags & command_flag::FUA != 0;
    match (request.command, io.kind) {
        (command::WRITE_ZEROES, IoKind::Write { .. }) => Steps::Zeroes,
        (command::WRITE_ZEROES | command::TRIM, IoKind::Trim) if fua => Steps::TrimAndFlush,
        (command::BLOCK_STATUS, _) => Steps::Status,
        _ => Steps::One,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Steps {
    One,
    Zeroes,
    TrimAndFlush,
    Status,
}

/// Calls `serve` for each operation of a request; the first error ends the request. Returns the last answer.
pub(super) fn in_steps(steps: Steps, io: Io, serve: &mut dyn FnMut(Io) -> Answer) -> Answer {
    match steps {
        Steps::One | Steps::Status => serve(io),
        Steps::TrimAndFlush => {
            let trimmed = serve(io);
            if trimmed.outcome.is_err() {
                return trimmed;
            }
            serve(Io { kind: IoKind::Flush, offset: 0, length: 0, buffer: Vec::new() })
        }
        Steps::Zeroes => {
            let (mut offset, end) = (io.offset, io.offset + io.length);
            let mut buffer = Vec::new();
            loop {
                let length = ZEROES_BYTES.min(end - offset);
                buffer.clear();
                buffer.resize(length as usize, 0);
                let answer = serve(Io { kind: io.kind, offset, length, buffer });
                offset += length;
                if answer.outcome.is_err() || offset >= end {
                    return answer;
                }
                buffer = answer.buffer;
            }
        }
    }
}

/// Appends the reply to `asked`, without the data of a read, which the caller sends after it.
pub(super) fn reply(out: &mut Vec<u8>, asked: &NbdRequest, outcome: &Result<(), DeviceError>) {
    let NbdRequest { request, session } = asked;
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

pub(super) fn refuse(out: &mut Vec<u8>, asked: &NbdRequest, error: u32, words: &str) {
    if asked.session.structured {
        error_chunk(out, asked.request.cookie, error, words);
    } else {
        simple_reply(out, asked.request.cookie, error);
    }
}

/// Appends the answer to BLOCK_STATUS.
pub(super) fn status(out: &mut Vec<u8>, front: &DriveServer, asked: &NbdRequest) {
    let Request { cookie, offset, length, flags, .. } = asked.request;
    let mut runs = Vec::new();
    let looked_at = u64::from(length).min(STATUS_BYTES_MAX);
    if let Err(error) = front.with(|drive, _| drive.allocation(offset, looked_at, &mut runs)) {
        return refuse(out, asked, errno_of(&error), &error.to_string());
    }
    let wants_one = flags & command_flag::REQ_ONE != 0;
    runs.truncate(if wants_one { 1 } else { EXTENTS_MAX });
    chunk_header(out, chunk::DONE, chunk::BLOCK_STATUS, cookie, 4 + 8 * runs.len() as u32);
    out.extend_from_slice(&ALLOCATION_ID.to_be_bytes());
    let mut left = looked_at;
    for (bytes, is_stored) in runs {
        let bytes = bytes.min(left);
        left -= bytes;
        out.extend_from_slice(&(bytes as u32).to_be_bytes());
        out.extend_from_slice(&if is_stored { 0 } else { HOLE_AND_ZERO }.to_be_bytes());
    }
}
