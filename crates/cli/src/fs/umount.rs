//! `imbrex fs umount`: unmounts a directory, and returns when the serving process has written everything and ended.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use imbrex::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use super::{stat, sync};
use crate::error::ExitCode;

/// Time for which an unmount of a busy directory is retried: a program that has just ended, or was just started, may
/// hold a file open a moment longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time after which a message says that the server process still writes.
const LONG: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Unmounts the directory.
pub(super) fn run(directory: &Path, quiet: bool) -> Result<ExitCode, Failure> {
    let place = directory.display();
    if is_abandoned(directory) {
        return clear(directory, quiet);
    }
    std::fs::metadata(directory).map_err(|error| Failure::failed(format!("{place}: {error}")))?;
    let status = stat::ask(directory)?;
    let process = status["process"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let server = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // Unwritable data is reported before the unmount, while the directory can still be read.
    sync::everything(directory, "it is still mounted")?;
    let_go(directory)?;
    if let Some(server) = server {
        wait_for_end(&server, directory, &status)
            .map_err(|error| Failure::failed(format!("waiting for the process that serves: {error}")))?;
    }
    if !quiet {
        message!("{place} is unmounted: everything is written");
    }
    Ok(ExitCode::Done)
}

/// Waits until the server process has ended. After [`LONG`] it prints a message that a full disk may be the cause.
fn wait_for_end(server: &OwnedFd, directory: &Path, status: &Value) -> Result<(), Errno> {
    let has_ended = |timeout: Option<&Timespec>| poll(&mut [PollFd::new(server, PollFlags::IN)], timeout);
    if has_ended(Some(&LONG))? > 0 {
        return Ok(());
    }
    message!(
        "{}: process {} is still writing data. If the disk that holds a device is full, it waits for space there",
        directory.display(),
        status["process"]
    );
    has_ended(None).map(drop)
}

/// Returns whether the process that served a mount on `directory` is gone. Attributes do not show that: the kernel
/// caches them.
pub(super) fn is_abandoned(directory: &Path) -> bool {
    matches!(rustix::fs::statfs(directory), Err(Errno::NOTCONN))
}

/// Unmounts a directory whose serving process is gone.
pub(super) fn clear(directory: &Path, quiet: bool) -> Result<ExitCode, Failure> {
    let_go(directory)?;
    if !quiet {
        message!(
            "{} was served by a process that is gone; it is unmounted. Data that were fsynced are there when it is \
             mounted again",
            directory.display()
        );
    }
    Ok(ExitCode::Done)
}

/// Unmounts the directory. While files in it are open, it retries for [`PATIENCE`].
fn let_go(directory: &Path) -> Result<(), Failure> {
    let (place, since) = (directory.display(), Instant::now());
    let outcome = loop {
        match unmount(directory, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) if since.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 50),
            outcome => break outcome,
        }
    };
    match outcome {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(Failure::failed(format!("{place} is in use"))
            .or_try(format!("close its files and leave its directories; `fuser -vm {place}` lists the processes"))),
        Err(Errno::PERM) => by_helper(directory),
        Err(error) => Err(Failure::failed(format!("{place}: {error}"))),
    }
}

/// Unmounts by fusermount3, which may do so for users other than root.
fn by_helper(directory: &Path) -> Result<(), Failure> {
    let place = directory.display();
    let output = Command::new("fusermount3").arg("-u").arg("--").arg(directory).output();
    let output = output.map_err(|error| Failure::failed(format!("{place}: fusermount3: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Failure::failed(format!("{place}: {}", words.trim())))
}
