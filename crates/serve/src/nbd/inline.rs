//! Requests and replies of one connection to a drive that answers at once: one thread reads, serves and answers, and sends
//! what it has answered whenever no further request has come in.

use std::io::{self, Read, Write};
use std::sync::Arc;

use imbrex_device::Io;

use super::handshake::Session;
use super::incoming::Incoming;
use super::protocol::*;
use super::requests::{
    holds_request, in_steps, io_of, next_request, refuse, reply, status, steps_of, write_both, Asked, Steps,
};
use crate::front::Front;
use crate::payload::Account;

/// Replies are sent when there are so many bytes of them, even if more requests wait.
const SEND_AT_BYTES: usize = 256 << 10;
/// A buffer of at most this many bytes is kept for the connection's next request, a larger one for anybody's.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// Serves one connection until it ends.
pub(super) fn run(
    front: &Front,
    account: &Arc<Account>,
    session: Session,
    reader: impl Read,
    writer: impl Write,
) -> io::Result<()> {
    Inline { front, account, session, writer, out: Vec::new(), half: None, spare: Vec::new() }.run(reader)
}

/// A connection to an unpaced drive.
struct Inline<'a, W> {
    front: &'a Front,
    account: &'a Arc<Account>,
    session: Session,
    writer: W,
    out: Vec<u8>,
    /// Half of the bytes that came together: once no more of them wait, what is answered is sent, and the client works on
    /// that while the other half is served.
    half: Option<usize>,
    /// The last buffer, to be filled again.
    spare: Vec<u8>,
}

impl<W: Write> Inline<'_, W> {
    fn run(mut self, reader: impl Read) -> io::Result<()> {
        let mut reader = Incoming::new(reader);
        while let Some(request) = next_request(&mut reader, self.account)? {
            if self.out.is_empty() && self.half.is_none() {
                self.half = Some((reader.waiting().len() + REQUEST_BYTES) / 2);
            }
            let asked = Asked { request, session: self.session };
            let spare = self.spare_for(&request);
            // Held until the answer is sent, or waits with other small ones.
            let mut claim = self.account.claim();
            match io_of(&request, self.session, self.front, &mut reader, spare, &mut claim)? {
                Ok(io) => self.serve(&asked, io)?,
                Err(error) => refuse(&mut self.out, &asked, error, "the request cannot be served"),
            }
            // To read on may take as long as the client likes, and it may wait for these answers first.
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

    fn serve(&mut self, asked: &Asked, io: Io) -> io::Result<()> {
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

    /// A buffer for `request`, in which anything may stand.
    fn spare_for(&mut self, request: &Request) -> Vec<u8> {
        let bytes = match request.command {
            command::READ | command::WRITE if request.length <= PAYLOAD_BYTES_MAX => request.length as usize,
            _ => 0,
        };
        if bytes > SPARE_BYTES_MAX {
            return self.account.spares().take(bytes);
        }
        // The drive may keep what a write brings, and counts its bytes, not the room around them.
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
