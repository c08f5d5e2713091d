//! `imbrex fs add`: an array gets a further drive.

use std::path::{Path, PathBuf};

use imbrex::human;
use imbrex::Failure;
use imbrex_fs::device::BLOCK_BYTES;
use serde_json::json;
use uuid::Uuid;

use super::devices::{self, Purpose};
use super::{print, Offline};
use crate::error::ExitCode;
use crate::output;

/// Adds the drive at `new`.
pub fn run(paths: &[PathBuf], new: &Path, force: bool, as_json: bool) -> Result<ExitCode, Failure> {
    let offline = Offline::open(paths, Purpose::Work)?;
    let device = devices::open(&offline.clock, new, Purpose::Work, false)?;
    let before = offline.fs.statfs().blocks;
    let (fs, added) = (offline.fs.clone(), device.clone());
    let adding = async move {
        let number = fs.add_drive(&added, Uuid::new_v4(), force).await?;
        fs.unmount().await?;
        Ok(number)
    };
    let number = devices::run(&offline.clock, adding)?;
    offline.devices.shut_down()?;
    device.shut_down().map_err(|fault| Failure::failed(format!("{}: {fault}", device.name())))?;
    let bytes = (offline.fs.statfs().blocks - before) * BLOCK_BYTES as u64;
    if as_json {
        print(&json!({ "schema": "imbrex.fs-add/1", "drive": number, "device": new, "bytes": bytes }))?;
    } else {
        let place = new.display();
        output::line(&format!("{place} is drive {number} of the array now: room for {} more", human::bytes(bytes)))?;
    }
    Ok(ExitCode::Done)
}
