//! Handshake with an NBD server: fixed newstyle, by `GO`, or by `EXPORT_NAME` for servers without `GO`.

use std::io::{self, Read, Write};

use imbrex_nbd::{EXPORT_ZEROES, INIT_MAGIC, OLD_STYLE_MAGIC, OPTION_MAGIC, OPTION_REPLY_BYTES, OPTION_REPLY_MAGIC};
use imbrex_nbd::{flag, handshake_flag, info, option, put_option, reply};

/// Longest answer to an option that is accepted, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Block size for servers that report none, bytes.
const BLOCK_BYTES: u32 = 512;

/// Properties of an export, as reported by the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Export {
    /// Size of the export in bytes.
    pub size_bytes: u64,
    /// Whether the server refuses writes to the export.
    pub is_read_only: bool,
    /// Whether the server accepts writes with forced unit access (FUA), which are durable when they are answered.
    pub has_fua: bool,
    /// Size in bytes of the smallest block that can be read or written; 512 if the server reports less, or none.
    pub block_bytes: u32,
    /// Description of the export for people; `None` if the server gives none, or none in UTF-8.
    pub description: Option<String>,
}

/// Performs the handshake for the export called `name`.
pub(super) fn run(stream: &mut (impl Read + Write), name: &str) -> io::Result<Export> {
    let greeting: [u8; 18] = read(stream)?;
    let (first, second) = (u64_at(&greeting, 0), u64_at(&greeting, 8));
    let flags = u16_at(&greeting, 16);
    if first != INIT_MAGIC {
        return Err(io::Error::other("the program that listens there is no NBD server"));
    }
    if second == OLD_STYLE_MAGIC || flags & handshake_flag::FIXED_NEWSTYLE == 0 {
        return Err(io::Error::other("the server speaks only the oldest form of NBD"));
    }
    if second != OPTION_MAGIC {
        return Err(io::Error::other("the program that listens there is no NBD server"));
    }
    let zeroes = flags & handshake_flag::NO_ZEROES == 0;
    stream.write_all(&u32::from(flags & (handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES)).to_be_bytes())?;
    match go(stream, name)? {
        Some(export) => Ok(export),
        None => by_name(stream, name, zeroes),
    }
}

/// Selects the export by `GO`; returns nothing if the server does not know that option.
fn go(stream: &mut (impl Read + Write), name: &str) -> io::Result<Option<Export>> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(name.as_bytes());
    for word in [2, info::BLOCK_SIZE, info::DESCRIPTION] {
        data.extend_from_slice(&word.to_be_bytes());
    }
    send_option(stream, option::GO, &data)?;
    let mut export = None;
    let mut block_bytes = BLOCK_BYTES;
    let mut description = None;
    loop {
        let (kind, data) = option_reply(stream)?;
        match kind {
            reply::INFO => match (data.get(..2).map(|bytes| u16_at(bytes, 0)), data.len()) {
                (Some(info::EXPORT), 12) => export = Some(export_of(u64_at(&data, 2), u16_at(&data, 10))),
                // A drive's sector is never smaller than this.
                (Some(info::BLOCK_SIZE), 14) => block_bytes = u32_at(&data, 2).max(BLOCK_BYTES),
                (Some(info::DESCRIPTION), _) => description = String::from_utf8(data[2..].to_vec()).ok(),
                _ => {}
            },
            reply::ACK => {
                let export =
                    export.ok_or_else(|| io::Error::other("the server does not say how large the drive is"))?;
                return Ok(Some(Export { block_bytes, description, ..export }));
            }
            reply::ERR_UNSUPPORTED => return Ok(None),
            _ if kind & reply::ERROR != 0 => return Err(refused(kind, name, &data)),
            _ => {}
        }
    }
}

fn by_name(stream: &mut (impl Read + Write), name: &str, zeroes: bool) -> io::Result<Export> {
    send_option(stream, option::EXPORT_NAME, name.as_bytes())?;
    let facts: [u8; 10] = read(stream)?;
    if zeroes {
        let _: [u8; EXPORT_ZEROES] = read(stream)?;
    }
    Ok(export_of(u64_at(&facts, 0), u16_at(&facts, 8)))
}

fn export_of(size_bytes: u64, flags: u16) -> Export {
    Export {
        size_bytes,
        is_read_only: flags & flag::READ_ONLY != 0,
        has_fua: flags & flag::SEND_FUA != 0,
        block_bytes: BLOCK_BYTES,
        description: None,
    }
}

fn refused(number: u32, name: &str, data: &[u8]) -> io::Error {
    let reason = match number {
        reply::ERR_POLICY => "the server's rules forbid it".to_string(),
        reply::ERR_TLS_REQUIRED => "the server wants TLS, which is not spoken here".to_string(),
        reply::ERR_UNKNOWN => format!("the server has no export called '{name}'"),
        reply::ERR_SHUTDOWN => "the server is going down".to_string(),
        other => format!("the server refuses (error {})", other & !reply::ERROR),
    };
    let words = String::from_utf8_lossy(data);
    io::Error::other(if words.is_empty() { reason } else { format!("{reason}: {words}") })
}

fn send_option(stream: &mut impl Write, number: u32, data: &[u8]) -> io::Result<()> {
    let mut message = Vec::new();
    put_option(&mut message, number, data);
    stream.write_all(&message)
}

fn option_reply(stream: &mut impl Read) -> io::Result<(u32, Vec<u8>)> {
    let head: [u8; OPTION_REPLY_BYTES] = read(stream)?;
    let length = u32_at(&head, 16) as usize;
    if u64_at(&head, 0) != OPTION_REPLY_MAGIC || length > ANSWER_BYTES_MAX {
        return Err(io::Error::other("the server's answer makes no sense"));
    }
    let mut data = vec![0; length];
    stream.read_exact(&mut data)?;
    Ok((u32_at(&head, 12), data))
}

fn read<const COUNT: usize>(stream: &mut impl Read) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
