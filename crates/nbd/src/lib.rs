//! Numbers and messages of the network block device protocol, for servers and clients alike. All integers are
//! big-endian. Source: the protocol's own document, `doc/proto.md` of the NBD project. There is no I/O here.

/// Magic number of the server's greeting: "NBDMAGIC".
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Magic number of the newstyle greeting and of every option: "IHAVEOPT".
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Magic number in place of [`OPTION_MAGIC`] from a server that speaks only the oldest form of the handshake.
pub const OLD_STYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Magic number of a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic number of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic number of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Magic number of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flags of the handshake: the server offers them in 16 bits, and the client accepts them in 32.
pub mod handshake_flag {
    /// Unknown options are answered instead of ending the connection.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// No zeroes follow the export's facts.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Number of zeroes after the answer to [`option::EXPORT_NAME`], unless both sides agreed on none.
pub const EXPORT_ZEROES: usize = 124;

/// Options of the handshake.
pub mod option {
    /// Ends the options and begins with requests, in the oldest form: the server cannot reply with an error.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the connection.
    pub const ABORT: u32 = 2;
    /// Asks for the names of the exports.
    pub const LIST: u32 = 3;
    /// Starts TLS.
    pub const STARTTLS: u32 = 5;
    /// Asks for facts about an export.
    pub const INFO: u32 = 6;
    /// Asks for facts about an export like [`INFO`], then begins with requests.
    pub const GO: u32 = 7;
    /// Asks for structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Asks for the names of the metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Chooses metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod reply {
    /// The option was accepted, or the last reply to it was sent.
    pub const ACK: u32 = 1;
    /// The name of an export.
    pub const SERVER: u32 = 2;
    /// A fact about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Bit that is set in every reply with an error.
    pub const ERROR: u32 = 1 << 31;
    /// The server does not know the option.
    pub const ERR_UNSUPPORTED: u32 = 0x8000_0001;
    /// The server's policy forbids the option.
    pub const ERR_POLICY: u32 = 0x8000_0002;
    /// The option is invalid.
    pub const ERR_INVALID: u32 = 0x8000_0003;
    /// The option needs TLS.
    pub const ERR_TLS_REQUIRED: u32 = 0x8000_0005;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = 0x8000_0006;
    /// The server is shutting down.
    pub const ERR_SHUTDOWN: u32 = 0x8000_0007;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = 0x8000_0009;
}

/// Facts of an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Name of the export.
    pub const NAME: u16 = 1;
    /// Description of the export, for people.
    pub const DESCRIPTION: u16 = 2;
    /// Smallest, preferred and largest size of a request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: abilities of an export.
pub mod flag {
    /// The other flags are valid.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// FUA is supported.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The export is a rotating disk.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// TRIM is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES is supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// A read can be requested in one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers answered writes of other connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// WRITE_ZEROES can be requested to fail if zeroes are not cheap.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Types of requests.
pub mod command {
    /// Read bytes.
    pub const READ: u16 = 0;
    /// Write bytes.
    pub const WRITE: u16 = 1;
    /// End of the connection.
    pub const DISCONNECT: u16 = 2;
    /// Make completed writes durable.
    pub const FLUSH: u16 = 3;
    /// Discard a range of bytes.
    pub const TRIM: u16 = 4;
    /// Write zeroes without sending them.
    pub const WRITE_ZEROES: u16 = 6;
    /// Query of the allocation status.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub mod command_flag {
    /// Makes the request durable before the answer.
    pub const FUA: u16 = 1 << 0;
    /// Zeroes must not make a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Only one extent is wanted.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Fails the request if zeroes are not cheap.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Flags and types of chunks in structured replies.
pub mod chunk {
    /// Flag of the last chunk of a reply.
    pub const DONE: u16 = 1;
    /// Type of a chunk without data.
    pub const NONE: u16 = 0;
    /// Type of a chunk with data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Type of a chunk with extents of the allocation status.
    pub const BLOCK_STATUS: u16 = 5;
    /// Type of a chunk with an error.
    pub const ERROR: u16 = 0x8001;
}

/// Errors, as Linux numbers them.
pub mod errno {
    /// The operation is not permitted.
    pub const EPERM: u32 = 1;
    /// The medium failed.
    pub const EIO: u32 = 5;
    /// Not enough memory for the request.
    pub const ENOMEM: u32 = 12;
    /// The request is invalid.
    pub const EINVAL: u32 = 22;
    /// The range is past the end, or the host's disk is full.
    pub const ENOSPC: u32 = 28;
    /// The answer is larger than one reply can be.
    pub const EOVERFLOW: u32 = 75;
    /// The operation is not supported.
    pub const ENOTSUP: u32 = 95;
    /// The server is shutting down.
    pub const ESHUTDOWN: u32 = 108;
}

/// Number of bytes of the header of a reply to an option.
pub const OPTION_REPLY_BYTES: usize = 20;
/// Number of bytes of the header of a simple reply.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Number of bytes of the header of a request.
pub const REQUEST_BYTES: usize = 28;
/// Maximum number of bytes of a read or write; the protocol lets every client rely on this size.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Name of the only metadata context.
pub const ALLOCATION: &str = "base:allocation";
/// Number of the metadata context [`ALLOCATION`], which the server assigns.
pub const ALLOCATION_ID: u32 = 1;
/// Status of an extent that is not allocated and reads as zeros.
pub const HOLE_AND_ZERO: u32 = 0b11;

/// The header of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Flags, bits of [`command_flag`].
    pub flags: u16,
    /// Type of the request, one of [`command`].
    pub command: u16,
    /// Number that the client chose for the request.
    pub cookie: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

impl Request {
    /// Parses a header; `None` if the magic number is wrong.
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

    /// Appends the header in the wire format.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&self.command.to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
    }
}

/// Appends an option in the form in which a client sends it.
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

/// Appends the header of a simple reply.
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

/// Appends an error chunk with a message, of which at most 4096 bytes are sent.
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

    /// Checks the bytes of a request against the protocol's document: magic, flags, type, cookie, offset, length.
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
