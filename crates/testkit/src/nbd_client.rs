//! A client of the NBD protocol, written from its specification alone
//! (<https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>): fixed newstyle, simple or structured replies,
//! any number of requests on their way.
//!
//! Invariants:
//! 1. It checks what it is sent: magic numbers, cookies that it gave, lengths that it asked for.
//! 2. A server that is gone is an `io::Error`; one that breaks the protocol is a panic.
//! 3. It never waits for room to send without taking what is sent to it: a server may do the same, and neither would go on.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::patience::PATIENCE;

/// Command: read.
pub const READ: u16 = 0;
/// Command: write.
pub const WRITE: u16 = 1;
/// Command: end the connection; it has no reply.
pub const DISCONNECT: u16 = 2;
/// Command: make durable what was answered.
pub const FLUSH: u16 = 3;
/// Command: the bytes are no longer needed.
pub const TRIM: u16 = 4;
/// Command: zeros.
pub const WRITE_ZEROES: u16 = 6;
/// Command: what is allocated, and what is zeros.
pub const BLOCK_STATUS: u16 = 7;
/// Flag of a command: durable when answered.
pub const FUA: u16 = 1;
/// Option: go.
pub const GO: u32 = 7;
/// Option: structured replies.
pub const STRUCTURED_REPLY: u32 = 8;
/// Option: which contexts BLOCK_STATUS is to tell of.
pub const SET_META_CONTEXT: u32 = 10;

const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
const GREETING_BYTES: u64 = 18;
const OPTION_HEAD_BYTES: u64 = 20;
/// How long to wait where neither sending nor taking gets on.
const A_MOMENT: Duration = Duration::from_micros(50);
const ALLOCATION: &[u8] = b"base:allocation";

/// Kinds of answers to an option.
mod option_answer {
    pub const ACKNOWLEDGED: u32 = 1;
    pub const INFORMATION: u32 = 3;
    pub const CONTEXT: u32 = 4;
}

/// Kinds of chunks of a structured reply.
mod chunk {
    pub const NONE: u16 = 0;
    pub const DATA: u16 = 1;
    pub const HOLE: u16 = 2;
    pub const STATUS: u16 = 5;
    pub const ERROR: u16 = 1 << 15 | 1;
    pub const ERROR_AT: u16 = 1 << 15 | 2;
    /// Flag: the last of its reply.
    pub const DONE: u16 = 1;
}

/// A run of bytes of one status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its first byte.
    pub offset: u64,
    /// How many.
    pub length: u64,
    /// 1 hole, 2 reads as zeros; 0 neither.
    pub flags: u32,
}

/// An answered request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// As [`Client::submit`] gave it.
    pub cookie: u64,
    /// The protocol's error number; 0 is none.
    pub error: u32,
    /// What a read brought; nothing after an error.
    pub data: Vec<u8>,
    /// What BLOCK_STATUS brought.
    pub statuses: Vec<Status>,
}

/// What an answer needs to be understood.
#[derive(Clone, Copy, Debug)]
struct Asked {
    command: u16,
    offset: u64,
    length: u32,
}

/// A connection.
pub struct Client {
    /// The socket, for tests that send what no client would.
    pub stream: UnixStream,
    /// Bytes that the drive has.
    pub capacity_bytes: u64,
    /// Bytes of the server's that were taken so far, those of the handshake included.
    pub received_bytes: u64,
    /// Submitted and not answered, by cookie.
    asked: BTreeMap<u64, Asked>,
    next_cookie: u64,
    /// Taken from the socket while there was no room to send.
    inbox: VecDeque<u8>,
}

impl Client {
    /// Connects and goes, with simple replies.
    pub fn connect(socket: &Path) -> Client {
        Client::go(Client::greeted(socket), GREETING_BYTES)
    }

    /// Connects and goes, with structured replies and `base:allocation` for BLOCK_STATUS.
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

