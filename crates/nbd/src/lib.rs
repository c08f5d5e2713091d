//! Numbers and messages of the network block device protocol, for servers and clients alike. All integers are
//! big-endian. Source: the protocol's own document, `doc/proto.md` of the NBD project. There is no I/O here.

/// First magic number of the server's greeting: "NBDMAGIC".
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second magic number of the server's greeting in the newstyle handshake, and first number of every option that a
/// client sends: "IHAVEOPT".
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Second magic number of the greeting of a server that knows only the oldstyle handshake, in place of
/// [`OPTION_MAGIC`].
pub const OLD_STYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Magic number at the start of a server's reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic number at the start of a client's request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic number at the start of a simple reply to a request.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Magic number at the start of each chunk of a structured reply to a request.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flags of the handshake (bit masks). The server offers them in 16 bits, and the client accepts them in 32 bits.
pub mod handshake_flag {
    /// Handshake flag, fixed newstyle: the server answers unknown options with an error instead of ending the
    /// connection.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// Handshake flag: after its answer to [`option::EXPORT_NAME`](super::option::EXPORT_NAME), the server does not
    /// send the 124 zero bytes ([`EXPORT_ZEROES`](super::EXPORT_ZEROES)).
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Number of zero bytes after the server's answer to [`option::EXPORT_NAME`], unless both sides set
/// [`handshake_flag::NO_ZEROES`].
pub const EXPORT_ZEROES: usize = 124;

/// Numbers of the options that a client sends during the handshake.
pub mod option {
    /// Option of a client: selects an export by name and ends the handshake. The server cannot reply with an error; it
    /// can only close the connection.
    pub const EXPORT_NAME: u32 = 1;
    /// Option of a client: ends the handshake and the connection.
    pub const ABORT: u32 = 2;
    /// Option of a client: asks for the names of all exports.
    pub const LIST: u32 = 3;
    /// Option of a client: starts encryption of the connection with TLS.
    pub const STARTTLS: u32 = 5;
    /// Option of a client: asks for properties of an export, such as its size, without selecting the export.
    pub const INFO: u32 = 6;
    /// Option of a client: selects an export and ends the handshake. The server replies with properties of the export,
    /// such as its size.
    pub const GO: u32 = 7;
    /// Option of a client: asks the server to use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Option of a client: asks for the names of the metadata contexts of an export, such as `base:allocation`.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Option of a client: selects the metadata contexts, such as `base:allocation`, that
    /// [`command::BLOCK_STATUS`](super::command::BLOCK_STATUS) reports.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of the server's replies to options.
pub mod reply {
    /// Type of a reply to an option: the option was accepted. If several replies answer an option, this one is the
    /// last.
    pub const ACK: u32 = 1;
    /// Type of a reply to an option: the name of one export, in answer to [`option::LIST`](super::option::LIST).
    pub const SERVER: u32 = 2;
    /// Type of a reply to an option: one property of an export, such as its size; the module [`info`](super::info)
    /// lists the properties.
    pub const INFO: u32 = 3;
    /// Type of a reply to an option: the name and the number of one metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Bit that is set in the type of every reply to an option that reports an error.
    pub const ERROR: u32 = 1 << 31;
    /// Error reply to an option: the server does not know the option.
    pub const ERR_UNSUPPORTED: u32 = 0x8000_0001;
    /// Error reply to an option: the server's policy forbids the option.
    pub const ERR_POLICY: u32 = 0x8000_0002;
    /// Error reply to an option: the option is syntactically or semantically invalid.
    pub const ERR_INVALID: u32 = 0x8000_0003;
    /// Error reply to an option: the server requires TLS before this option.
    pub const ERR_TLS_REQUIRED: u32 = 0x8000_0005;
    /// Error reply to an option: the requested export does not exist.
    pub const ERR_UNKNOWN: u32 = 0x8000_0006;
    /// Error reply to an option: the server is shutting down.
    pub const ERR_SHUTDOWN: u32 = 0x8000_0007;
    /// Error reply to an option: the option or its reply is too large.
    pub const ERR_TOO_BIG: u32 = 0x8000_0009;
}

/// Types of the properties of an export, in replies of the type `reply::INFO`.
pub mod info {
    /// Property of an export in a reply to an option: its size in bytes, and its transmission flags
    /// ([`flag`](super::flag)).
    pub const EXPORT: u16 = 0;
    /// Property of an export in a reply to an option: its name.
    pub const NAME: u16 = 1;
    /// Property of an export in a reply to an option: its description for human readers.
    pub const DESCRIPTION: u16 = 2;
    /// Property of an export in a reply to an option: the smallest, preferred and largest block size of requests, in
    /// bytes.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export (bit masks): which commands and flags the server supports.
pub mod flag {
    /// Transmission flag of an export: the other transmission flags are valid; always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Transmission flag of an export: the export is read-only, so writes fail.
    pub const READ_ONLY: u16 = 1 << 1;
    /// Transmission flag of an export: the server supports [`command::FLUSH`](super::command::FLUSH).
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// Transmission flag of an export: the server supports requests with
    /// [`command_flag::FUA`](super::command_flag::FUA) (force unit access).
    pub const SEND_FUA: u16 = 1 << 3;
    /// Transmission flag of an export: the export behaves like a rotating disk, so the client should schedule requests
    /// accordingly.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// Transmission flag of an export: the server supports [`command::TRIM`](super::command::TRIM).
    pub const SEND_TRIM: u16 = 1 << 5;
    /// Transmission flag of an export: the server supports [`command::WRITE_ZEROES`](super::command::WRITE_ZEROES).
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Transmission flag of an export: the server supports the request flag DF (do not fragment), which asks for the
    /// data of a read in a single chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// Transmission flag of an export: several connections may use the export together; a flush on one covers the
    /// completed writes of all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// Transmission flag of an export: the server supports requests with
    /// [`command_flag::FAST_ZERO`](super::command_flag::FAST_ZERO).
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Types of requests, as sent in the header of a request.
pub mod command {
    /// Type of a request: read a range of bytes.
    pub const READ: u16 = 0;
    /// Type of a request: write a range of bytes; the data follows the header.
    pub const WRITE: u16 = 1;
    /// Type of a request: end the connection; the server sends no reply.
    pub const DISCONNECT: u16 = 2;
    /// Type of a request: make all completed writes durable.
    pub const FLUSH: u16 = 3;
    /// Type of a request: discard a range of bytes that the client no longer needs.
    pub const TRIM: u16 = 4;
    /// Type of a request: write zeroes to a range of bytes; no data is sent.
    pub const WRITE_ZEROES: u16 = 6;
    /// Type of a request: query which parts of a range of bytes are allocated, and which read as zeroes.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests (bit masks), as sent in the header of a request.
pub mod command_flag {
    /// Flag of a request, force unit access: the data of the request is durable before the reply.
    pub const FUA: u16 = 1 << 0;
    /// Flag of a [`command::WRITE_ZEROES`](super::command::WRITE_ZEROES) request: the zeroes must stay allocated and
    /// not become a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Flag of a [`command::BLOCK_STATUS`](super::command::BLOCK_STATUS) request: the reply must contain only one
    /// extent for each metadata context.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Flag of a [`command::WRITE_ZEROES`](super::command::WRITE_ZEROES) request: fail at once if the zeroes cannot be
    /// written faster than by an ordinary write.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Flag and types of the chunks of a structured reply.
pub mod chunk {
    /// Flag (bit mask) of the last chunk of a structured reply.
    pub const DONE: u16 = 1;
    /// Type of a chunk of a structured reply: no contents.
    pub const NONE: u16 = 0;
    /// Type of a chunk of a structured reply: data that was read, after the offset of the data in the export.
    pub const OFFSET_DATA: u16 = 1;
    /// Type of a chunk of a structured reply: the extents of one metadata context, in reply to
    /// [`command::BLOCK_STATUS`](super::command::BLOCK_STATUS).
    pub const BLOCK_STATUS: u16 = 5;
    /// Type of a chunk of a structured reply: an error number and a message.
    pub const ERROR: u16 = 0x8001;
}

/// Error numbers in replies to requests; the values are those of Linux.
pub mod errno {
    /// Error number in a reply to a request: the operation is not permitted, for example a write to a read-only export.
    pub const EPERM: u32 = 1;
    /// Error number in a reply to a request: input/output error; the medium failed.
    pub const EIO: u32 = 5;
    /// Error number in a reply to a request: the server has not enough memory for the request.
    pub const ENOMEM: u32 = 12;
    /// Error number in a reply to a request: the request is invalid, for example of an unknown type, or a read past the
    /// end of the export.
    pub const EINVAL: u32 = 22;
    /// Error number in a reply to a request: a write reaches past the end of the export, or the server's disk is full.
    pub const ENOSPC: u32 = 28;
    /// Error number in a reply to a request: the reply would be larger than one chunk may be.
    pub const EOVERFLOW: u32 = 75;
    /// Error number in a reply to a request: the operation, or a flag of the request, is not supported.
    pub const ENOTSUP: u32 = 95;
    /// Error number in a reply to a request: the server is shutting down.
    pub const ESHUTDOWN: u32 = 108;
}

/// Size in bytes of the header of a reply to an option; the data of the reply follows.
pub const OPTION_REPLY_BYTES: usize = 20;
/// Size in bytes of the header of a simple reply; the data of a read follows.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Size in bytes of the header of a request; the data of a write follows.
pub const REQUEST_BYTES: usize = 28;
/// Largest number of bytes in one read or write request, 32 MiB; every client may rely on the support of this size.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Name of the only supported metadata context, which reports allocated ranges.
pub const ALLOCATION: &str = "base:allocation";
/// Number by which chunks of block status refer to the metadata context `base:allocation`, the only one. The server
/// assigns this number.
pub const ALLOCATION_ID: u32 = 1;
/// Status flags of an extent in the metadata context `base:allocation`: not allocated (bit 0), and reads as zeroes (bit
/// 1).
pub const HOLE_AND_ZERO: u32 = 0b11;

/// The header of a request from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Flags of the request: bits of the module [`command_flag`].
    pub flags: u16,
    /// Type of the request: a constant of the module [`mod@command`].
    pub command: u16,
    /// Number that the client chose for the request; the reply carries the same number.
    pub cookie: u64,
    /// Offset of the first byte of the request in the export, in bytes.
    pub offset: u64,
    /// Number of bytes in the export that the request concerns.
    pub length: u32,
}

impl Request {
    /// Parses the header of a request. Returns `None` if it does not begin with [`REQUEST_MAGIC`]; other fields are not
    /// checked.
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

