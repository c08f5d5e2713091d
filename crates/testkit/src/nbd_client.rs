//! A client of the NBD protocol, written only from its specification
//! (<https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>): fixed newstyle, simple or structured
//! replies, any number of requests in flight.
//!
//! Invariants:
//! 1. The client checks all it receives: magic numbers, cookies that it gave, lengths that it requested.
//! 2. A closed connection is an `io::Error`; a server that violates the protocol is a panic.
//! 3. The client never waits for room to send without also receiving: if the server did that too, there would be a
//!    deadlock.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::patience::PATIENCE;

/// NBD command (`NBD_CMD_READ`): read.
pub const READ: u16 = 0;
/// NBD command (`NBD_CMD_WRITE`): write.
pub const WRITE: u16 = 1;
/// NBD command (`NBD_CMD_DISC`): end the connection; it has no reply.
pub const DISCONNECT: u16 = 2;
/// NBD command (`NBD_CMD_FLUSH`): make all acknowledged writes durable.
pub const FLUSH: u16 = 3;
/// NBD command (`NBD_CMD_TRIM`): discard the bytes.
pub const TRIM: u16 = 4;
/// NBD command (`NBD_CMD_WRITE_ZEROES`): write zeros.
pub const WRITE_ZEROES: u16 = 6;
/// NBD command (`NBD_CMD_BLOCK_STATUS`): report allocated runs and runs of zeros.
pub const BLOCK_STATUS: u16 = 7;
/// NBD command flag (`NBD_CMD_FLAG_FUA`): the write is durable when it is acknowledged.
pub const FUA: u16 = 1;
/// NBD option (`NBD_OPT_GO`): select the export, end the handshake and begin to send requests.
pub const GO: u32 = 7;
/// NBD option (`NBD_OPT_STRUCTURED_REPLY`): use structured replies.
pub const STRUCTURED_REPLY: u32 = 8;
/// NBD option (`NBD_OPT_SET_META_CONTEXT`): select the metadata contexts that BLOCK_STATUS reports.
pub const SET_META_CONTEXT: u32 = 10;

const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
const GREETING_BYTES: u64 = 18;
const OPTION_HEAD_BYTES: u64 = 20;
/// Time to wait when neither sending nor receiving makes progress.
const A_MOMENT: Duration = Duration::from_micros(50);
const ALLOCATION: &[u8] = b"base:allocation";

/// Kinds of answers to an option.
mod option_answer {
    pub(super) const ACKNOWLEDGED: u32 = 1;
    pub(super) const INFORMATION: u32 = 3;
    pub(super) const CONTEXT: u32 = 4;
}

/// Kinds of chunks of a structured reply.
mod chunk {
    pub(super) const NONE: u16 = 0;
    pub(super) const DATA: u16 = 1;
    pub(super) const HOLE: u16 = 2;
    pub(super) const STATUS: u16 = 5;
    pub(super) const ERROR: u16 = 1 << 15 | 1;
    pub(super) const ERROR_AT: u16 = 1 << 15 | 2;
    /// Flag: the last chunk of its reply.
    pub(super) const DONE: u16 = 1;
}

/// A run of bytes with equal status, from an answer to BLOCK_STATUS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Offset of the run's first byte in the export, in bytes.
    pub offset: u64,
    /// Length of the run in bytes.
    pub length: u64,
    /// Sum of the flags of `base:allocation`: 1 for a hole (not allocated), 2 for bytes that read as zeros.
    pub flags: u32,
}

/// The server's answer to one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Cookie of the request, from [`Client::submit`].
    pub cookie: u64,
    /// Error number of the NBD protocol; 0 for success.
    pub error: u32,
    /// Bytes that a read returned; empty for other commands and after an error.
    pub data: Vec<u8>,
    /// Runs that BLOCK_STATUS returned, in order; empty for other commands.
    pub statuses: Vec<Status>,
}

/// Facts about a request that are needed to parse its answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    command: u16,
    offset: u64,
    length: u32,
}

/// A connection to an NBD server.
pub struct Client {
    /// The socket of the connection, for tests that send invalid requests.
    pub stream: UnixStream,
    /// Size of the export in bytes.
    pub capacity_bytes: u64,
    /// Number of bytes of the server's data that were processed so far, including the handshake. Received bytes that
    /// wait in the client's buffer are not counted.
    pub received_bytes: u64,
    /// Requests in flight, by cookie.
    asked: BTreeMap<u64, Asked>,
    next_cookie: u64,
    /// Bytes received while there was no room to send.
    inbox: VecDeque<u8>,
}

