//! `imbrex fs sync`: makes all earlier writes to a mounted file system durable.
//!
//! Linux sends a FUSE server neither sync(2) nor syncfs(2) unless the file system is mounted from a block device or by
//! virtio-fs. So the command asks the serving process by an extended attribute of the directory.

use std::path::Path;

use imbrex::Failure;
use imbrex_fuse::SYNC_ATTRIBUTE;

use super::stat;
use crate::error::ExitCode;

/// Waits until all earlier writes are durable.
pub(super) fn run(directory: &Path) -> Result<ExitCode, Failure> {
    // Asked first for its error messages: `directory` may be another file system, or its server may be gone.
    stat::ask(directory)?;
    everything(directory, "it stays mounted")?;
    Ok(ExitCode::Done)
}

/// Makes all earlier writes durable on the file system mounted at `directory`. An error names the cause and the way to
/// save unwritten files; `state` is the part of the message about the mount.
pub(super) fn everything(directory: &Path, state: &str) -> Result<(), Failure> {
    let place = directory.display();
    let Err(error) = rustix::fs::getxattr(directory, SYNC_ATTRIBUTE, &mut [0u8; 16][..]) else { return Ok(()) };
    let status = stat::ask(directory).unwrap_or_default();
    let reason = status["unwritten"].as_str().map_or_else(|| error.to_string(), str::to_string);
    let failure = Failure::failed(format!("{place}: not everything can be written: {reason}; {state}"));
    if status["devices_on_full_disks"].as_array().is_some_and(|devices| !devices.is_empty()) {
        return Err(
            failure.or_try("free space on that disk: the waiting data are then written; then give the command again")
        );
    }
    Err(failure.or_try(format!(
        "fix that error, and try again; if that fails, copy the files changed last, which can be read while the file \
         system is mounted, then `kill -9 {}`, `imbrex fs umount {place}`, and mount again: data that were fsynced are \
         there, other new data may be lost",
        status["process"]
    )))
}