    /// Appends the header in its wire format, [`REQUEST_BYTES`] bytes, to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&self.command.to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
    }
}

/// Appends the option `number` (a constant of the module [`mod@option`]) with its `data` to `out`, as a client sends it
/// in the handshake: magic number, option number, length of `data`, `data`.
pub fn put_option(out: &mut Vec<u8>, number: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}

/// Appends the server's reply to the option with number `option`, with its `data`, to `out`. `kind` is the type of the
/// reply, such as [`reply::ACK`] or an error.
pub fn put_option_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}

/// Appends the header of a simple reply to `out`. `cookie` is that of the request; `error` is 0 for success, or a
/// number of the module [`errno`].
pub fn simple_reply(out: &mut Vec<u8>, cookie: u64, error: u32) {
    out.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&error.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

/// Appends the header of a chunk of a structured reply to `out`. `kind` is the type and `flags` the flags of the chunk
/// (see the module [`chunk`]); `length` is the number of bytes of contents, which the caller appends.
pub fn chunk_header(out: &mut Vec<u8>, flags: u16, kind: u16, cookie: u64, length: u32) {
    out.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
}

/// Appends an error chunk to `out`, as the last chunk of the reply to the request with this `cookie`. `error` is a
/// number of the module [`errno`]; of the message `words`, the first 4096 bytes are sent.
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