impl Client {
    /// Connects to the Unix socket `socket` with simple replies, and completes the handshake.
    ///
    /// # Panics
    ///
    /// Panics if the connection or the handshake fails.
    pub fn connect(socket: &Path) -> Client {
        Client::go(Client::greeted(socket), GREETING_BYTES)
    }

    /// Connects to the Unix socket `socket` with structured replies and the metadata context `base:allocation`, and
    /// completes the handshake.
    ///
    /// # Panics
    ///
    /// Panics if the connection or the handshake fails, or the server lacks either feature.
    pub fn connect_structured(socket: &Path) -> Client {
        let mut stream = Client::greeted(socket);
        send_option(&mut stream, STRUCTURED_REPLY, &[]);
        let (kind, data) = option_reply(&mut stream).expect("an answer to STRUCTURED_REPLY");
        let mut received = GREETING_BYTES + OPTION_HEAD_BYTES + data.len() as u64;
        assert_eq!(kind, option_answer::ACKNOWLEDGED, "structured replies");
        let mut query = vec![0; 4]; // the name of the export, which is empty
        query.extend_from_slice(&1u32.to_be_bytes());
        query.extend_from_slice(&(ALLOCATION.len() as u32).to_be_bytes());
        query.extend_from_slice(ALLOCATION);
        send_option(&mut stream, SET_META_CONTEXT, &query);
        let mut contexts = 0;
        loop {
            let (kind, data) = option_reply(&mut stream).expect("an answer to SET_META_CONTEXT");
            received += OPTION_HEAD_BYTES + data.len() as u64;
            match kind {
                option_answer::CONTEXT => contexts += 1,
                kind => {
                    assert_eq!((kind, contexts), (option_answer::ACKNOWLEDGED, 1), "base:allocation");
                    return Client::go(stream, received);
                }
            }
        }
    }

    fn go(mut stream: UnixStream, mut received_bytes: u64) -> Client {
        send_option(&mut stream, GO, &[0; 6]);
        let mut capacity_bytes = 0;
        loop {
            let (kind, data) = option_reply(&mut stream).expect("an answer to GO");
            received_bytes += OPTION_HEAD_BYTES + data.len() as u64;
            match kind {
                option_answer::ACKNOWLEDGED => {
                    return Client {
                        stream,
                        capacity_bytes,
                        received_bytes,
                        asked: BTreeMap::new(),
                        next_cookie: 1 << 32,
                        inbox: VecDeque::new(),
                    };
                }
                option_answer::INFORMATION if data[..2] == [0, 0] => capacity_bytes = big_u64(&data[2..10]),
                option_answer::INFORMATION => {}
                other => panic!("GO was answered with {other:#x}"),
            }
        }
    }

    /// Connects to the Unix socket `socket`, receives the greeting and sends the client flags. Returns the connection;
    /// options of the handshake may follow on it.
    ///
    /// # Panics
    ///
    /// Panics if the connection fails or the greeting is wrong.
    pub fn greeted(socket: &Path) -> UnixStream {
        let mut stream = UnixStream::connect(socket).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut greeting = [0; GREETING_BYTES as usize];
        stream.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        stream.write_all(&3u32.to_be_bytes()).expect("the server takes the client's flags");
        stream
    }

