//! The client of a control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Maximum length of an answer's line, in bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The reason why a request to a control socket has no successful answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection to the control socket failed, for example because no server listens there.
    #[error("no server answers at the control socket: {0}")]
    Unreachable(io::Error),
    /// The connection ended or timed out before a whole line of answer arrived, or the line is longer than 1 MiB.
    #[error("the server ended before it answered")]
    Broken,
    /// The answer is not JSON, or has no Boolean `ok`, so the program at the socket does not speak this protocol.
    #[error("the program at the control socket does not speak the protocol of imbrex")]
    Foreign,
    /// The server refused or could not carry out the request.
    #[error("{message}")]
    Refused {
        /// Code of the refusal in the answer, one of those in `docs/serve.md`; empty if the answer has none.
        code: String,
        /// Message for people, as the server sent it; empty if the answer has none.
        message: String,
    },
}

/// Sends `request` to the control socket at `path` as one line of JSON, and returns the answer, an object whose `ok` is
/// true. Each read of the answer waits for at most `patience`; with `None` there is no limit.
///
/// # Errors
///
/// No server can be reached, `patience` is zero or runs out, the connection ends before the answer, the answer is not
/// one of this protocol or is longer than 1 MiB, or the server refuses the request.
pub fn ask(path: &Path, request: &Value, patience: Option<Duration>) -> Result<Value, AskError> {
    let mut stream = UnixStream::connect(path).map_err(AskError::Unreachable)?;
    stream.set_read_timeout(patience).map_err(AskError::Unreachable)?;
    // A server with too many connections answers at once, and does not read.
    let _ = stream.write_all(format!("{request}\n").as_bytes());
    let mut answer = Vec::new();
    let read = BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_until(b'\n', &mut answer);
    if read.is_err() || !answer.ends_with(b"\n") {
        return Err(AskError::Broken);
    }
    let answer: Value = serde_json::from_slice(&answer).map_err(|_| AskError::Foreign)?;
    match answer["ok"].as_bool() {
        Some(true) => Ok(answer),
        Some(false) => {
            let text = |key: &str| answer["error"][key].as_str().unwrap_or_default().to_string();
            Err(AskError::Refused { code: text("code"), message: text("message") })
        }
        None => Err(AskError::Foreign),
    }
}
