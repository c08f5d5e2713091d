//! The handshake: options until the client begins requests, gives up or starts TLS.
//!
//! ```text
//!   greeting ─► options ──┬─► Go          facts sent; requests follow
//!                 ▲   │   ├─► StartTls    the caller wraps the connection and begins again at the options
//!                 └───┘   └─► Closed      the client gave up, or broke the protocol
//! ```
//!
//! Invariants:
//! 1. The server never keeps more than [`OPTION_BYTES_MAX`] of the bytes that a client sends.

use std::io::{self, Read, Write};

use super::incoming::read_past;
use super::protocol::*;
use crate::drive_server::Facts;

/// Maximum number of bytes of an option that is processed; a longer option is skipped and refused.
const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Maximum number of bytes of an option that is skipped; after a longer one the connection is closed.
const OPTION_BYTES_READ_PAST: u32 = 16 << 20;
/// Maximum number of options that a client may send: an honest one needs a dozen.
const OPTIONS_MAX: usize = 1000;

/// The features that a client has chosen during the option negotiation, which hold for its requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Session {
    /// Whether the client chose structured replies, in which the server then answers reads, BLOCK_STATUS and errors.
    pub structured: bool,
    /// Whether the client chose the metadata context `base:allocation`. Without it, the server refuses BLOCK_STATUS.
    pub allocation: bool,
}

/// The outcome of the option negotiation of the NBD handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The client chose the export with these features. Requests follow.
    Go(Session),
    /// The client asked for TLS, and the server agreed. The TLS handshake follows, and then the options are negotiated
    /// anew.
    StartTls,
    /// The server closes the connection: the client aborted, named an unknown export in EXPORT_NAME, broke the
    /// protocol, or sent 1000 options without an end.
    Closed,
}

/// The state of TLS during the option negotiation of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tls {
    /// The server has no certificate, so it refuses TLS.
    None,
    /// The server has a certificate, and TLS is not in use yet. The client must start TLS before any other option
    /// except ABORT.
    Required,
    /// TLS is in use on this connection.
    On,
}

/// Sends the server's NBD greeting, and reads the client's flags. Returns whether the client wants the 124 reserved
/// zero bytes after EXPORT_NAME left out (`NO_ZEROES`). Returns `None` if the client does not speak the fixed newstyle
/// protocol or sets unknown flags; the connection must then be closed.
///
/// # Errors
///
/// The stream fails or ends before the flags.
pub fn greet(stream: &mut (impl Read + Write)) -> io::Result<Option<bool>> {
    let mut greeting = Vec::with_capacity(18);
    greeting.extend_from_slice(&INIT_MAGIC.to_be_bytes());
    greeting.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    let offered = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    greeting.extend_from_slice(&offered.to_be_bytes());
    stream.write_all(&greeting)?;
    stream.flush()?;
    let flags = read_word(stream)?;
    if flags & u32::from(handshake_flag::FIXED_NEWSTYLE) == 0 || flags & !u32::from(offered) != 0 {
        return Ok(None);
    }
    Ok(Some(flags & u32::from(handshake_flag::NO_ZEROES) != 0))
}

