//! The client of a control socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Maximum length of an answer's line, in bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No server listens.
    #[error("no server answers at the control socket: {0}")]
    Unreachable(io::Error),
    /// The server ended or disconnected before it answered.
    #[error("the server ended before it answered")]
    Broken,
    /// The answer is not one of this protocol.
    #[error("the program at the control socket does not speak the protocol of imbrex")]
    Foreign,
    /// The server refused the request.
    #[error("{message}")]
    Refused {
        /// One of the codes in `docs/serve.md`.
        code: String,
        /// Message for people.
        message: String,
    },
}

/// Sends `request` to the control socket at `path` and returns the answer. Waits for the answer for at most `patience`;
/// without `patience`, waits without a limit.
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
