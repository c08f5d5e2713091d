//! The control socket of a served drive: one line of JSON each way (`imbrex.control/1`), for the user who serves the drive.
//!
//! ```text
//!  {"verb":"snapshot","to":"/backup/disk.img"}  ─►  {"schema":"imbrex.control/1","verb":"snapshot","ok":true, …}
//!                                                   {"schema":"imbrex.control/1","verb":…,"ok":false,"error":{"code":…,"message":…}}
//! ```
//!
//! A verb is a file and a line in [`VERBS`]: `snapshot`, `stats`, `shutdown`. [`place`] returns the path of the socket,
//! and [`client`] sends requests.
//!
//! Invariants:
//! 1. Only the user and root can connect.
//! 2. A connection costs a thread and [`LINE_BYTES_MAX`]; there are at most [`CONNECTIONS_MAX`]. Its line must arrive
//!    in [`LINE_TIME`], and its answer must be taken in [`ANSWER_TIME`].
//! 3. A snapshot ends, and leaves no file, when its client disconnects.

pub mod client;
pub mod place;
mod shutdown;
mod snapshot;
mod stats;

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::observe::Observed;
use crate::socket::Socket;

/// Name and version of the control protocol: the value of `schema` in every answer. A request may leave `schema` out,
/// but another value is refused.
pub const SCHEMA: &str = "imbrex.control/1";
/// Maximum number of simultaneous connections to a control socket. The server refuses each further one with the code
/// `busy`.
pub const CONNECTIONS_MAX: usize = 16;
/// Maximum length of the line of a request in bytes, without its newline. A longer request is refused with the code
/// `too-long`.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Time in which the whole line of a request must arrive, counted from the start of the connection. Then the request is
/// refused with the code `late`.
pub const LINE_TIME: Duration = Duration::from_secs(5);
/// Time for which the write of an answer waits for a client that does not read. Then the server closes the connection.
pub const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Interval at which new connections are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A kind of request that the control socket answers, with the function that carries it out.
pub struct Verb {
    /// Name of the kind of request: the value of `verb` in a request.
    pub name: &'static str,
    /// One-line description of the kind of request, for people.
    pub summary: &'static str,
    /// Keys that a request of this verb may have besides `verb` and `schema`.
    keys: &'static [&'static str],
    perform: fn(&Served, &Value, &UnixStream) -> Result<Value, Refusal>,
}

/// All kinds of requests that the control socket answers, sorted by name.
pub static VERBS: [Verb; 3] = [shutdown::VERB, snapshot::VERB, stats::VERB];

/// The error in an answer: the reason why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Code of the reason for programs, one of those in `docs/serve.md`.
    pub code: &'static str,
    /// Explanation of the reason for people.
    pub message: String,
}

impl Refusal {
    fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}

/// The phase of the server's life.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Phase {
    Serving,
    /// A stop was requested: no more snapshots are taken.
    Ending,
    /// The drive is closed, or could not be closed for the given reason.
    Ended(Result<(), String>),
}

struct State {
    phase: Phase,
    /// Bytes copied and bytes in total, while a snapshot is taken.
    snapshot: Option<(u64, u64)>,
}

