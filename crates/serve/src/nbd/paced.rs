//! Requests and replies of one connection to a paced drive. One thread reads and submits requests, the drive's pacer
//! delivers the answers, and another thread sends them. A client that reads its replies slowly, or never, delays only
//! itself.
//!
//! Invariants:
//! 1. The pacer never waits for a client: it puts answers into a queue, and the connection's own thread sends them.
//! 2. At most [`REQUESTS_MAX`] requests are taken and not yet answered on the wire. Their payload is at most
//!    [`PAYLOAD_BYTES_AT_ONCE`], except for a single request. Beyond these limits the client's next request is not
//!    read.
//! 3. When the connection ends, only answers that can still be sent are waited for.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::handshake::Session;
use super::incoming::Incoming;
use super::protocol::*;
use super::requests::{NbdRequest, Steps, in_steps, io_of, next_request, refuse, reply, status, steps_of, write_both};
use crate::drive_server::{Answer, DriveServer, Target, backdate};
use crate::payload::{Account, Claim};

/// Maximum number of requests of one connection in flight.
const REQUESTS_MAX: usize = 1024;
/// Maximum number of bytes of payload of one connection in flight.
const PAYLOAD_BYTES_AT_ONCE: u64 = 64 << 20;

/// A reply that waits to be sent.
struct Reply {
    head: Vec<u8>,
    data: Vec<u8>,
    /// The request's part of [`State::payload_bytes`].
    payload_bytes: u64,
    /// Dropped when the reply is sent.
    claim: Claim,
    /// Whether the request was carried out.
    is_served: bool,
    /// Wall-clock time at which the answer was due.
    due: Instant,
}

/// State shared by the three threads.
#[derive(Default)]
struct State {
    /// Requests in flight, by the drive's numbers: a client may use a cookie twice.
    submitted: BTreeMap<u64, (Request, Claim)>,
    /// Number of requests taken and not yet answered on the wire.
    requests: usize,
    payload_bytes: u64,
    replies: VecDeque<Reply>,
    /// Lateness of the latest reply.
    late: Duration,
    /// Whether no further request will be taken.
    is_ending: bool,
    /// Whether no further reply can be sent.
    is_broken: bool,
}

struct Connection {
    account: Arc<Account>,
    session: Session,
    state: Mutex<State>,
    changed: Condvar,
}

/// Serves one connection until it ends.
pub(super) fn run(
    front: &Arc<DriveServer>,
    account: &Arc<Account>,
    session: Session,
    reader: impl Read,
    writer: impl Write + Send + 'static,
) -> io::Result<()> {
    let (account, state, changed) = (account.clone(), Mutex::default(), Condvar::new());
    let connection = Arc::new(Connection { account, session, state, changed });
    let sending = connection.clone();
    let sender = std::thread::Builder::new().name("nbd replies".into()).spawn(move || sending.send_all(writer))?;
    let outcome = connection.take_all(front, reader);
    connection.lock().is_ending = true;
    connection.changed.notify_all();
    sender.join().expect("sending replies does not panic");
    outcome
}

