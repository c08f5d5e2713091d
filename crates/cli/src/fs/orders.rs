//! Tasks with a mounted file system that the serving process does when a command orders them; [`super::asking`] is the
//! command's side.
//!
//! One task is done at a time.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use imbrex::Failure;
use imbrex_fs::{Device, Executor, Fs, FsError};
use imbrex_fuse::Answers;
use serde_json::{Value, json};
use uuid::Uuid;

use super::asking::absolute;
use super::devices::{self, Devices, Purpose};
use super::{add, replace, scrub, scrubs, shorten, stat, status};
use crate::consent::{self, Consent};
use crate::displaced::Watched;
use crate::json;

/// Largest part of the outcome of a task that one extended attribute returns: half of Linux's limit on its value.
const OUTCOME_PART_BYTES: usize = 32 << 10;
/// Largest length of the identifier and of the name of a task. Commands use UUIDs and single words.
const NAME_BYTES_MAX: usize = 40;

/// The running task, or the last one.
struct Task {
    id: String,
    order: String,
    done: Cell<u64>,
    all: Cell<u64>,
    is_stopped: Cell<bool>,
    /// Result of the task, once it has ended.
    outcome: RefCell<Option<Outcome>>,
}

/// Result of a task that has ended.
struct Outcome {
    is_done: bool,
    /// The result as JSON text: the document of the task, or its error message. Its length has no bound.
    text: String,
    /// The result without the entries of its lists, for the status.
    summary: Value,
}

impl Outcome {
    fn of(outcome: Result<Value, String>) -> Outcome {
        let (is_done, value) = match outcome {
            Ok(value) => (true, value),
            Err(why) => (false, json!(why)),
        };
        Outcome { is_done, text: value.to_string(), summary: summary(value) }
    }
}

/// Returns `value` with the number of entries in place of each list.
fn summary(value: Value) -> Value {
    match value {
        Value::Array(list) => json!(list.len()),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, summary(value))).collect(),
        value => value,
    }
}

impl Task {
    /// Records the progress. Returns whether to continue.
    fn tell(&self, done: u64, all: u64) -> bool {
        self.done.set(done);
        self.all.set(all);
        !self.is_stopped.get()
    }

    fn document(&self) -> Value {
        let outcome = self.outcome.borrow();
        let (state, summary) = match outcome.as_ref() {
            None => ("running", Value::Null),
            Some(outcome) if outcome.is_done => ("done", outcome.summary.clone()),
            Some(outcome) => ("failed", outcome.summary.clone()),
        };
        let (id, order, done, all) = (&self.id, &self.order, self.done.get(), self.all.get());
        json!({ "id": id, "order": order, "state": state, "done": done, "all": all, "summary": summary })
    }

    /// Returns the part of the outcome, as JSON text, that begins at byte `offset`. Empty behind the end.
    fn outcome_from(&self, offset: usize) -> Option<Vec<u8>> {
        let outcome = self.outcome.borrow();
        let bytes = outcome.as_ref()?.text.as_bytes();
        let from = offset.min(bytes.len());
        Some(bytes[from..bytes.len().min(from + OUTCOME_PART_BYTES)].to_vec())
    }
}

/// The serving process's side of orders: the current task, and the devices that orders may add to.
pub(super) struct Orders {
    executor: Executor,
    directory: PathBuf,
    paths: RefCell<Vec<PathBuf>>,
    is_paced: bool,
    /// The host files of all devices, watched for lost paths and full disks.
    files: Watched,
    task: RefCell<Option<Rc<Task>>>,
    /// Devices that orders have opened since the mount.
    came: RefCell<Vec<Device>>,
}

impl Orders {
    /// Returns the state for a file system that is served on `directory` from `devices`.
    pub(super) fn new(executor: &Executor, directory: &Path, devices: &Devices, is_paced: bool) -> Rc<Orders> {
        let files = Watched::default();
        devices.all.iter().for_each(|device| files.add(device.host_file()));
        Rc::new(Orders {
            files,
            executor: executor.clone(),
            directory: directory.into(),
            paths: RefCell::new(devices.paths.clone()),
            is_paced,
            task: RefCell::default(),
            came: RefCell::default(),
        })
    }

    /// Shuts down the devices that orders have opened.
    pub(super) fn shut_down(&self) -> Result<(), Failure> {
        for device in self.came.borrow().iter() {
            device.shut_down().map_err(|fault| Failure::failed(format!("{}: {fault}", device.name())))?;
        }
        Ok(())
    }

    /// Returns the list of the devices' host files.
    pub(super) fn files(&self) -> Watched {
        self.files.clone()
    }

    /// Returns the path by which the device at the absolute path `path` was opened, if it is open.
    fn known(&self, path: &Path) -> Option<PathBuf> {
        self.paths.borrow().iter().find(|known| absolute(known).is_ok_and(|known| known == path)).cloned()
    }

