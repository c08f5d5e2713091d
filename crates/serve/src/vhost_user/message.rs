//! Messages of the vhost-user protocol, with file descriptors beside them.
//!
//! A message is a header of three numbers of 32 bits (request, flags, size of the payload) and a payload. The front end
//! (a hypervisor or a kernel in user mode) asks, and this process answers. Over a second socket, which the front end
//! passes, this process asks.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Requests of the front end.
pub mod request {
    #![expect(missing_docs, reason = "names of the protocol")]
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const RESET_OWNER: u32 = 4;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_VRING_BASE: u32 = 11;
    pub const SET_VRING_KICK: u32 = 12;
    pub const SET_VRING_CALL: u32 = 13;
    pub const SET_VRING_ERR: u32 = 14;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const GET_QUEUE_NUM: u32 = 17;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
    pub const SET_CONFIG: u32 = 25;
    pub const VRING_KICK: u32 = 35;
}

/// Requests of this process to the front end.
pub mod backend_request {
    /// The used ring of a queue has new entries.
    pub const VRING_CALL: u32 = 4;
}

/// Version of the protocol, in the flags of each message.
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
/// Flag of an answer.
const REPLY: u32 = 1 << 2;
/// Flag of a request whose sender waits for an answer, also where the request has no data to return.
const NEED_REPLY: u32 = 1 << 3;
const HEADER_BYTES: usize = 12;
/// Largest payload of a message: a configuration space, or a table of eight regions of memory.
pub const PAYLOAD_BYTES_MAX: usize = 4096;
/// Largest number of file descriptors of a message: one for each region of memory.
pub const FDS_MAX: usize = 8;

/// One message.
#[derive(Debug)]
pub struct Message {
    /// Kind of the message: a number of [`request`] or [`backend_request`].
    pub request: u32,
    flags: u32,
    /// Payload, whose layout the kind determines. Numbers are in the byte order of the machine.
    pub payload: Vec<u8>,
    /// File descriptors beside the message.
    pub fds: Vec<OwnedFd>,
}

impl Message {
    /// Returns a request of this process that asks for an answer.
    pub fn asking(request: u32, payload: Vec<u8>) -> Message {
        Message { request, flags: VERSION | NEED_REPLY, payload, fds: Vec::new() }
    }

    /// Returns the answer to this message, with `payload`.
    pub fn reply(&self, payload: Vec<u8>) -> Message {
        Message { request: self.request, flags: VERSION | REPLY, payload, fds: Vec::new() }
    }

    /// Returns whether the sender waits for an answer, although the message has none by nature.
    pub fn needs_reply(&self) -> bool {
        self.flags & NEED_REPLY != 0
    }

