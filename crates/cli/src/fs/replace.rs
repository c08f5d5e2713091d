//! `imbrex fs replace`: a drive of an array leaves, and another comes in its place.

use std::path::{Path, PathBuf};

use imbrex::{Failure, Progress};
use imbrex_fs::core::Replaced;
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::{Device, FsError};
use serde_json::json;
use uuid::Uuid;

use super::devices::{self, Purpose};
use super::{print, Offline};
use crate::error::ExitCode;
use crate::output;

/// The drive that comes.
pub struct New<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// Whether what it holds may be lost.
    pub force: bool,
}

/// Puts `new` in the place of drive `drive`.
pub fn run(
    paths: &[PathBuf],
    drive: Option<u8>,
    new: &New<'_>,
    as_json: bool,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    let given: Vec<PathBuf> = paths.iter().filter(|path| *path != new.path).cloned().collect();
    let offline = Offline::open(&given, Purpose::Work)?;
    let number = which(&offline, drive)?;
    // Where it was begun before, the new drive is one of the array, and open already.
    let is_there = offline.devices.paths.iter().any(|path| path.file_name() == new.path.file_name());
    let device = if is_there { None } else { Some(devices::open(&offline.clock, new.path, Purpose::Work, false)?) };
    let progress = Progress::on_terminal(as_json || quiet);
    let bar = progress.steps("rebuilding");
    let (fs, taken, force) = (offline.fs.clone(), device.clone(), new.force);
    let rebuilding = async move {
        let named = taken.as_ref().map(|device: &Device| (device, Uuid::new_v4()));
        let told = |replaced: Replaced| {
            bar.set_length(replaced.groups_in_all);
            bar.set_position(replaced.groups);
        };
        let outcome = fs.replace_drive(number, named, force, told).await;
        bar.finish_and_clear();
        let ended = fs.unmount().await;
        let replaced: Result<Replaced, FsError> = outcome.and_then(|replaced| ended.map(|()| replaced));
        replaced
    };
    let replaced = devices::run(&offline.clock, rebuilding)?;
    offline.devices.shut_down()?;
    if let Some(device) = device {
        device.shut_down().map_err(|fault| Failure::failed(format!("{}: {fault}", device.name())))?;
    }
    let bytes = replaced.blocks * BLOCK_BYTES as u64;
    if as_json {
        print(&json!({
            "schema": "imbrex.fs-replace/1",
            "drive": number,
            "with": new.path,
            "groups": replaced.groups,
            "bytes": bytes,
        }))?;
    } else {
        output::line(&format!(
            "drive {number} is replaced by {}: {} rebuilt in {} stripe groups",
            new.path.display(),
            imbrex::human::bytes(bytes),
            replaced.groups
        ))?;
    }
    Ok(ExitCode::Done)
}

/// The drive that is to leave: the one that is said, or the only one that is missing.
fn which(offline: &Offline, drive: Option<u8>) -> Result<u8, Failure> {
    let missing = offline.fs.status().missing;
    match (drive, missing.as_slice()) {
        (Some(number), _) => Ok(number),
        (None, [number]) => Ok(*number),
        (None, []) => {
            Err(Failure::failed("no drive of the array is missing").or_try("--drive NUMBER: the one to replace"))
        }
        (None, several) => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Failure::failed(format!("drives {} are missing", several.join(" and ")))
                .or_try("--drive NUMBER: the one to replace first"))
        }
    }
}