/// Reads and answers options of the NBD handshake until one ends the negotiation. `facts` describe the only export,
/// which is known by the empty name and by the drive's label. `no_zeroes` is the result of [`greet`]. The outcome is
/// [`Ended::Closed`] if the client aborts, breaks the protocol, names an unknown export in EXPORT_NAME, or sends 1000
/// options without an end.
///
/// # Errors
///
/// The stream fails or ends within the negotiation.
pub fn options(stream: &mut (impl Read + Write), facts: &Facts, no_zeroes: bool, tls: Tls) -> io::Result<Ended> {
    let mut session = Session::default();
    for _ in 0..OPTIONS_MAX {
        if read_long(stream)? != OPTION_MAGIC {
            return Ok(Ended::Closed);
        }
        let (number, length) = (read_word(stream)?, read_word(stream)?);
        if length > OPTION_BYTES_READ_PAST {
            return Ok(Ended::Closed);
        }
        if length > OPTION_BYTES_MAX {
            read_past(stream, length)?;
            answer(stream, number, reply::ERR_TOO_BIG, b"the option is too long")?;
            continue;
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        if let Some(ended) = one(stream, facts, no_zeroes, tls, &mut session, number, &data)? {
            return Ok(ended);
        }
    }
    Ok(Ended::Closed)
}

fn one(
    stream: &mut (impl Read + Write),
    facts: &Facts,
    no_zeroes: bool,
    tls: Tls,
    session: &mut Session,
    number: u32,
    data: &[u8],
) -> io::Result<Option<Ended>> {
    if tls == Tls::Required && !matches!(number, option::STARTTLS | option::ABORT) {
        if number == option::EXPORT_NAME {
            return Ok(Some(Ended::Closed));
        }
        answer(stream, number, reply::ERR_TLS_REQUIRED, b"this server speaks TLS only")?;
        return Ok(None);
    }
    match number {
        option::EXPORT_NAME => {
            if !is_export(data, facts) {
                return Ok(Some(Ended::Closed));
            }
            export_facts(stream, facts, no_zeroes)?;
            return Ok(Some(Ended::Go(*session)));
        }
        option::ABORT => {
            // The client need not wait for this answer, and may have disconnected already.
            let _ = answer(stream, number, reply::ACK, &[]);
            return Ok(Some(Ended::Closed));
        }
        option::LIST if !data.is_empty() => answer(stream, number, reply::ERR_INVALID, b"LIST takes no data")?,
        option::LIST => {
            answer(stream, number, reply::SERVER, &[0; 4])?;
            answer(stream, number, reply::ACK, &[])?;
        }
        option::STARTTLS if tls == Tls::Required && data.is_empty() => {
            answer(stream, number, reply::ACK, &[])?;
            return Ok(Some(Ended::StartTls));
        }
        option::STARTTLS if tls == Tls::None => {
            answer(stream, number, reply::ERR_UNSUPPORTED, b"this server has no certificate")?;
        }
        option::STARTTLS => answer(stream, number, reply::ERR_INVALID, b"TLS is on already, or data came with it")?,
        option::INFO | option::GO => {
            if about_export(stream, facts, number, data)? && number == option::GO {
                return Ok(Some(Ended::Go(*session)));
            }
        }
        option::STRUCTURED_REPLY if data.is_empty() => {
            session.structured = true;
            answer(stream, number, reply::ACK, &[])?;
        }
        option::LIST_META_CONTEXT | option::SET_META_CONTEXT => contexts(stream, facts, session, number, data)?,
        option::STRUCTURED_REPLY => answer(stream, number, reply::ERR_INVALID, b"this option takes no data")?,
        _ => answer(stream, number, reply::ERR_UNSUPPORTED, b"unknown option")?,
    }
    Ok(None)
}

/// Returns whether `name` names the only export: its name is empty, or the drive's.
fn is_export(name: &[u8], facts: &Facts) -> bool {
    name.is_empty() || name == facts.label.as_bytes()
}

/// Returns the NBD transmission flags of the drive: the commands and features that the export supports. A read-only
/// drive has `READ_ONLY`, and no trims or zeroes.
pub fn transmission_flags(facts: &Facts) -> u16 {
    let always = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::ROTATIONAL | flag::SEND_DF;
    // One drive and one volatile cache serve all connections: a flush on any connection covers the answered writes of all.
    let always = always | flag::CAN_MULTI_CONN;
    if facts.read_only {
        return always | flag::READ_ONLY;
    }
    always | flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO
}

fn export_facts(stream: &mut impl Write, facts: &Facts, no_zeroes: bool) -> io::Result<()> {
    let mut out = facts.capacity_bytes.to_be_bytes().to_vec();
    out.extend_from_slice(&transmission_flags(facts).to_be_bytes());
    if !no_zeroes {
        out.extend_from_slice(&[0; EXPORT_ZEROES]);
    }
    stream.write_all(&out)?;
    stream.flush()
}

/// Answers INFO or GO. Returns whether the export exists.
fn about_export(stream: &mut impl Write, facts: &Facts, number: u32, data: &[u8]) -> io::Result<bool> {
    let Some((name, wanted)) = export_request(data) else {
        answer(stream, number, reply::ERR_INVALID, b"the option is malformed")?;
        return Ok(false);
    };
    if !is_export(name, facts) {
        answer(stream, number, reply::ERR_UNKNOWN, b"no such export; ask for the empty name")?;
        return Ok(false);
    }
    let mut export = info::EXPORT.to_be_bytes().to_vec();
    export.extend_from_slice(&facts.capacity_bytes.to_be_bytes());
    export.extend_from_slice(&transmission_flags(facts).to_be_bytes());
    answer(stream, number, reply::INFO, &export)?;
    let mut sizes = info::BLOCK_SIZE.to_be_bytes().to_vec();
    for bytes in [facts.sector_bytes, facts.sector_bytes.max(4096), PAYLOAD_BYTES_MAX] {
        sizes.extend_from_slice(&bytes.to_be_bytes());
    }
    answer(stream, number, reply::INFO, &sizes)?;
    for kind in wanted.chunks_exact(2).map(|kind| u16::from_be_bytes([kind[0], kind[1]])) {
        let words = match kind {
            info::NAME => name,
            info::DESCRIPTION => facts.label.as_bytes(),
            _ => continue,
        };
        answer(stream, number, reply::INFO, &[&kind.to_be_bytes(), words].concat())?;
    }
    answer(stream, number, reply::ACK, &[])?;
    Ok(true)
}

/// Returns the name and the requested facts of INFO or GO.
fn export_request(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, rest) = counted(data)?;
    let count = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?) as usize;
    let wanted = &rest[2..];
    (wanted.len() == count * 2).then_some((name, wanted))
}

