//! `imbrex fs upgrade`: converts a file system of an older format to this format, in place.
//!
//! The conversion is a mount that may convert, a checkpoint, and a clean unmount. Blocks of older formats mean the same
//! in the new one, so the first superblock of the new format commits the upgrade. A kill before or after that
//! superblock is written leaves an intact file system.

use std::path::PathBuf;

use imbrex::Failure;
use imbrex_fs::core::look;
use imbrex_fs::format::superblock::FORMAT;
use imbrex_fs::{Executor, Fs, MountOptions};
use serde_json::json;

use super::devices::{self, Devices, Purpose};
use super::tell_missing;
use crate::error::ExitCode;
use crate::json;
use crate::output;

/// Converts the file system on the devices.
pub(super) fn run(paths: &[PathBuf], as_json: bool) -> Result<ExitCode, Failure> {
    let executor = Executor::in_virtual_time();
    let from = format_of(&executor, paths)?;
    let devices = Devices::open(&executor, paths, Purpose::Work, false)?;
    let options = MountOptions { upgrades: true, epoch_ns: devices::now_ns(), ..MountOptions::default() };
    let (inner, members) = (executor.clone(), devices.all.clone());
    let converting = async move {
        let (fs, mounted) = Fs::mount(&inner, &members, &options).await?;
        fs.unmount().await?;
        Ok((fs.superblock().uuid, mounted))
    };
    let (uuid, mounted) = devices::run(&executor, converting)?;
    devices.shut_down()?;
    tell_missing(&mounted);
    if as_json {
        output::json(&json!({
            "schema": "imbrex.fs-upgrade/1",
            "devices": json::paths(&devices.paths),
            "uuid": uuid,
            "from_format": from,
            "format": FORMAT,
        }))?;
    } else {
        output::line(&format!("{}: converted from format {from} to format {FORMAT}", paths[0].display()));
    }
    Ok(ExitCode::Done)
}

/// Returns the format of the metadata; an error if it is this program's own, or if the device with the metadata is
/// missing.
fn format_of(executor: &Executor, paths: &[PathBuf]) -> Result<u32, Failure> {
    let devices = Devices::open(executor, paths, Purpose::Look, false)?;
    let (mut format, mut generation) = (None, 0);
    for device in devices.all {
        let Ok(found) = devices::run(executor, async move { look(&device).await }) else { continue };
        if found.slot().is_some() && found.standing.generation >= generation {
            (format, generation) = (Some(found.format), found.standing.generation);
        }
    }
    executor.shut_down();
    let place = paths[0].display();
    match format {
        Some(FORMAT) => Err(Failure::failed(format!("{place}: has format {FORMAT} already"))),
        Some(format) => Ok(format),
        None => Err(Failure::failed(format!("{place}: the device with its metadata is missing: give it too"))),
    }
}
