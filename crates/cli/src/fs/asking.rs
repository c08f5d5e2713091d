//! Orders from a command to the process that serves a directory, to do a task with the file system.
//!
//! ```text
//!   imbrex fs replace DIR ──(order, by an extended attribute)──► the process that serves: a task of the core
//!            ▲                                                                  │
//!            ├──(how far it is, again and again, in the status)─────────────────┤
//!            └──(its outcome in parts, by further attributes)───────────────────┘
//! ```
//!
//! The task continues when the command is killed; Ctrl-C stops the task.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use imbrex::{Failure, Progress};
use imbrex_fuse::ORDER_ATTRIBUTE;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde_json::{Value, json};
use uuid::Uuid;

use super::stat;
use crate::{interrupt, json};

/// Interval at which the command reads the progress.
const LOOK: Duration = Duration::from_millis(100);

/// Returns the absolute path of `path`, which the serving process needs: its working directory is another.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// Returns the absolute path of the device at `path`, for an order to add it to the array served on `directory`. A device
/// that lies on the array itself is refused: the serving process would wait for itself.
///
/// # Errors
///
/// Fails if no file system of Imbrex is mounted on `directory`, or if the device is not there or lies on the array.
pub(super) fn device_for(directory: &Path, path: &Path) -> Result<Value, Failure> {
    // In a directory without such a file system, the device may lie on the same file system as the directory.
    stat::ask(directory)?;
    let number = |path: &Path| {
        path.metadata().map(|it| it.dev()).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
    };
    let device = absolute(path)?;
    if number(&device)? == number(directory)? {
        return Err(Failure::failed(format!("{} lies on the array itself", path.display())).or_try("another device"));
    }
    json::exact(&device)
}

/// Sends `order` to the process that serves `directory`, shows the progress under `name`, waits for the end of the
/// task, and returns its result. Ctrl-C stops the task.
pub(super) fn ask(directory: &Path, name: &str, mut order: Value, quiet: bool) -> Result<Value, Failure> {
    let id = Uuid::new_v4().to_string();
    order["id"] = json!(id);
    // Asked first for its error messages: `directory` may be another file system, or its server may be gone.
    stat::ask(directory)?;
    give(directory, &order)?;
    let bar = Progress::on_terminal(quiet).steps(name);
    let mut is_stopping = false;
    loop {
        let status = stat::ask(directory)?;
        let task = &status["task"];
        let gone = || Failure::failed(format!("{}: the server no longer has this task", directory.display()));
        if task["id"] != json!(id) {
            return Err(gone());
        }
        if task["state"] != "running" {
            bar.finish_and_clear();
            let outcome = stat::outcome(directory, &id)?.ok_or_else(gone)?;
            return match task["state"] == "done" {
                true => Ok(outcome),
                false => Err(Failure::failed(outcome.as_str().unwrap_or("it failed"))),
            };
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
        Errno::BUSY => Failure::failed(format!("{place}: another task is running"))
            .or_try(format!("`imbrex fs stat {place}` says how far it is")),
        Errno::PERM => Failure::failed(format!("{place}: only root and the user who mounted it may do that")),
        _ => Failure::failed(format!("{place}: {error}")),
    })
}