/// The drive that a control socket reports on, its phase (serving, ending, ended), and the function that makes the
/// server end.
pub struct Served {
    observed: Observed,
    request_end: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Served {
    /// Creates the state for the drive in `observed`. A `shutdown` request calls `request_end`, which must make the
    /// server end and must not wait for that end.
    pub fn new(observed: Observed, request_end: impl Fn() + Send + Sync + 'static) -> Served {
        let state = Mutex::new(State { phase: Phase::Serving, snapshot: None });
        Served { observed, request_end: Box::new(request_end), state, changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the state")
    }

    fn set_phase(&self, phase: Phase) {
        self.lock().phase = phase;
        self.changed.notify_all();
    }

    /// Waits until `is_so` returns true for the state.
    fn wait_until(&self, is_so: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let wait = |state| self.changed.wait(state).expect("no thread panics while it holds the state");
        let mut state = self.lock();
        while !is_so(&state) {
            state = wait(state);
        }
        state
    }
}

/// A control socket that is being served by a thread.
pub struct Control {
    served: Arc<Served>,
    thread: JoinHandle<()>,
}

impl Control {
    /// Starts a thread that accepts connections at `socket`. Each connection gets a thread of its own, which answers
    /// one request.
    ///
    /// # Errors
    ///
    /// The socket cannot be made non-blocking, or the thread cannot be started.
    pub fn start(socket: Socket, served: Served) -> io::Result<Control> {
        socket.set_nonblocking(true)?;
        let served = Arc::new(served);
        let own = served.clone();
        let thread = std::thread::Builder::new().name("control".into()).spawn(move || run(&socket, &own))?;
        Ok(Control { served, thread })
    }

    /// Prepares for the end of the drive: refuses new snapshots (copies of the image), interrupts a snapshot in
    /// progress, and waits until it has ended. Other requests are still answered.
    pub fn begin_end(&self) {
        self.served.set_phase(Phase::Ending);
        drop(self.served.wait_until(|state| state.snapshot.is_none()));
    }

    /// Ends the control socket: answers the `shutdown` requests that wait, waits until all connections have ended, and
    /// removes the socket. `outcome` is `Ok` if the drive was closed, and otherwise the reason why not, which the
    /// waiting clients receive.
    ///
    /// # Panics
    ///
    /// If the thread that accepts connections panicked.
    pub fn end(self, outcome: Result<(), String>) {
        self.served.set_phase(Phase::Ended(outcome));
        self.thread.join().expect("a thread that only takes connections does not panic");
    }
}

/// Accepts connections until the drive is closed.
fn run(socket: &Socket, served: &Arc<Served>) {
    let mut threads: Vec<(JoinHandle<()>, UnixStream)> = Vec::new();
    while !matches!(served.lock().phase, Phase::Ended(_)) {
        match socket.accept() {
            Ok((stream, _)) => {
                threads.retain(|(thread, _)| !thread.is_finished());
                // An error ends only this connection.
                if let Ok(started) = welcome(stream, served, threads.len()) {
                    threads.extend(started);
                }
            }
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
    for (thread, stream) in threads {
        // A connection without a request by now gets no answer; answers still go out.
        let _ = stream.shutdown(Shutdown::Read);
        // A thread that panicked has reported that itself, and has ended one connection.
        let _ = thread.join();
    }
}

/// Starts a thread for a connection, or refuses the connection if there are too many.
fn welcome(
    mut stream: UnixStream,
    served: &Arc<Served>,
    connections: usize,
) -> io::Result<Option<(JoinHandle<()>, UnixStream)>> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(ANSWER_TIME))?;
    if connections >= CONNECTIONS_MAX {
        let refusal = Refusal::new("busy", format!("there are {CONNECTIONS_MAX} connections, the most allowed"));
        stream.write_all(line(&Value::Null, Err(refusal)).as_bytes())?;
        return Ok(None);
    }
    let (kept, served) = (stream.try_clone()?, served.clone());
    let builder = std::thread::Builder::new().name("control connection".into());
    let thread = builder.spawn(move || {
        // An error ends only this connection.
        let _ = converse(&mut stream, &served);
        // The list of connections still has a handle, and the client waits for the end of the stream.
        let _ = stream.shutdown(Shutdown::Both);
    })?;
    Ok(Some((thread, kept)))
}

/// Answers one request.
fn converse(stream: &mut UnixStream, served: &Served) -> io::Result<()> {
    let (verb, outcome) = match read_line(stream)? {
        Ok(None) => return Ok(()),
        Ok(Some(bytes)) => match parse(&bytes) {
            Ok((verb, request)) => (json!(verb.name), (verb.perform)(served, &request, stream)),
            Err(refusal) => (Value::Null, Err(refusal)),
        },
        Err(refusal) => (Value::Null, Err(refusal)),
    };
    stream.write_all(line(&verb, outcome).as_bytes())
}

/// Returns the line of an answer.
fn line(verb: &Value, outcome: Result<Value, Refusal>) -> String {
    let mut answer = Map::new();
    answer.insert("schema".into(), json!(SCHEMA));
    answer.insert("verb".into(), verb.clone());
    answer.insert("ok".into(), json!(outcome.is_ok()));
    match outcome {
        Ok(Value::Object(result)) => answer.extend(result),
        Ok(other) => unreachable!("a verb answers with an object, not with {other}"),
        Err(Refusal { code, message }) => {
            answer.insert("error".into(), json!({ "code": code, "message": message }));
        }
    }
    format!("{}\n", Value::Object(answer))
}

/// Returns the bytes up to the end of the line or of the stream; `None` if the client sends nothing. The outer error is
/// one of the socket, and the inner error is sent to the client.
fn read_line(stream: &mut UnixStream) -> io::Result<Result<Option<Vec<u8>>, Refusal>> {
    let begun = Instant::now();
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let left = LINE_TIME.saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok(Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))),
            Ok(count) => match piece[..count].iter().position(|&byte| byte == b'\n') {
                Some(end) if bytes.len() + end <= LINE_BYTES_MAX => {
                    bytes.extend_from_slice(&piece[..end]);
                    return Ok(Ok(Some(bytes)));
                }
                _ if bytes.len() + count > LINE_BYTES_MAX => {
                    let message = format!("a request has {LINE_BYTES_MAX} bytes at most");
                    return Ok(Err(Refusal::new("too-long", message)));
                }
                _ => bytes.extend_from_slice(&piece[..count]),
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Err(Refusal::new("late", format!("no line came within {} s", LINE_TIME.as_secs()))))
}

