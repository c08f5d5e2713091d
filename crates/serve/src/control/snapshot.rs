//! `snapshot`: takes a consistent copy of the served image.
//!
//! The volatile cache is flushed first, as by a client's flush. So the copy has every write that was acknowledged
//! before the request arrived. Of later writes it has those that would survive a power cut. Other requests wait only
//! during the last step of the copying.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use imbrex_device::media::host_file::HostFile;
use imbrex_device::snapshot::{Hold, Snapshot, SnapshotError, of_host_file};
use imbrex_device::{DeviceError, Io, IoKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::{Phase, Refusal, Served, Verb};
use crate::drive_server::DriveServer;

pub(super) const VERB: Verb = Verb {
    name: "snapshot",
    summary: "copy the image, consistent, to the path `to`",
    keys: &["to", "image", "device", "inode"],
    perform,
};

fn perform(served: &Served, request: &Value, asker: &UnixStream) -> Result<Value, Refusal> {
    let front = &served.observed.front;
    let to = request["to"].as_str().map(Path::new).filter(|to| to.is_absolute());
    let to = to.ok_or_else(|| Refusal::new("malformed", "snapshot has a path 'to' that begins with '/'"))?;
    let image = front.host_file().ok_or_else(|| {
        Refusal::new("no-image", "this server serves a drive in memory: there is no image to be copied")
    })?;
    check_image(image, request)?;
    let _claim = Claim::take(served)?;
    let snapshot = of_host_file(image, to, &Held(front), &mut |done, all| {
        let mut state = served.lock();
        state.snapshot = Some((done, all));
        state.phase == Phase::Serving && !has_left(asker)
    });
    let Snapshot { bytes, method, pause, uuid, snapshot } = snapshot.map_err(|error| refusal(served, &error))?;
    Ok(json!({
        "image": image.path().to_string_lossy(),
        "copy": to,
        "method": method.name(),
        "copied_bytes": bytes,
        "pause_ns": u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX),
        "uuid": uuid,
        "snapshot_uuid": snapshot,
    }))
}

/// Refuses a request that names another image. An image that was renamed is still recognized by its device and inode number.
fn check_image(image: &HostFile, request: &Value) -> Result<(), Refusal> {
    let identity = image.identity();
    let is_path = request["image"].as_str().is_none_or(|path| Path::new(path) == image.path());
    let number = |key: &str| request[key].as_u64();
    let is_file = match (number("device"), number("inode")) {
        (None, None) => is_path,
        numbers => numbers == (Some(identity.device), Some(identity.inode)),
    };
    if is_path || is_file {
        return Ok(());
    }
    Err(Refusal::new("other-image", format!("this server serves {}, another image", image.path().display())))
}

/// The permission to take a snapshot; there is one at a time.
struct Claim<'a>(&'a Served);

impl Claim<'_> {
    fn take(served: &Served) -> Result<Claim<'_>, Refusal> {
        let mut state = served.lock();
        if state.phase != Phase::Serving {
            return Err(Refusal::new("ending", "the server is ending"));
        }
        if state.snapshot.is_some() {
            return Err(Refusal::new("busy", "another snapshot of this drive is being taken"));
        }
        state.snapshot = Some((0, 0));
        Ok(Claim(served))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.lock().snapshot = None;
        self.0.changed.notify_all();
    }
}

/// Returns whether the client has closed the connection. A client that only shuts down its sending side has not.
fn has_left(asker: &UnixStream) -> bool {
    let mut asked = [PollFd::new(asker, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&at_once)).is_ok() && asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

fn refusal(served: &Served, error: &SnapshotError) -> Refusal {
    let code = match error {
        SnapshotError::Exists(_) => "exists",
        SnapshotError::Target { .. } => "target",
        SnapshotError::NoSpace(_) => "no-space",
        SnapshotError::Interrupted if served.lock().phase != Phase::Serving => "ending",
        SnapshotError::Interrupted => "interrupted",
        SnapshotError::Image(_) => "image",
    };
    Refusal::new(code, error.to_string())
}

/// Stops a served drive from changing during the last step of a snapshot.
struct Held<'a>(&'a DriveServer);

impl Hold for Held<'_> {
    fn hold(&self, last_step: &mut dyn FnMut() -> Result<(), SnapshotError>) -> Result<Duration, SnapshotError> {
        if !self.0.facts().read_only {
            let flush = Io { kind: IoKind::Flush, offset: 0, length: 0, buffer: Vec::new() };
            self.0.ask(flush).outcome?;
        }
        self.0.with(|drive, _| {
            if let Some(reason) = drive.store_mut().stopped() {
                return Err(DeviceError::Stopped(reason.into()).into());
            }
            let begun = Instant::now();
            last_step()?;
            Ok(begun.elapsed())
        })
    }
}
