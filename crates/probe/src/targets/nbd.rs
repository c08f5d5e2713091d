//! A block device behind an NBD server, in real time: fixed newstyle, simple replies, as many requests in flight as the
//! test submits. Writes are durable when they are answered (FUA) if the server supports that, as if the drive's
//! volatile cache were off.
//!
//! Invariants:
//! 1. A thread of its own receives the replies, so that client and server never both wait for the other to read.
//! 2. A server can make the client hold no more than the bytes of one operation, whatever it sends.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use imbrex_nbd::{Request, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC, command, command_flag};

use super::filler::Filler;
use super::nbd_handshake::{self, Export};
use super::nbd_url::{NbdUrl, Place};
use super::real_time::{Answer, Channel, RealTime, sleep};
use crate::target::{About, Direction, Done, Next, OPERATION_BYTES_MAX, Operation, Target, TargetError};
use imbrex_safety::Peek;

/// Layout of a request's cookie: the slot (32 bits), the length of the reply's data in bytes (31 bits), and whether the
/// data is kept (1 bit).
const LENGTH_SHIFT: u32 = 32;
const WANTED: u64 = 1 << 63;
/// Time limits for the handshake and for an answer. The latter is long, because a drive that cleans may stall for
/// minutes.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
const ANSWER_TIME: Duration = Duration::from_secs(600);

/// A connection by TCP or by a Unix socket.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Connects to the first address of `host` that answers, each within `time`. A host that answers nothing at all would
/// hold the caller for minutes otherwise.
fn connect_within(time: Duration, host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, time) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

impl Stream {
    fn connect(place: &Place) -> io::Result<Stream> {
        match place {
            Place::Tcp(host, port) => {
                let stream = connect_within(HANDSHAKE_TIME, host, *port)?;
                // A request must not wait for the next one to fill its packet.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Place::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
        }
    }

    fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(time),
            Stream::Unix(stream) => stream.set_read_timeout(time),
        }
    }

    fn shut_down(&self) {
        // Shutting down a closed connection fails, without harm.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(from),
            Stream::Unix(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.flush(),
            Stream::Unix(stream) => stream.flush(),
        }
    }
}

/// A reply, as received.
struct Reply {
    cookie: u64,
    at: Instant,
    error: u32,
    /// Data of a read, if the request's cookie asks to keep the data.
    data: Vec<u8>,
}

/// The connection to the server.
struct Connection {
    stream: Stream,
    replies: Receiver<io::Result<Reply>>,
    reader: Option<JoinHandle<()>>,
    filler: Filler,
    write_flags: u16,
    message: Vec<u8>,
}

/// The export of an NBD server as a target in real time. Writes are durable when they are answered, if the server
/// supports FUA.
pub struct Nbd {
    connection: Connection,
    about: About,
    export: Export,
    time: RealTime,
}

impl Nbd {
    /// Checks that `url` has the form of an NBD address, without connecting.
    ///
    /// # Errors
    ///
    /// A message that describes the expected form, `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
    pub fn check_url(url: &str) -> Result<(), String> {
        NbdUrl::parse(url).map(drop)
    }

    /// Connects to the NBD export at `url`, and performs the handshake.
    ///
    /// # Errors
    ///
    /// The address is malformed, the server cannot be reached, does not answer the handshake within 10 s, or refuses
    /// the export.
    pub fn connect(url: &str) -> Result<Nbd, TargetError> {
        let failed = |reason: String| TargetError::failed(url, reason);
        let parsed = NbdUrl::parse(url).map_err(failed)?;
        let mut stream = Stream::connect(&parsed.place)
            .map_err(|error| failed(format!("cannot connect: {error}; is the server running?")))?;
        let export = shake_hands(&mut stream, &parsed.export).map_err(failed)?;
        let connection = Connection::start(stream, &export).map_err(|error| failed(error.to_string()))?;
        let (size_bytes, sector_bytes) = (export.size_bytes, export.block_bytes);
        let about = About { name: url.into(), size_bytes, sector_bytes, is_virtual: false };
        Ok(Nbd { connection, about, export, time: RealTime::new() })
    }

    /// Returns whether the server offers the export read-only.
    pub fn is_read_only(&self) -> bool {
        self.export.is_read_only
    }
}