    /// Returns the payload as one number of 64 bits.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the payload has another size.
    pub fn number(&self) -> io::Result<u64> {
        let bytes = self.payload.as_slice().try_into().map_err(|_| self.wrong_size())?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Returns the payload as the state of a queue: its index and a number.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the payload has another size.
    pub fn state(&self) -> io::Result<(usize, u32)> {
        let number = self.number()?.to_ne_bytes();
        let [a, b, c, d, e, f, g, h] = number;
        Ok((u32::from_ne_bytes([a, b, c, d]) as usize, u32::from_ne_bytes([e, f, g, h])))
    }

    /// Returns number `index` of 64 bits in the payload, from byte `from` on.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the payload ends before.
    pub fn number_at(&self, from: usize, index: usize) -> io::Result<u64> {
        let start = from + 8 * index;
        let bytes = self.payload.get(start..start + 8).ok_or_else(|| self.wrong_size())?;
        Ok(u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// Returns the error for a payload of the wrong size.
    pub fn wrong_size(&self) -> io::Error {
        let (request, bytes) = (self.request, self.payload.len());
        invalid(format!("a vhost-user request {request} with a payload of {bytes} bytes"))
    }

    /// Sends the message.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub fn send(&self, socket: impl AsFd) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.payload.len());
        for number in [self.request, self.flags, self.payload.len() as u32] {
            bytes.extend_from_slice(&number.to_ne_bytes());
        }
        bytes.extend_from_slice(&self.payload);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let sent = rustix::io::retry_on_intr(|| rustix::io::write(&socket, rest))?;
            rest = &rest[sent..];
        }
        Ok(())
    }

    /// Receives the next message; returns `None` if the other side has ended the connection.
    ///
    /// # Errors
    ///
    /// The socket fails, or what it carries is no message of this protocol.
    pub fn receive(socket: &UnixStream) -> io::Result<Option<Message>> {
        let mut header = [0; HEADER_BYTES];
        let mut fds = Vec::new();
        let mut taken = 0;
        while taken < HEADER_BYTES {
            let read = receive_some(socket, &mut header[taken..], &mut fds)?;
            match (read, taken) {
                (0, 0) => return Ok(None),
                (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => taken += read,
            }
        }
        let word = |index: usize| {
            let bytes = header[4 * index..4 * index + 4].try_into().expect("four bytes");
            u32::from_ne_bytes(bytes)
        };
        let (request, flags, size) = (word(0), word(1), word(2) as usize);
        if flags & VERSION_MASK != VERSION {
            return Err(invalid(format!("no message of vhost-user version {VERSION}: flags {flags:#x}")));
        }
        if size > PAYLOAD_BYTES_MAX {
            let most = PAYLOAD_BYTES_MAX;
            return Err(invalid(format!("a vhost-user message of {size} bytes: at most {most} are accepted")));
        }
        let mut payload = vec![0; size];
        let mut reader = socket;
        reader.read_exact(&mut payload)?;
        Ok(Some(Message { request, flags, payload, fds }))
    }
}

/// Receives some bytes into `bytes`, and appends the file descriptors beside them to `fds`.
fn receive_some(socket: &UnixStream, bytes: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut *bytes)];
        recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(received.bytes)
}

/// Sends `bytes` over `socket`, with the file descriptors `fds` beside them.
///
/// # Errors
///
/// The socket fails, or takes only a part of the bytes.
pub fn send_with_fds(socket: &UnixStream, bytes: &[u8], fds: &[rustix::fd::BorrowedFd<'_>]) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)), "at most {FDS_MAX} descriptors go with a message");
    let sent =
        rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::empty()))?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Returns the error for what is not the protocol.
pub(crate) fn invalid(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    //! Goal: messages arrive as they were sent, and others are errors. Method: pairs of sockets.

    use std::io::Write;

    use super::*;

    fn bytes_of(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [request, flags, payload.len() as u32].iter().flat_map(|number| number.to_ne_bytes()).collect();
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn a_message_arrives_with_its_descriptors() {
        let (front, back) = UnixStream::pair().expect("sockets");
        let bytes = bytes_of(request::SET_MEM_TABLE, VERSION | NEED_REPLY, &7_u64.to_ne_bytes());
        send_with_fds(&front, &bytes, &[front.as_fd(), back.as_fd()]).expect("sent");
        let message = Message::receive(&back).expect("a message").expect("not the end");
        assert_eq!((message.request, message.fds.len()), (request::SET_MEM_TABLE, 2));
        assert!(message.needs_reply());
        assert_eq!((message.number().ok(), message.state().ok()), (Some(7), Some((7, 0))));
        message.reply(vec![1, 2]).send(&back).expect("sent");
        drop((message, back));
        let reply = Message::receive(&front).expect("a message").expect("not the end");
        assert_eq!((reply.request, reply.payload.as_slice()), (request::SET_MEM_TABLE, &[1, 2][..]));
        assert!(reply.flags & REPLY != 0 && !reply.needs_reply());
        assert!(Message::receive(&front).expect("the end").is_none());
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let broken = [
            bytes_of(1, 2, &[]),
            bytes_of(1, VERSION, &vec![0; PAYLOAD_BYTES_MAX + 1]),
            bytes_of(1, VERSION, &[0; 8])[..15].to_vec(),
            vec![1, 0, 0],
        ];
        for bytes in broken {
            let (mut front, back) = UnixStream::pair().expect("sockets");
            front.write_all(&bytes).expect("sent");
            drop(front);
            assert!(Message::receive(&back).is_err(), "{} bytes", bytes.len());
        }
    }
}