impl Connection {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds a connection's state")
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).expect("no thread panics while it holds a connection's state")
    }

    /// Reads and submits requests until the client sends no more.
    fn take_all(self: &Arc<Connection>, front: &Arc<DriveServer>, reader: impl Read) -> io::Result<()> {
        let target: Arc<dyn Target> = self.clone();
        let mut reader = Incoming::new(reader);
        while let Some(request) = next_request(&mut reader, &self.account)? {
            let seen = Instant::now();
            if !self.enter(&request) {
                return Ok(());
            }
            let asked = NbdRequest { request, session: self.session };
            let (mut head, mut claim) = (Vec::new(), self.account.claim());
            let is_served = match io_of(&request, self.session, front, &mut reader, Vec::new(), &mut claim)? {
                Err(error) => {
                    refuse(&mut head, &asked, error, "the request cannot be served");
                    false
                }
                Ok(io) => match steps_of(&request, &io) {
                    Steps::One => {
                        let arrived = backdate(seen, self.lateness());
                        let accepted = |number| self.register(number, request, claim);
                        let Err(error) = front.submit(io, arrived, &target, accepted) else { continue };
                        // The drive has released the payload, and with it the claim.
                        claim = self.account.claim();
                        reply(&mut head, &asked, &Err(error));
                        false
                    }
                    Steps::Status => {
                        status(&mut head, front, &asked);
                        false
                    }
                    several => {
                        let answer = in_steps(several, io, &mut |io| front.ask(io));
                        reply(&mut head, &asked, &answer.outcome);
                        answer.outcome.is_ok()
                    }
                },
            };
            let (data, due, payload_bytes) = (Vec::new(), Instant::now(), payload_bytes(&request));
            self.queue(Reply { head, data, payload_bytes, claim, is_served, due });
        }
        Ok(())
    }

    /// Waits until the limits permit `request`. Returns whether replies can still be sent.
    fn enter(&self, request: &Request) -> bool {
        let payload_bytes = payload_bytes(request);
        let mut state = self.lock();
        let is_full = |state: &State| {
            state.requests >= REQUESTS_MAX
                || (state.requests > 0 && state.payload_bytes + payload_bytes > PAYLOAD_BYTES_AT_ONCE)
        };
        while is_full(&state) && !state.is_broken {
            state = self.wait(state);
        }
        state.requests += 1;
        state.payload_bytes += payload_bytes;
        !state.is_broken
    }

    /// Returns the lateness of the latest reply.
    fn lateness(&self) -> Duration {
        self.lock().late
    }

    /// Records that `request`, which holds `claim`, is in flight under the drive's number.
    fn register(&self, number: u64, request: Request, claim: Claim) {
        self.lock().submitted.insert(number, (request, claim));
    }

    fn queue(&self, reply: Reply) {
        self.lock().replies.push_back(reply);
        self.changed.notify_all();
    }

    /// Sends replies until the last is sent, or until a send fails.
    fn send_all(&self, mut writer: impl Write) {
        let mut state = self.lock();
        loop {
            if let Some(Reply { head, data, payload_bytes, claim, is_served, due }) = state.replies.pop_front() {
                state.late = due.elapsed();
                let more_wait = !state.replies.is_empty();
                drop(state);
                let sent = write_both(&mut writer, &head, &data);
                let sent = if more_wait { sent } else { sent.and_then(|()| writer.flush()) };
                if is_served && sent.is_ok() {
                    self.account.client().served();
                }
                drop((head, data, claim));
                state = self.lock();
                state.requests -= 1;
                state.payload_bytes -= payload_bytes;
                state.is_broken |= sent.is_err();
                self.changed.notify_all();
            } else if state.is_broken || (state.is_ending && state.submitted.is_empty()) {
                return;
            } else {
                state = self.wait(state);
            }
        }
    }
}

impl Target for Connection {
    fn answer(&self, number: u64, answer: Answer) {
        let mut state = self.lock();
        let registered = state.submitted.remove(&number);
        let (request, claim) = registered.expect("a request is registered before its answer, and answered once");
        let mut head = Vec::new();
        reply(&mut head, &NbdRequest { request, session: self.session }, &answer.outcome);
        let has_data = request.command == command::READ && answer.outcome.is_ok();
        let data = if has_data { answer.buffer } else { Vec::new() };
        let (payload_bytes, is_served, due) = (payload_bytes(&request), answer.outcome.is_ok(), answer.due);
        state.replies.push_back(Reply { head, data, payload_bytes, claim, is_served, due });
        self.changed.notify_all();
    }
}

/// Returns the number of bytes that the server holds for a request.
fn payload_bytes(request: &Request) -> u64 {
    match request.command {
        command::READ | command::WRITE if request.length <= PAYLOAD_BYTES_MAX => u64::from(request.length),
        _ => 0,
    }
}