    /// Sends a request, without waiting for its answer. `offset` and `length` are in bytes; `payload` is the data of a
    /// write, and empty for other commands. Returns the cookie that the answer from [`Client::next_answer`] will have.
    ///
    /// # Errors
    ///
    /// An I/O error if the connection is closed.
    pub fn submit(&mut self, command: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> io::Result<u64> {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        self.asked.insert(cookie, Asked { command, offset, length });
        self.send(command, flags, cookie, offset, length, payload)?;
        Ok(cookie)
    }

    /// Returns the number of requests of [`Client::submit`] that are not answered yet.
    pub fn in_flight(&self) -> usize {
        self.asked.len()
    }

    /// Waits for the next answer to a request of [`Client::submit`], in the order in which the server sends them. With
    /// structured replies, only one request may be in flight.
    ///
    /// # Errors
    ///
    /// An I/O error if the connection is closed, or no answer comes within five minutes ([`PATIENCE`]).
    ///
    /// # Panics
    ///
    /// Panics if the server violates the protocol.
    pub fn next_answer(&mut self) -> io::Result<Answer> {
        let mut magic = [0; 4];
        self.take(&mut magic)?;
        match u32::from_be_bytes(magic) {
            SIMPLE_REPLY_MAGIC => self.simple_answer(),
            STRUCTURED_REPLY_MAGIC => self.structured_answer(),
            other => panic!("a reply begins with {other:#x}"),
        }
    }

    fn simple_answer(&mut self) -> io::Result<Answer> {
        let mut bytes = [0; 12];
        self.take(&mut bytes)?;
        let (error, cookie) = (big_u32(&bytes[..4]), big_u64(&bytes[4..]));
        let asked = self.asked.remove(&cookie).expect("an answer has the cookie of a request");
        let mut data = Vec::new();
        if asked.command == READ && error == 0 {
            data.resize(asked.length as usize, 0);
            self.take(&mut data)?;
        }
        Ok(Answer { cookie, error, data, statuses: Vec::new() })
    }

    /// Receives all chunks of a reply; the magic number of the first was read already. Chunks of several replies must
    /// not be mixed, so a caller that uses structured replies keeps only one request in flight.
    fn structured_answer(&mut self) -> io::Result<Answer> {
        let mut answer: Option<(Answer, Asked)> = None;
        loop {
            let mut head = [0; 16];
            self.take(&mut head)?;
            let (flags, kind) = (u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]]));
            let cookie = big_u64(&head[4..12]);
            let mut payload = vec![0; big_u32(&head[12..]) as usize];
            self.take(&mut payload)?;
            let (answer_so_far, asked) = answer.get_or_insert_with(|| {
                let asked = *self.asked.get(&cookie).expect("an answer has the cookie of a request");
                let data = vec![0; if asked.command == READ { asked.length as usize } else { 0 }];
                (Answer { cookie, error: 0, data, statuses: Vec::new() }, asked)
            });
            assert_eq!(answer_so_far.cookie, cookie, "one structured reply at a time");
            take_chunk(answer_so_far, asked, kind, &payload);
            if flags & chunk::DONE != 0 {
                let (mut whole, _) = answer.expect("it was just put there");
                self.asked.remove(&cookie);
                if whole.error != 0 {
                    whole.data.clear();
                }
                return Ok(whole);
            }
            let mut magic = [0; 4];
            self.take(&mut magic)?;
            assert_eq!(u32::from_be_bytes(magic), STRUCTURED_REPLY_MAGIC, "the next chunk");
        }
    }

    /// Sends a request with the caller's cookie. `offset` and `length` are in bytes; `payload` is the data of a write.
    /// The answer must be received by [`Client::reply`], not by [`Client::next_answer`].
    ///
    /// # Errors
    ///
    /// An I/O error if the connection is closed.
    pub fn send(
        &mut self,
        command: u16,
        flags: u16,
        cookie: u64,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> io::Result<()> {
        let mut message = request(command, flags, cookie, offset, length).to_vec();
        message.extend_from_slice(payload);
        self.stream.set_nonblocking(true)?;
        let outcome = self.push(&message);
        self.stream.set_nonblocking(false)?;
        outcome
    }

    /// Sends bytes through the non-blocking socket, and receives incoming bytes meanwhile (invariant 3).
    fn push(&mut self, mut message: &[u8]) -> io::Result<()> {
        let mut taken = [0; 1 << 16];
        while !message.is_empty() {
            match self.stream.write(message) {
                Ok(length) => message = &message[length..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.stream.read(&mut taken) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(length) => self.inbox.extend(&taken[..length]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(A_MOMENT),
                    Err(error) => return Err(error),
                },
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fills `into` with the next bytes that the server sent.
    fn take(&mut self, into: &mut [u8]) -> io::Result<()> {
        let held = self.inbox.len().min(into.len());
        self.inbox.read_exact(&mut into[..held])?;
        self.stream.read_exact(&mut into[held..])?;
        self.received_bytes += into.len() as u64;
        Ok(())
    }

    /// Receives the header of the next simple reply to a request of [`Client::send`], and returns its cookie and its
    /// error number (0 for success). The data of a read remain to be received.
    ///
    /// # Errors
    ///
    /// An I/O error if the connection is closed.
    ///
    /// # Panics
    ///
    /// Panics if the reply is not a simple one.
    pub fn reply(&mut self) -> io::Result<(u64, u32)> {
        let mut bytes = [0; 16];
        self.take(&mut bytes)?;
        assert_eq!(big_u32(&bytes[..4]), SIMPLE_REPLY_MAGIC, "the magic of a simple reply");
        Ok((big_u64(&bytes[8..]), big_u32(&bytes[4..8])))
    }

    /// Sends one request and waits for its answer. `offset` and `length` are in bytes; `payload` is the data of a
    /// write. An error number of the protocol is part of the answer.
    ///
    /// # Errors
    ///
    /// An I/O error if the connection is closed.
    ///
    /// # Panics
    ///
    /// Panics if another request is in flight, or the server violates the protocol.
    pub fn call(&mut self, command: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> io::Result<Answer> {
        let cookie = self.submit(command, flags, offset, length, payload)?;
        let answer = self.next_answer()?;
        assert_eq!(answer.cookie, cookie, "no other request was on its way");
        Ok(answer)
    }

    /// Sends one request, waits for its simple reply, and returns its error number (0 for success). `offset` and
    /// `length` are in bytes; `payload` is the data of a write. The data of a read remain to be received.
    ///
    /// # Panics
    ///
    /// Panics if the connection is closed, or another request is in flight.
    pub fn ask(&mut self, command: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> u32 {
        self.send(command, flags, 77, offset, length, payload).expect("the server takes requests");
        let (cookie, error) = self.reply().expect("the server answers");
        assert_eq!(cookie, 77);
        error
    }

    /// Reads `length` bytes from byte `offset` on, and waits for the answer.
    ///
    /// # Errors
    ///
    /// The error number of the NBD protocol.
    ///
    /// # Panics
    ///
    /// Panics if the connection is closed, another request is in flight, or the server violates the protocol.
    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        let answer = self.call(READ, 0, offset, length, &[]).expect("the server answers");
        if answer.error == 0 { Ok(answer.data) } else { Err(answer.error) }
    }

    /// Writes `bytes` at byte `offset`, without FUA, and waits for the answer. Returns the error number of the NBD
    /// protocol, 0 for success.
    ///
    /// # Panics
    ///
    /// Panics if the connection is closed, the reply is a structured one, or another request is in flight.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> u32 {
        self.ask(WRITE, 0, offset, bytes.len() as u32, bytes)
    }

    /// Returns the allocation status of the `length` bytes from byte `offset` on, by BLOCK_STATUS, as runs in order.
    /// The runs may cover less than `length`. The connection must use structured replies.
    ///
    /// # Errors
    ///
    /// The error number of the NBD protocol.
    ///
    /// # Panics
    ///
    /// Panics if the connection is closed.
    pub fn statuses(&mut self, offset: u64, length: u32) -> Result<Vec<Status>, u32> {
        let answer = self.call(BLOCK_STATUS, 0, offset, length, &[]).expect("the server answers");
        if answer.error == 0 { Ok(answer.statuses) } else { Err(answer.error) }
    }
}

fn take_chunk(answer: &mut Answer, asked: &Asked, kind: u16, payload: &[u8]) {
    let place = |offset: u64, length: usize| {
        let start = (offset - asked.offset) as usize;
        start..start + length
    };
    match kind {
        chunk::NONE => {}
        chunk::DATA => {
            answer.data[place(big_u64(&payload[..8]), payload.len() - 8)].copy_from_slice(&payload[8..]);
        }
        chunk::HOLE => answer.data[place(big_u64(&payload[..8]), big_u32(&payload[8..12]) as usize)].fill(0),
        chunk::STATUS => {
            let mut offset = asked.offset;
            for entry in payload[4..].chunks_exact(8) {
                let length = u64::from(big_u32(&entry[..4]));
                answer.statuses.push(Status { offset, length, flags: big_u32(&entry[4..]) });
                offset += length;
            }
        }
        chunk::ERROR | chunk::ERROR_AT => answer.error = big_u32(&payload[..4]),
        other => panic!("a chunk of kind {other:#x}"),
    }
}

fn big_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

fn big_u64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

/// Returns the 28 bytes of the header of an NBD request. `offset` and `length` are in bytes.
pub fn request(command: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&command.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Sends the option number `number` with `data` in the handshake. Panics if the connection is closed.
pub fn send_option(stream: &mut impl Write, number: u32, data: &[u8]) {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    stream.write_all(&bytes).expect("the server takes options");
}

/// Receives the next reply to an option of the handshake. Returns its type number and its data, or `None` if the server
/// has closed the connection before the end of the reply, or a read failed or timed out.
///
/// # Panics
///
/// Panics if the reply has a wrong magic number.
pub fn option_reply(stream: &mut impl Read) -> Option<(u32, Vec<u8>)> {
    let mut head = [0; OPTION_HEAD_BYTES as usize];
    stream.read_exact(&mut head).ok()?;
    assert_eq!(head[..8], OPTION_REPLY_MAGIC.to_be_bytes());
    let mut data = vec![0; big_u32(&head[16..]) as usize];
    stream.read_exact(&mut data).ok()?;
    Some((big_u32(&head[12..16]), data))
}

/// Waits until the connection gives data, an end of file or an error, and returns whether it is not data. Up to 64
/// bytes of data are lost. A read timeout of the stream counts as an error.
pub fn is_closed(stream: &mut impl Read) -> bool {
    matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_))
}
