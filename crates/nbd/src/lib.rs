//! Numbers and messages of the network block device protocol, for servers and clients alike. All integers are big-endian.
//! Source: the protocol's own document, `doc/proto.md` of the NBD project. There is no I/O here.

/// "NBDMAGIC".
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT".
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// In the place of [`OPTION_MAGIC`] where a server speaks only the oldest form of the handshake.
pub const OLD_STYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Before every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Before every simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before every chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flags of the handshake: the server offers them in 16 bits, the client takes them up in 32.
pub mod handshake_flag {
    /// Unknown options are answered instead of ending the connection.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// No zeroes follow the export's facts.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Zeroes after the answer to [`option::EXPORT_NAME`], unless both sides agreed on none.
pub const EXPORT_ZEROES: usize = 124;

/// Options.
pub mod option {
    /// Go, oldest form: no reply is possible.
    pub const EXPORT_NAME: u32 = 1;
    /// Give up.
    pub const ABORT: u32 = 2;
    /// Name the exports.
    pub const LIST: u32 = 3;
    /// Turn to TLS.
    pub const STARTTLS: u32 = 5;
    /// Facts of an export.
    pub const INFO: u32 = 6;
    /// The same, and go.
    pub const GO: u32 = 7;
    /// Replies in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Name the metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose among them.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export.
    pub const SERVER: u32 = 2;
    /// A fact of an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Set in every reply that is an error.
    pub const ERROR: u32 = 1 << 31;
    /// The server does not know the option.
    pub const ERR_UNSUPPORTED: u32 = 0x8000_0001;
    /// The server's rules forbid it.
    pub const ERR_POLICY: u32 = 0x8000_0002;
    /// It makes no sense.
    pub const ERR_INVALID: u32 = 0x8000_0003;
    /// It needs TLS first.
    pub const ERR_TLS_REQUIRED: u32 = 0x8000_0005;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = 0x8000_0006;
    /// The server is going down.
    pub const ERR_SHUTDOWN: u32 = 0x8000_0007;
    /// It is too long.
    pub const ERR_TOO_BIG: u32 = 0x8000_0009;
}

/// Facts of an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Its name.
    pub const NAME: u16 = 1;
    /// What it is.
    pub const DESCRIPTION: u16 = 2;
    /// Smallest, best and largest request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags.
pub mod flag {
    /// The others mean something.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is known.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// FUA is known.
    pub const SEND_FUA: u16 = 1 << 3;
    /// It is a disk that rotates.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// TRIM is known.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is known.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Reads can be asked for in one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers what others were answered.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// Zeroes can be asked for only where they are cheap.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Requests.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// Good-bye.
    pub const DISCONNECT: u16 = 2;
    /// Flush.
    pub const FLUSH: u16 = 3;
    /// Trim.
    pub const TRIM: u16 = 4;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// What is allocated.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub mod command_flag {
    /// Durable when answered.
    pub const FUA: u16 = 1 << 0;
    /// Zeroes must not make a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// One extent is enough.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Only if zeroes are cheap.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of structured replies.
pub mod chunk {
    /// The last chunk of a reply.
    pub const DONE: u16 = 1;
    /// Nothing.
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Extents.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error.
    pub const ERROR: u16 = 0x8001;
}

/// Errors, as Linux numbers them.
pub mod errno {
    /// Not permitted.
    pub const EPERM: u32 = 1;
    /// The medium failed.
    pub const EIO: u32 = 5;
    /// No room for so much.
    pub const ENOMEM: u32 = 12;
    /// A request that makes no sense.
    pub const EINVAL: u32 = 22;
    /// Past the end, or the host's disk is full.
    pub const ENOSPC: u32 = 28;
    /// More than one reply takes.
    pub const EOVERFLOW: u32 = 75;
    /// Not here.
    pub const ENOTSUP: u32 = 95;
    /// The server is going down.
    pub const ESHUTDOWN: u32 = 108;
}

/// Bytes of the header of a reply to an option.
pub const OPTION_REPLY_BYTES: usize = 20;
/// Bytes of a simple reply's header.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 28;
/// The largest read or write: what the protocol lets a client count on.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// The one metadata context.
pub const ALLOCATION: &str = "base:allocation";
/// The number the client is given for it.
pub const ALLOCATION_ID: u32 = 1;
/// Not allocated, and reads as zeros.
pub const HOLE_AND_ZERO: u32 = 0b11;

/// A request, as read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Flags of the command.
    pub flags: u16,
    /// Which command.
    pub command: u16,
    /// The client's own number.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl Request {
    /// Takes a header apart; nothing where the magic is wrong.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Request> {
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let half = |at: usize| u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"));
        (word(0) == REQUEST_MAGIC).then(|| Request {
            flags: half(4),
            command: half(6),
            cookie: long(8),
            offset: long(16),
            length: word(24),
        })
    }

    /// Appends the header as it goes over the wire.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&self.command.to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
    }
}

/// Appends an option as a client sends it.
pub fn put_option(out: &mut Vec<u8>, number: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}

/// Appends a reply to `option`.
pub fn put_option_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}

/// Appends a simple reply's header.
pub fn simple_reply(out: &mut Vec<u8>, cookie: u64, error: u32) {
    out.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&error.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

/// Appends the header of a chunk of `length` bytes.
pub fn chunk_header(out: &mut Vec<u8>, flags: u16, kind: u16, cookie: u64, length: u32) {
    out.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

/// Appends an error as a chunk, with its words.
pub fn error_chunk(out: &mut Vec<u8>, cookie: u64, error: u32, words: &str) {
    let words = &words.as_bytes()[..words.len().min(4096)];
    chunk_header(out, chunk::DONE, chunk::ERROR, cookie, 6 + words.len() as u32);
    out.extend_from_slice(&error.to_be_bytes());
    out.extend_from_slice(&(words.len() as u16).to_be_bytes());
    out.extend_from_slice(words);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of a request in the protocol's document: magic, flags, type, cookie, offset, length.
    #[test]
    fn a_request_reads_as_it_was_written() {
        let request = Request { flags: 1, command: command::WRITE, cookie: 7, offset: 1 << 40, length: 4096 };
        let mut bytes = Vec::new();
        request.put(&mut bytes);
        let wanted = b"\x25\x60\x95\x13\0\x01\0\x01\0\0\0\0\0\0\0\x07\0\0\x01\0\0\0\0\0\0\0\x10\0";
        assert_eq!(bytes, wanted);
        assert_eq!(Request::parse(wanted), Some(request));
        bytes[0] ^= 1;
        assert_eq!(Request::parse(&bytes.try_into().expect("28 bytes")), None);
    }
}
