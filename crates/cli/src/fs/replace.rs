//! `imbrex fs replace`: replaces a drive of an array, or a copy of the metadata.

use std::path::{Path, PathBuf};

use imbrex::{Failure, Progress};
use imbrex_fs::core::Replaced;
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::{Device, Fs, FsError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::devices::{self, Purpose};
use super::{Offline, asking};
use crate::consent::Consent;
use crate::error::ExitCode;
use crate::interrupt;
use crate::json;
use crate::output;

/// The drive that replaces another one.
pub(super) struct New<'a> {
    /// Path of the replacing drive: an image, a block device or a file.
    pub path: &'a Path,
    /// Options `--force` and `--yes`: whether the contents of the drive may be lost, and whether to ask first.
    pub consent: Consent,
}

/// Replaces drive `drive` by `new`.
pub(super) fn run(
    paths: &[PathBuf],
    drive: Option<u8>,
    new: &New<'_>,
    as_json: bool,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    if let Some(directory) = mounted(paths) {
        let with = asking::device_for(directory, new.path)?;
        devices::ask_for(new.path, new.consent)?;
        let order = json!({ "order": "replace", "drive": drive, "with": with, "force": new.consent.force });
        return tell(&asking::ask(directory, "rebuilding", order, as_json || quiet)?, as_json);
    }
    let offline = open(paths, new)?;
    let number = which(&offline.fs.status().missing, drive)?;
    let known = offline.devices.paths.iter().find(|path| devices::are_same(path, new.path));
    let device = match known {
        Some(known) => goes_on_with(&offline.fs, number, known).map(|()| None)?,
        None => Some(devices::open_new(&offline.executor, &[new.path], new.consent, |_| Ok(()))?.remove(0)),
    };
    let progress = Progress::on_terminal(as_json || quiet);
    let bar = progress.steps("rebuilding");
    let (fs, taken, force) = (offline.fs.clone(), device.clone(), new.consent.force);
    let rebuilding = async move {
        let named = taken.as_ref().map(|device: &Device| (device, Uuid::new_v4()));
        let told = |replaced: Replaced| {
            bar.set_length(replaced.groups_in_all);
            bar.set_position(replaced.groups);
            !interrupt::requested()
        };
        let outcome = fs.replace_drive(number, named, force, told).await;
        bar.finish_and_clear();
        let ended = fs.unmount().await;
        let replaced: Result<Replaced, FsError> = outcome.and_then(|replaced| ended.map(|()| replaced));
        replaced
    };
    let replaced = devices::run(&offline.executor, rebuilding)?;
    end(&offline, device.as_ref())?;
    tell(&document(number, new.path, replaced), as_json)
}

/// Replaces copy `copy` of the metadata by `new`.
pub(super) fn run_copy(
    paths: &[PathBuf],
    copy: usize,
    new: &New<'_>,
    as_json: bool,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    if let Some(directory) = mounted(paths) {
        let with = asking::device_for(directory, new.path)?;
        devices::ask_for(new.path, new.consent)?;
        let order = json!({ "order": "copy", "copy": copy, "with": with, "force": new.consent.force });
        return tell(&asking::ask(directory, "copying", order, as_json || quiet)?, as_json);
    }
    let offline = open(paths, new)?;
    if let Some(known) = offline.devices.paths.iter().find(|path| devices::are_same(path, new.path)) {
        return Err(there_already(&offline.fs, known));
    }
    let device = devices::open_new(&offline.executor, &[new.path], new.consent, |_| Ok(()))?.remove(0);
    let bar = Progress::on_terminal(as_json || quiet).steps("copying");
    let (fs, taken, force) = (offline.fs.clone(), device.clone(), new.consent.force);
    let copying = async move {
        let told = |done, all| {
            bar.set_length(all);
            bar.set_position(done);
            !interrupt::requested()
        };
        let outcome = fs.replace_copy(copy, (&taken, Uuid::new_v4()), force, told).await;
        bar.finish_and_clear();
        let ended = fs.unmount().await;
        outcome.and_then(|blocks| ended.map(|()| blocks))
    };
    let blocks = devices::run(&offline.executor, copying)?;
    end(&offline, Some(&device))?;
    tell(&document_of_copy(copy, new.path, blocks), as_json)
}

/// Returns the directory if `paths` is one directory, and not devices.
fn mounted(paths: &[PathBuf]) -> Option<&Path> {
    match paths {
        [directory] if directory.is_dir() => Some(directory),
        _ => None,
    }
}

fn open(paths: &[PathBuf], new: &New<'_>) -> Result<Offline, Failure> {
    let given: Vec<PathBuf> = paths.iter().filter(|path| *path != new.path).cloned().collect();
    Offline::open(&given, Purpose::Work)
}

fn end(offline: &Offline, new: Option<&Device>) -> Result<(), Failure> {
    offline.devices.shut_down()?;
    match new {
        Some(new) => new.shut_down().map_err(|fault| Failure::failed(format!("{}: {fault}", new.name()))),
        None => Ok(()),
    }
}

/// Returns the result of the replacement of a drive as JSON.
pub(super) fn document(drive: u8, with: &Path, replaced: Replaced) -> Value {
    json!({
        "schema": "imbrex.fs-replace/1",
        "drive": drive,
        "with": json::path(with),
        "groups": replaced.groups,
        "bytes": replaced.blocks * BLOCK_BYTES as u64,
    })
}

/// Returns the result of the replacement of a copy of the metadata as JSON.
pub(super) fn document_of_copy(copy: usize, with: &Path, blocks: u64) -> Value {
    let bytes = blocks * BLOCK_BYTES as u64;
    json!({ "schema": "imbrex.fs-replace/1", "copy": copy, "with": json::path(with), "bytes": bytes })
}

fn tell(done: &Value, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        output::json(done)?;
        return Ok(ExitCode::Done);
    }
    let (with, bytes) = (done["with"].as_str().unwrap_or_default(), done["bytes"].as_u64().unwrap_or(0));
    let bytes = imbrex::human::bytes(bytes);
    output::line(&match done["copy"].as_u64() {
        Some(copy) => format!("copy {copy} of the metadata is on {with} now: {bytes} copied"),
        None => {
            let (drive, groups) = (&done["drive"], &done["groups"]);
            format!("drive {drive} is replaced by {with}: {bytes} rebuilt in {groups} stripe groups")
        }
    });
    Ok(ExitCode::Done)
}

/// Fails unless the device at `known`, which is open already, is the one whose replacement of drive `drive` was
/// interrupted.
pub(super) fn goes_on_with(fs: &Fs, drive: u8, known: &Path) -> Result<(), Failure> {
    if fs.is_replacing(drive, &known.display().to_string()) {
        return Ok(());
    }
    Err(there_already(fs, known))
}

/// Returns the failure for a new device at `known` that is open already, as a part of the file system.
pub(super) fn there_already(fs: &Fs, known: &Path) -> Failure {
    let place = known.display();
    match fs.role_of(&place.to_string()) {
        Some(role) => Failure::failed(format!("{place} is {role} already")).or_try("another device"),
        None => Failure::failed(format!("{place} belongs to this file system, and another is in its place"))
            .or_try("unmount, put it elsewhere, mount without it; then it can be given with --force"),
    }
}

/// Returns the number of the drive to replace: `drive` if it is given, or else the only one of `missing`.
pub(super) fn which(missing: &[u8], drive: Option<u8>) -> Result<u8, Failure> {
    match (drive, missing) {
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
