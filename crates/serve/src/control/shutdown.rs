//! `shutdown`: ends the server in an orderly way, as Ctrl-C does, and answers when the image is closed.

use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::{Phase, Refusal, Served, Verb};

pub(super) const VERB: Verb =
    Verb { name: "shutdown", summary: "end in good order; answered when the image is closed", keys: &[], perform };

fn perform(served: &Served, _request: &Value, _asker: &UnixStream) -> Result<Value, Refusal> {
    (served.request_end)();
    let state = served.wait_until(|state| matches!(state.phase, Phase::Ended(_)));
    match &state.phase {
        Phase::Ended(Err(reason)) => Err(Refusal::new("failed", reason.clone())),
        _ => Ok(json!({ "is_closed": true })),
    }
}