    /// Opens the new device that an order names.
    fn open(&self, fs: &Fs, order: &Value) -> Result<(Device, PathBuf), Failure> {
        let path = PathBuf::from(order["with"].as_str().unwrap_or_default());
        if let Some(known) = self.known(&path) {
            return Err(replace::there_already(fs, &known));
        }
        let device = devices::open(&self.executor, &path, Purpose::Serve, self.is_paced)?;
        // The command has asked the user already; the options it passes on are checked again through this handle.
        let consent = Consent { force: order["force"] == true, yes: true };
        let checked = devices::survey(&device).and_then(|survey| consent::check(&[survey], consent));
        if let Err(failure) = checked {
            // An error is ignored: nothing was written to the device.
            let _ = device.close();
            return Err(failure);
        }
        self.files.add(device.host_file());
        self.came.borrow_mut().push(device.clone());
        self.paths.borrow_mut().push(path.clone());
        Ok((device, path))
    }

    /// Closes the devices that an order opened and the file system does not use, since the order failed.
    fn let_go(&self, fs: &Fs) {
        let mut came = self.came.borrow_mut();
        for device in came.extract_if(.., |device| !fs.uses(device)) {
            self.paths.borrow_mut().retain(|path| path.as_os_str() != device.name());
            // An error is ignored: no data on the device is needed.
            let _ = device.close();
        }
    }

    fn begin(self: &Rc<Orders>, fs: &Fs, order: Value) -> Rc<Task> {
        let text = |key: &str| order[key].as_str().unwrap_or_default().to_string();
        let task = Rc::new(Task {
            id: text("id"),
            order: text("order"),
            done: Cell::new(0),
            all: Cell::new(0),
            is_stopped: Cell::new(false),
            outcome: RefCell::default(),
        });
        let (orders, fs, doing) = (self.clone(), fs.clone(), task.clone());
        self.executor.spawn(async move {
            let outcome = orders.perform(&fs, &order, &doing).await;
            orders.let_go(&fs);
            *doing.outcome.borrow_mut() = Some(Outcome::of(outcome.map_err(|failure| failure.to_string())));
        });
        task
    }

    async fn perform(&self, fs: &Fs, order: &Value, task: &Task) -> Result<Value, Failure> {
        let force = order["force"] == true;
        match task.order.as_str() {
            "replace" => {
                let drive = order["drive"].as_u64().and_then(|drive| u8::try_from(drive).ok());
                let number = replace::which(&fs.status().missing, drive)?;
                let told = |done: imbrex_fs::core::Replaced| task.tell(done.groups, done.groups_in_all);
                let path = PathBuf::from(order["with"].as_str().unwrap_or_default());
                let opened = match self.known(&path) {
                    Some(known) => replace::goes_on_with(fs, number, &known).map(|()| None)?,
                    None => Some(self.open(fs, order)?.0),
                };
                let named = opened.as_ref().map(|device| (device, Uuid::new_v4()));
                let replaced = fs.replace_drive(number, named, force, told).await.map_err(Failure::failed)?;
                Ok(replace::document(number, &path, replaced))
            }
            "copy" => {
                let copy = order["copy"].as_u64().unwrap_or(u64::MAX) as usize;
                let (device, path) = self.open(fs, order)?;
                let told = |done, all| task.tell(done, all);
                let blocks =
                    fs.replace_copy(copy, (&device, Uuid::new_v4()), force, told).await.map_err(Failure::failed)?;
                Ok(replace::document_of_copy(copy, &path, blocks))
            }
            "add" => {
                let (device, path) = self.open(fs, order)?;
                let before = fs.statfs().blocks;
                let number = match order["spare"] == true {
                    true => fs.add_spare(&device, Uuid::new_v4(), force).await.map(|()| None),
                    false => fs.add_drive(&device, Uuid::new_v4(), force).await.map(Some),
                };
                Ok(add::document(&path, number.map_err(Failure::failed)?, fs.statfs().blocks - before))
            }
            "scrub" => {
                let repairs = order["repair"] == true;
                let scrubbed =
                    fs.scrub_array(repairs, |done, all| task.tell(done, all)).await.map_err(Failure::failed)?;
                let found = scrub::document(fs, &self.paths.borrow(), &scrubbed)?;
                scrubs::note(fs, &scrubs::summary(&found)).await.map_err(Failure::failed)?;
                Ok(found)
            }
            "note-scrub" => {
                scrubs::note(fs, &order["found"]).await.map_err(Failure::failed)?;
                Ok(Value::Null)
            }
            "clean" => self.clean(fs, order["zones"].as_u64().unwrap_or(u64::MAX), task).await,
            other => {
                Err(Failure::failed(format!("there is no task '{other}'; the server may be older than this program")))
            }
        }
    }

