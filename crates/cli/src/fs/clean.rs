//! `imbrex fs clean`.

use std::path::PathBuf;

use imbrex::Failure;
use serde_json::json;

use super::devices::{self, Purpose};
use super::{print, Offline};
use crate::error::ExitCode;
use crate::output;

/// Empties zones.
pub fn run(paths: &[PathBuf], zones: Option<u64>, as_json: bool) -> Result<ExitCode, Failure> {
    let Offline { clock, devices, fs, .. } = Offline::open(paths, Purpose::Work)?;
    let before = fs.status();
    let cleaner = fs.clone();
    let emptied = devices::run(&clock, async move { cleaner.clean(zones.unwrap_or(u64::MAX)).await })?;
    let ending = fs.clone();
    devices::run(&clock, async move { ending.unmount().await })?;
    devices.shut_down()?;
    let after = fs.status();
    let copied = after.counters.blocks_cleaned - before.counters.blocks_cleaned;
    if as_json {
        print(&json!({
            "schema": "imbrex.fs-clean/1",
            "zones_emptied": emptied,
            "blocks_copied": copied,
            "dead_blocks_before": before.usage.dead,
            "dead_blocks": after.usage.dead,
        }))?;
    } else {
        output::line(&format!("{emptied} zones emptied, {copied} live blocks copied out of them"))?;
    }
    Ok(ExitCode::Done)
}
