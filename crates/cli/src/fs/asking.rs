//! How a command asks the process that serves a directory to do something with what it serves.
//!
//! ```text
//!   imbrex fs replace DIR ──(order, by an extended attribute)──► the process that serves: a task of the core
//!            ▲                                                                  │
//!            └──(how far it is, again and again, in the status)─────────────────┘
//! ```
//!
//! The task goes on when the command that asked is killed; Ctrl-C stops it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use imbrex::{Failure, Progress};
use imbrex_serve::fuse::ORDER_ATTRIBUTE;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde_json::{Value, json};
use uuid::Uuid;

use super::stat;
use crate::interrupt;

/// How often the one who asked looks how far it is.
const LOOK: Duration = Duration::from_millis(100);

/// A path as the process that serves understands it.
pub fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// The device at `path` that is to come into the array served on `directory`, as the process that serves understands it. What
/// lies on the array itself is refused: that process would wait for itself.
pub fn device_for(directory: &Path, path: &Path) -> Result<PathBuf, Failure> {
    let number = |path: &Path| {
        path.metadata().map(|it| it.dev()).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    };
    let device = absolute(path)?;
    if number(&device)? == number(directory)? {
        return Err(Failure::failed(format!("{} lies on the array itself", path.display())).or_try("another device"));
    }
    Ok(device)
}

/// Asks the process that serves `directory` to do `order`, shows how far it is under `name`, and waits. Returns what it
/// came to. Ctrl-C stops it.
pub fn ask(directory: &Path, name: &str, mut order: Value, quiet: bool) -> Result<Value, Failure> {
    let id = Uuid::new_v4().to_string();
    order["id"] = json!(id);
    // Whether it is one of ours, and who serves it, is told first.
    stat::ask(directory)?;
    give(directory, &order)?;
    let bar = Progress::on_terminal(quiet).steps(name);
    let mut is_stopping = false;
    loop {
        let status = stat::ask(directory)?;
        let task = &status["task"];
        if task["id"] != json!(id) {
            return Err(Failure::failed(format!("{}: the task was forgotten", directory.display())));
        }
        match (task["state"].as_str(), &task["outcome"]) {
            (Some("done"), outcome) => {
                bar.finish_and_clear();
                return Ok(outcome.clone());
            }
            (Some("failed"), why) => {
                bar.finish_and_clear();
                return Err(Failure::failed(why.as_str().unwrap_or("it failed")));
            }
            _ => {}
        }
        bar.set_length(task["all"].as_u64().unwrap_or(0));
        bar.set_position(task["done"].as_u64().unwrap_or(0));
        if interrupt::requested() && !is_stopping {
            is_stopping = true;
            give(directory, &json!({ "order": "stop", "id": id }))?;
        }
        std::thread::sleep(LOOK);
    }
}

fn give(directory: &Path, order: &Value) -> Result<(), Failure> {
    let place = directory.display();
    let words = order.to_string();
    rustix::fs::setxattr(directory, ORDER_ATTRIBUTE, words.as_bytes(), XattrFlags::empty()).map_err(|error| match error
    {
        Errno::BUSY => Failure::failed(format!("{place}: another task is being done"))
            .or_try(format!("`imbrex fs stat {place}` says how far it is")),
        Errno::PERM => Failure::failed(format!("{place}: only root, and who mounted it, may do that")),
        _ => Failure::failed(format!("{place}: {error}")),
    })
}