fn shake_hands(stream: &mut Stream, export: &str) -> Result<Export, String> {
    let told = |error: io::Error| match error.kind() {
        kind if is_hung_up(kind) => "the server closed the connection while shaking hands".to_string(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "the server does not answer".to_string(),
        _ => format!("while shaking hands: {error}"),
    };
    stream.set_read_timeout(Some(HANDSHAKE_TIME)).map_err(told)?;
    let export = nbd_handshake::run(stream, export).map_err(told)?;
    stream.set_read_timeout(None).map_err(told)?;
    Ok(export)
}

impl Connection {
    fn start(stream: Stream, export: &Export) -> io::Result<Connection> {
        let reading = stream.try_clone()?;
        let (sender, replies) = std::sync::mpsc::channel();
        let reader =
            std::thread::Builder::new().name("nbd replies".into()).spawn(move || take_all(reading, &sender))?;
        let write_flags = if export.has_fua { command_flag::FUA } else { 0 };
        let (filler, message) = (Filler::default(), Vec::new());
        Ok(Connection { stream, replies, reader: Some(reader), filler, write_flags, message })
    }

    fn send(&mut self, command: u16, cookie: u64, offset: u64, length: u32) -> io::Result<()> {
        self.message.clear();
        let flags = if command == command::WRITE { self.write_flags } else { 0 };
        Request { flags, command, cookie, offset, length }.put(&mut self.message);
        if command == command::WRITE {
            self.message.extend_from_slice(self.filler.bytes(length as usize));
        }
        self.stream.write_all(&self.message).map_err(or_closed)
    }

    fn receive(&mut self) -> io::Result<Reply> {
        match self.replies.recv_timeout(ANSWER_TIME) {
            Ok(reply) => reply,
            Err(RecvTimeoutError::Timeout) => {
                Err(io::Error::other(format!("no answer for {} s", ANSWER_TIME.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(closed()),
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

/// Returns whether the error means that the connection is closed. The kernel's choice among these kinds depends on the
/// data in flight at that moment.
fn is_hung_up(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(kind, UnexpectedEof | BrokenPipe | ConnectionReset | ConnectionAborted)
}

/// Replaces `error` by [`closed`] if it means that the connection is closed, so that all these cases give one message.
fn or_closed(error: io::Error) -> io::Error {
    if is_hung_up(error.kind()) { closed() } else { error }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The disconnect request fails if the server is gone, without harm.
        let _ = self.send(command::DISCONNECT, 0, 0, 0);
        self.stream.shut_down();
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the thread that takes replies does not panic");
        }
    }
}

/// Receives replies until the connection ends; the last message in `replies` is the reason.
fn take_all(stream: Stream, replies: &Sender<io::Result<Reply>>) {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let mut scratch = vec![0; 1 << 16];
    loop {
        let reply = take(&mut stream, &mut scratch);
        let ends = reply.is_err();
        // There is no receiver any more while the connection is being dropped.
        if replies.send(reply).is_err() || ends {
            return;
        }
    }
}

fn take(stream: &mut impl Read, scratch: &mut [u8]) -> io::Result<Reply> {
    let mut head = [0; SIMPLE_REPLY_BYTES];
    stream.read_exact(&mut head).map_err(or_closed)?;
    let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    if word(0) != SIMPLE_REPLY_MAGIC {
        return Err(io::Error::other(format!("the server sends {:#010x} where a reply should begin", word(0))));
    }
    let (error, cookie) = (word(4), u64::from(word(8)) << 32 | u64::from(word(12)));
    let length = ((cookie & !WANTED) >> LENGTH_SHIFT) as usize;
    let mut data = Vec::new();
    if error == 0 && length > 0 {
        if length as u64 > OPERATION_BYTES_MAX {
            return Err(io::Error::other("the reply of the server does not fit the request"));
        }
        if cookie & WANTED != 0 {
            data.resize(length, 0);
            stream.read_exact(&mut data).map_err(or_closed)?;
        } else {
            let mut left = length;
            while left > 0 {
                let part = left.min(scratch.len());
                stream.read_exact(&mut scratch[..part]).map_err(or_closed)?;
                left -= part;
            }
        }
    }
    Ok(Reply { cookie, at: Instant::now(), error, data })
}

/// Converts a reply's error number, which is one of Linux, to a result.
fn outcome(error: u32) -> io::Result<()> {
    match error {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number as i32)),
    }
}

impl Channel for Connection {
    fn submit(&mut self, slot: usize, operation: &Operation) -> io::Result<()> {
        let (command, answered_bytes) = match operation.direction {
            Direction::Read => (command::READ, operation.bytes),
            Direction::Write => (command::WRITE, 0),
        };
        self.send(command, answered_bytes << LENGTH_SHIFT | slot as u64, operation.offset, operation.bytes as u32)
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let reply = self.receive()?;
        let slot = (reply.cookie & u64::from(u32::MAX)) as usize;
        Ok(Answer { slot, at: reply.at, outcome: outcome(reply.error) })
    }
}

impl Peek for Nbd {
    fn len(&self) -> u64 {
        self.export.size_bytes
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let cookie = WANTED | (into.len() as u64) << LENGTH_SHIFT;
        self.connection.send(command::READ, cookie, offset, into.len() as u32)?;
        let reply = self.connection.receive()?;
        outcome(reply.error)?;
        if reply.data.len() != into.len() {
            return Err(io::Error::other("the reply of the server does not fit the request"));
        }
        into.copy_from_slice(&reply.data);
        Ok(())
    }
}

impl Target for Nbd {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.time.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        self.time.perform(&mut self.connection, &self.about.name, depth, next, done)
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        sleep(ns);
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let fua = if self.export.has_fua {
            "each write durable when it is answered (FUA)"
        } else {
            "the server knows no FUA: a volatile cache may answer for the drive"
        };
        let mut facts = vec![("volatile cache", fua.to_string()), ("look-ahead", "as the server has it".into())];
        if let Some(description) = &self.export.description {
            facts.insert(0, ("model", description.clone()));
        }
        facts
    }
}