    async fn clean(&self, fs: &Fs, zones: u64, task: &Task) -> Result<Value, Failure> {
        let before = fs.status();
        let mut emptied = 0;
        while emptied < zones && task.tell(emptied, zones.min(before.zones.len() as u64)) {
            if fs.clean(1).await.map_err(Failure::failed)? == 0 {
                break;
            }
            emptied += 1;
        }
        let after = fs.status();
        Ok(json!({
            "schema": "imbrex.fs-clean/1",
            "zones_emptied": emptied,
            "blocks_copied": after.counters.blocks_cleaned - before.counters.blocks_cleaned,
            "dead_blocks_before": before.usage.dead,
            "dead_blocks": after.usage.dead,
        }))
    }
}

/// Answers of the serving process to requests by extended attributes: status and orders.
pub(super) struct Serving(pub Rc<Orders>);

impl Answers for Serving {
    fn status(&self, fs: &Fs) -> String {
        let orders = &self.0;
        let mut document = status::document(fs, &orders.paths.borrow(), Some(&orders.directory));
        let displaced = orders.files.displaced().into_iter();
        document["devices_on_full_disks"] = json::paths(orders.files.on_full_disks());
        document["devices_displaced"] = displaced
            .map(|(path, placement)| json!({ "device": json::path(&path), "placement": placement.name() }))
            .collect();
        document["time_s"] = json!(fs.time_ns() / 1_000_000_000);
        document["task"] = orders.task.borrow().as_ref().map_or(Value::Null, |task| task.document());
        shorten::shortened(document, stat::ANSWER_BYTES_MAX).to_string()
    }

    fn outcome(&self, which: &[u8]) -> Option<Vec<u8>> {
        let (id, offset) = std::str::from_utf8(which).ok()?.rsplit_once('.')?;
        let task = self.0.task.borrow().clone().filter(|task| task.id == id)?;
        task.outcome_from(offset.parse().ok()?)
    }

    fn order(&self, fs: &Fs, words: &[u8]) -> Result<(), FsError> {
        let orders = &self.0;
        let order: Value = serde_json::from_slice(words).map_err(|_| FsError::Invalid("an order is JSON"))?;
        let is_long = |key: &str| order[key].as_str().is_some_and(|text| text.len() > NAME_BYTES_MAX);
        if is_long("id") || is_long("order") {
            return Err(FsError::Invalid("the name of an order is a word, and its identifier a UUID"));
        }
        let current = orders.task.borrow().clone();
        let running = current.filter(|task| task.outcome.borrow().is_none());
        match (order["order"].as_str(), running) {
            (Some("stop"), running) => {
                running.iter().filter(|task| order["id"] == json!(task.id)).for_each(|task| task.is_stopped.set(true));
                Ok(())
            }
            (Some(_), None) => {
                let task = orders.begin(fs, order);
                *orders.task.borrow_mut() = Some(task);
                Ok(())
            }
            (Some(_), Some(_)) => Err(FsError::Busy),
            (None, _) => Err(FsError::Invalid("an order says what is to be done")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: Result<Value, String>) -> Task {
        Task {
            id: Uuid::nil().to_string(),
            order: "scrub".into(),
            done: Cell::new(u64::MAX),
            all: Cell::new(u64::MAX),
            is_stopped: Cell::new(false),
            outcome: RefCell::new(Some(Outcome::of(outcome))),
        }
    }

    /// Reads all parts of the outcome of a task, as a command does.
    fn fetched(task: &Task) -> Value {
        let mut text = Vec::new();
        loop {
            let part = task.outcome_from(text.len()).expect("the task has ended");
            if part.is_empty() {
                break;
            }
            text.extend(part);
        }
        serde_json::from_slice(&text).expect("JSON")
    }

    #[test]
    fn the_outcome_of_a_task_is_whole_in_parts_and_short_in_the_status() {
        let lost: Vec<Value> = (0..5000).map(|at| json!({ "path": format!("/dir/fîle{at}"), "offset": at })).collect();
        let found = json!({ "is_whole": false, "lost": lost, "rows": 7 });
        let task = ended(Ok(found.clone()));
        assert_eq!(fetched(&task), found);
        assert_eq!(task.outcome_from(usize::MAX), Some(Vec::new()));
        let document = task.document();
        assert_eq!(document["summary"], json!({ "is_whole": false, "lost": 5000, "rows": 7 }));
        assert_eq!(document["state"], "done");
        let long = "ö".repeat(100_000);
        let failed = ended(Err(long.clone()));
        assert_eq!((fetched(&failed), &failed.document()["state"]), (json!(long), &json!("failed")));
    }
}