    /// Connects, and answers the greeting.
    pub fn greeted(socket: &Path) -> UnixStream {
        let mut stream = UnixStream::connect(socket).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut greeting = [0; GREETING_BYTES as usize];
        stream.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        stream.write_all(&3u32.to_be_bytes()).expect("the server takes the client's flags");
        stream
    }

    /// Sends a request, and gives the cookie by which [`Client::next_answer`] will name its answer.
    pub fn submit(&mut self, command: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> io::Result<u64> {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        self.asked.insert(cookie, Asked { command, offset, length });
        self.send(command, flags, cookie, offset, length, payload)?;
        Ok(cookie)
    }

    /// Requests submitted and not answered.
    pub fn in_flight(&self) -> usize {
        self.asked.len()
    }

    /// The next answer to what was submitted, in whatever order the server gives them.
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

    /// All chunks of a reply, the magic of the first having been read. Chunks of several replies may not be mixed here:
    /// whoever wants structured replies keeps one request on its way.
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

    /// Sends a request with a cookie of the caller's; an error means that the server is gone.
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

    /// Sends bytes through the socket, which does not block, taking what comes meanwhile (invariant 3).
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

    /// The next bytes that the server sent.
    fn take(&mut self, into: &mut [u8]) -> io::Result<()> {
        let held = self.inbox.len().min(into.len());
        self.inbox.read_exact(&mut into[..held])?;
        self.stream.read_exact(&mut into[held..])?;
        self.received_bytes += into.len() as u64;
        Ok(())
    }

    /// Cookie and error of the next simple reply to what was sent; the payload of a read is left to be read.
    pub fn reply(&mut self) -> io::Result<(u64, u32)> {
        let mut bytes = [0; 16];
        self.take(&mut bytes)?;
        assert_eq!(big_u32(&bytes[..4]), SIMPLE_REPLY_MAGIC, "the magic of a simple reply");
        Ok((big_u64(&bytes[8..]), big_u32(&bytes[4..8])))
    }

    /// One request, with none on its way, and its answer.
    pub fn call(&mut self, command: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> io::Result<Answer> {
        let cookie = self.submit(command, flags, offset, length, payload)?;
        let answer = self.next_answer()?;
        assert_eq!(answer.cookie, cookie, "no other request was on its way");
        Ok(answer)
    }

    /// One request and its error, of a server that must be there. A read's bytes are left to be read.
    pub fn ask(&mut self, command: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> u32 {
        self.send(command, flags, 77, offset, length, payload).expect("the server takes requests");
        let (cookie, error) = self.reply().expect("the server answers");
        assert_eq!(cookie, 77);
        error
    }

    /// Reads.
    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        let answer = self.call(READ, 0, offset, length, &[]).expect("the server answers");
        if answer.error == 0 { Ok(answer.data) } else { Err(answer.error) }
    }

    /// Writes.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> u32 {
        self.ask(WRITE, 0, offset, bytes.len() as u32, bytes)
    }

    /// What is allocated of a run of bytes; the connection is a structured one.
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

/// The bytes of a request.
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

/// Sends an option.
pub fn send_option(stream: &mut impl Write, number: u32, data: &[u8]) {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    stream.write_all(&bytes).expect("the server takes options");
}

/// Kind and data of the next answer to an option; nothing when the server has closed.
pub fn option_reply(stream: &mut impl Read) -> Option<(u32, Vec<u8>)> {
    let mut head = [0; OPTION_HEAD_BYTES as usize];
    stream.read_exact(&mut head).ok()?;
    assert_eq!(head[..8], OPTION_REPLY_MAGIC.to_be_bytes());
    let mut data = vec![0; big_u32(&head[16..]) as usize];
    stream.read_exact(&mut data).ok()?;
    Some((big_u32(&head[12..16]), data))
}

/// Whether the server has closed the connection, as seen by reading from it.
pub fn is_closed(stream: &mut impl Read) -> bool {
    matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_))
}
