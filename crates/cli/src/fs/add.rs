//! `imbrex fs add`: adds a drive, or a spare, to an array.

use std::path::{Path, PathBuf};

use imbrex::Failure;
use imbrex::human;
use imbrex_fs::device::BLOCK_BYTES;
use serde_json::{Value, json};
use uuid::Uuid;

use super::devices::{self, Purpose};
use super::{Offline, asking, replace};
use crate::consent::Consent;
use crate::error::ExitCode;
use crate::json;
use crate::output;

/// The drive that a command adds to an array.
pub(super) struct New<'a> {
    /// Path of the drive to add: an image, a block device or a file.
    pub path: &'a Path,
    /// Options `--force` and `--yes`: whether the contents of the drive may be lost, and whether to ask first.
    pub consent: Consent,
    /// Whether the drive is added as a spare, which replaces a drive of the array that fails.
    pub is_spare: bool,
}

/// Adds the drive.
pub(super) fn run(paths: &[PathBuf], new: &New<'_>, as_json: bool, quiet: bool) -> Result<ExitCode, Failure> {
    if let [directory] = paths
        && directory.is_dir()
    {
        let with = asking::device_for(directory, new.path)?;
        devices::ask_for(new.path, new.consent)?;
        let order = json!({ "order": "add", "with": with, "force": new.consent.force, "spare": new.is_spare });
        return tell(&asking::ask(directory, "adding", order, as_json || quiet)?, as_json);
    }
    let offline = Offline::open(paths, Purpose::Work)?;
    if let Some(known) = offline.devices.paths.iter().find(|path| devices::are_same(path, new.path)) {
        return Err(replace::there_already(&offline.fs, known));
    }
    let device = devices::open_new(&offline.executor, &[new.path], new.consent, |_| Ok(()))?.remove(0);
    let before = offline.fs.statfs().blocks;
    let (fs, added, force, is_spare) = (offline.fs.clone(), device.clone(), new.consent.force, new.is_spare);
    let adding = async move {
        let number = match is_spare {
            true => fs.add_spare(&added, Uuid::new_v4(), force).await.map(|()| None),
            false => fs.add_drive(&added, Uuid::new_v4(), force).await.map(Some),
        };
        fs.unmount().await?;
        number
    };
    let number = devices::run(&offline.executor, adding)?;
    offline.devices.shut_down()?;
    device.shut_down().map_err(|fault| Failure::failed(format!("{}: {fault}", device.name())))?;
    let blocks = offline.fs.statfs().blocks - before;
    tell(&document(new.path, number, blocks), as_json)
}

/// Returns the result as JSON. A spare has no number.
pub(super) fn document(path: &Path, number: Option<u8>, blocks: u64) -> Value {
    let bytes = blocks * BLOCK_BYTES as u64;
    json!({ "schema": "imbrex.fs-add/1", "drive": number, "spare": number.is_none(), "device": json::path(path), "bytes": bytes })
}

fn tell(done: &Value, as_json: bool) -> Result<ExitCode, Failure> {
    let place = done["device"].as_str().unwrap_or_default();
    if as_json {
        output::json(done)?;
    } else if let Some(number) = done["drive"].as_u64() {
        let bytes = human::bytes(done["bytes"].as_u64().unwrap_or(0));
        output::line(&format!("{place} is drive {number} of the array now: room for {bytes} more"));
    } else {
        output::line(&format!(
            "{place} is a spare now: it takes the place of a drive that fails while this is mounted"
        ));
    }
    Ok(ExitCode::Done)
}
