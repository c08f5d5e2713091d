//! `stats`: the figures of the drive, the path and state of its image, and the progress of a snapshot.

use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::{Phase, Refusal, Served, Verb};
use crate::observe;

pub(super) const VERB: Verb = Verb { name: "stats", summary: "figures of the drive and its image", keys: &[], perform };

fn perform(served: &Served, _request: &Value, _asker: &UnixStream) -> Result<Value, Refusal> {
    let mut figures = observe::figures(&served.observed);
    let state = served.lock();
    figures["process"] = json!(std::process::id());
    figures["is_ending"] = json!(state.phase != Phase::Serving);
    figures["snapshot"] = match state.snapshot {
        Some((copied, all)) => json!({ "copied_bytes": copied, "all_bytes": all }),
        None => Value::Null,
    };
    Ok(figures)
}
