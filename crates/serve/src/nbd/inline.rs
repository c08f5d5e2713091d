//! Requests and replies of one connection to a drive that answers at once: one thread reads, serves and answers.
//!
//! Answers are collected, and sent when no further request has arrived, or when half of the waiting requests are
//! answered: then the client processes these answers meanwhile. Sending each answer separately would cost a system call
//! each. Sending all of them together would make client and drive work in turns.

use std::io::{self, Read, Write};
use std::sync::Arc;

use imbrex_device::Io;

use super::handshake::Session;
use super::incoming::Incoming;
use super::protocol::*;
use super::requests::{
    NbdRequest, Steps, holds_request, in_steps, io_of, next_request, refuse, reply, status, steps_of, write_both,
};
use crate::drive_server::DriveServer;
use crate::payload::Account;

/// Number of bytes of collected replies at which they are sent, even if more requests wait.
const SEND_AT_BYTES: usize = 256 << 10;
/// Maximum capacity of a buffer that is kept for the connection's next request. A larger one is kept for all connections.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// Serves one connection until it ends.
pub(super) fn run(
    front: &DriveServer,
    account: &Arc<Account>,
    session: Session,
    reader: impl Read,
    writer: impl Write,
) -> io::Result<()> {
    Inline { front, account, session, writer, out: Vec::new(), half: None, spare: Vec::new() }.run(reader)
}

/// A connection to an unpaced drive.
struct Inline<'a, W> {
    front: &'a DriveServer,
    account: &'a Arc<Account>,
    session: Session,
    writer: W,
    out: Vec<u8>,
    /// Half of the bytes that waited when answers were last sent. When no more bytes wait, the next answers are sent.
    half: Option<usize>,
    /// The latest buffer, for reuse.
    spare: Vec<u8>,
}

impl<W: Write> Inline<'_, W> {
    fn run(mut self, reader: impl Read) -> io::Result<()> {
        let mut reader = Incoming::new(reader);
        while let Some(request) = next_request(&mut reader, self.account)? {
            if self.out.is_empty() && self.half.is_none() {
                self.half = Some((reader.waiting().len() + REQUEST_BYTES) / 2);
            }
            let asked = NbdRequest { request, session: self.session };
            let spare = self.spare_for(&request);
            // Held until the answer is sent or collected.
            let mut claim = self.account.claim();
            match io_of(&request, self.session, self.front, &mut reader, spare, &mut claim)? {
                Ok(io) => self.serve(&asked, io)?,
                Err(error) => refuse(&mut self.out, &asked, error, "the request cannot be served"),
            }
            // The next read may block for as long as the client likes, and the client may wait for these answers first.
            if !holds_request(reader.waiting()) {
                self.send()?;
                self.half = None;
            } else if self.out.len() >= SEND_AT_BYTES || self.half.is_some_and(|half| reader.waiting().len() <= half) {
                self.send()?;
                self.half = Some(reader.waiting().len() / 2);
            }
        }
        self.send()
    }

    fn serve(&mut self, asked: &NbdRequest, io: Io) -> io::Result<()> {
        let steps = steps_of(&asked.request, &io);
        if steps == Steps::Status {
            status(&mut self.out, self.front, asked);
            return Ok(());
        }
        let answer = in_steps(steps, io, &mut |io| self.front.serve(io));
        reply(&mut self.out, asked, &answer.outcome);
        if asked.request.command == command::READ && answer.outcome.is_ok() {
            if answer.buffer.len() >= SEND_AT_BYTES {
                write_both(&mut self.writer, &self.out, &answer.buffer)?;
                self.out.clear();
            } else {
                self.out.extend_from_slice(&answer.buffer);
            }
        }
        if answer.outcome.is_ok() {
            self.account.client().served();
        }
        if answer.buffer.capacity() <= SPARE_BYTES_MAX {
            self.spare = answer.buffer;
        } else {
            self.account.spares().keep(answer.buffer);
        }
        Ok(())
    }

    /// Returns a buffer for `request`, with arbitrary contents.
    fn spare_for(&mut self, request: &Request) -> Vec<u8> {
        let bytes = match request.command {
            command::READ | command::WRITE if request.length <= PAYLOAD_BYTES_MAX => request.length as usize,
            _ => 0,
        };
        if bytes > SPARE_BYTES_MAX {
            return self.account.spares().take(bytes);
        }
        // The drive may keep the buffer of a write, and counts its bytes, not its capacity.
        if request.command == command::WRITE && self.spare.capacity() > 2 * bytes {
            return Vec::new();
        }
        std::mem::take(&mut self.spare)
    }

    fn send(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.writer.write_all(&self.out)?;
            self.out.clear();
            self.out.shrink_to(2 * SEND_AT_BYTES);
        }
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use imbrex_device::EmulatedDrive;
    use imbrex_device::drive::{Making, header_of};
    use imbrex_device::pacing::Pace;
    use imbrex_disk::Profile;
    use imbrex_nbd::SIMPLE_REPLY_BYTES;
    use imbrex_sim::{Drive, DriveSpec};

    use super::*;
    use crate::clients::{Clients, Peer};
    use crate::limits::Limits;
    use crate::payload::Payloads;

    /// A client that sends these pieces, one for each read.
    struct Pieces(VecDeque<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.0.pop_front() else { return Ok(0) };
            into[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    /// The number of bytes that each call has sent.
    #[derive(Default)]
    struct Calls(Vec<usize>);

    impl Write for &mut Calls {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            self.0.push(from.len());
            Ok(from.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns `count` writes of 4 KiB.
    fn writes(count: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for cookie in 0..count {
            Request { flags: 0, command: command::WRITE, cookie, offset: cookie << 12, length: 4096 }.put(&mut bytes);
            bytes.resize(bytes.len() + 4096, cookie as u8);
        }
        bytes
    }

    #[test]
    fn half_of_what_waits_is_answered_while_the_rest_is_served() {
        let spec = DriveSpec::parse("cmr-7200:geometry.tracks=2000").expect("right words");
        let profile = Profile::named(&spec.profile).expect("it is built in");
        let drive = Drive::build(&spec, &profile).expect("it can be built");
        let header = header_of(&drive, &spec, &Making::default()).expect("it can have an image");
        let drive = EmulatedDrive::in_memory(header).expect("memory takes it");
        let (front, pacer) = DriveServer::start(drive, Pace::None, false);
        let clients = Arc::new(Clients::new(4, 4, 1));
        let client = clients.admit(Peer::User(1), Duration::from_secs(1000), || {}).expect("a place");
        client.finished_handshake();
        let account = Arc::new(Account::new(client, Arc::new(Payloads::new(Limits::default(), clients.clone()))));
        for (pieces, expected) in [
            (vec![writes(1), writes(1)], vec![1, 1]),
            (vec![writes(4)], vec![2, 1, 1]),
            (vec![writes(2), writes(8)], vec![1, 1, 4, 2, 1, 1]),
        ] {
            let (mut sent, pieces) = (Calls::default(), Pieces(pieces.into()));
            run(&front, &account, Session::default(), pieces, &mut sent).expect("it ends well");
            let replies: Vec<usize> = sent.0.iter().map(|bytes| bytes / SIMPLE_REPLY_BYTES).collect();
            assert_eq!(replies, expected);
        }
        front.stop(pacer).expect("memory does not fail");
    }
}