/// Returns the verb and the request in a line.
fn parse(line: &[u8]) -> Result<(&'static Verb, Value), Refusal> {
    let malformed = |message: String| Refusal::new("malformed", message);
    let request: Value =
        serde_json::from_slice(line).map_err(|error| malformed(format!("a request is a line of JSON: {error}")))?;
    let fields = request.as_object().ok_or_else(|| malformed("a request is an object".into()))?;
    match fields.get("schema") {
        None => {}
        Some(schema) if schema == SCHEMA => {}
        Some(other) => return Err(Refusal::new("schema", format!("this server speaks {SCHEMA}, not {other}"))),
    }
    let names = || VERBS.iter().map(|verb| verb.name).collect::<Vec<_>>().join(", ");
    let name = fields.get("verb").and_then(Value::as_str);
    let name = name.ok_or_else(|| malformed(format!("a request has a verb, one of {}", names())))?;
    let verb = VERBS.iter().find(|verb| verb.name == name);
    let verb = verb.ok_or_else(|| Refusal::new("unknown-verb", format!("the verbs are {}, not '{name}'", names())))?;
    let is_known = |key: &&String| ["verb", "schema"].contains(&key.as_str()) || verb.keys.contains(&key.as_str());
    if let Some(key) = fields.keys().find(|key| !is_known(key)) {
        return Err(malformed(format!("{name} takes no '{key}'")));
    }
    Ok((verb, request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_is_told_why() {
        let code = |line: &str| parse(line.as_bytes()).err().map(|refusal| refusal.code);
        for (line, expected) in [
            (r#"{"verb":"stats"}"#, None),
            (r#"{"schema":"imbrex.control/1","verb":"stats"}"#, None),
            (r#"{"schema":"imbrex.control/2","verb":"stats"}"#, Some("schema")),
            (r#"{"verb":"dance"}"#, Some("unknown-verb")),
            (r#"{"verb":"stats","to":"/x"}"#, Some("malformed")),
            (r#"{"verb":7}"#, Some("malformed")),
            (r#"["stats"]"#, Some("malformed")),
            ("stats", Some("malformed")),
            ("", Some("malformed")),
        ] {
            assert_eq!(code(line), expected, "{line}");
        }
    }

    #[test]
    fn verbs_are_in_order_and_named_once() {
        assert!(VERBS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(VERBS.iter().all(|verb| !verb.summary.is_empty()));
    }
}
