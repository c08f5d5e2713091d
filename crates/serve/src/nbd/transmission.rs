//! Requests and replies. For a drive without a pace one thread reads, serves and answers ([`inline`]); with a pace,
//! several do ([`paced`]).
//!
//! Invariants:
//! 1. Every request with the right magic is answered once, in any order, or the connection ends.
//! 2. Replies are not interleaved: one thread writes.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use super::handshake::Session;
use super::requests::SEND_STEP_BYTES;
use super::{inline, paced};
use crate::clients::Client;
use crate::drive_server::DriveServer;
use crate::limits::Limits;
use crate::payload::Account;

/// Serves the requests of one NBD connection after its handshake, until the client disconnects, breaks the protocol or
/// is cut off. Requests are read from `reader`, and replies are written to `writer`. The memory of payloads is taken
/// from `account`, which is the client's.
///
/// # Errors
///
/// `reader` or `writer` failed, or the client was cut off while it waited for memory.
pub fn run(
    front: &Arc<DriveServer>,
    account: &Arc<Account>,
    session: Session,
    reader: impl Read,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    let writer = Watched { writer, client: account.client().clone(), limits: account.limits().clone() };
    if front.is_unpaced() {
        inline::run(front, account, session, reader, writer)
    } else {
        paced::run(front, account, session, reader, writer)
    }
}

/// A writer that sets a deadline for the client to take each piece.
struct Watched<W> {
    writer: W,
    client: Arc<Client>,
    limits: Limits,
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.client.send_within(self.limits.reply_time);
        let sent = self.writer.write(&from[..from.len().min(SEND_STEP_BYTES)]);
        self.client.progressed();
        sent
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.client.send_within(self.limits.reply_time);
        let sent = self.writer.write_vectored(from);
        self.client.progressed();
        sent
    }

    /// Marks the end of a reply: clears the deadline.
    fn flush(&mut self) -> io::Result<()> {
        self.client.sent();
        self.writer.flush()
    }
}