/// Returns a string that is preceded by its length, and the bytes after it.
fn counted(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_be_bytes(data.get(..4)?.try_into().ok()?) as usize;
    let rest = &data[4..];
    (length <= rest.len()).then(|| rest.split_at(length))
}

/// Answers LIST_META_CONTEXT and SET_META_CONTEXT.
fn contexts(stream: &mut impl Write, facts: &Facts, session: &mut Session, number: u32, data: &[u8]) -> io::Result<()> {
    let is_choice = number == option::SET_META_CONTEXT;
    if is_choice {
        session.allocation = false;
        if !session.structured {
            return answer(stream, number, reply::ERR_INVALID, b"ask for structured replies first");
        }
    }
    let Some((name, queries)) = context_request(data) else {
        return answer(stream, number, reply::ERR_INVALID, b"the option is malformed");
    };
    if !is_export(name, facts) {
        return answer(stream, number, reply::ERR_UNKNOWN, b"no such export; ask for the empty name");
    }
    let asks_for_all = queries.is_empty() && !is_choice;
    let is_wanted = |query: &&[u8]| *query == ALLOCATION.as_bytes() || (!is_choice && *query == b"base:");
    if asks_for_all || queries.iter().any(is_wanted) {
        session.allocation |= is_choice;
        let context = [&ALLOCATION_ID.to_be_bytes()[..], ALLOCATION.as_bytes()].concat();
        answer(stream, number, reply::META_CONTEXT, &context)?;
    }
    answer(stream, number, reply::ACK, &[])
}

/// Returns the export name and the queries of a metadata context option.
fn context_request(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let (name, rest) = counted(data)?;
    let count = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
    let mut rest = &rest[4..];
    let mut queries = Vec::new();
    for _ in 0..count {
        let (query, after) = counted(rest)?;
        queries.push(query);
        rest = after;
    }
    rest.is_empty().then_some((name, queries))
}

fn answer(stream: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let mut out = Vec::with_capacity(OPTION_REPLY_BYTES + data.len());
    put_option_reply(&mut out, option, kind, data);
    stream.write_all(&out)?;
    stream.flush()
}

fn read_word(stream: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

fn read_long(stream: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}
