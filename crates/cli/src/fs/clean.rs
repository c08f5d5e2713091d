//! `imbrex fs clean`: empties zones with dead blocks.

use std::path::PathBuf;

use imbrex::Failure;
use serde_json::{Value, json};

use super::devices::{self, Purpose};
use super::{Offline, asking};
use crate::error::ExitCode;
use crate::output;

/// Empties up to `zones` zones, all that free space by default.
pub(super) fn run(paths: &[PathBuf], zones: Option<u64>, as_json: bool, quiet: bool) -> Result<ExitCode, Failure> {
    if let [directory] = paths
        && directory.is_dir()
    {
        let order = json!({ "order": "clean", "zones": zones });
        let outcome = asking::ask(directory, "cleaning", order, as_json || quiet)?;
        return tell(&outcome, as_json);
    }
    let Offline { executor, devices, fs, .. } = Offline::open(paths, Purpose::Work)?;
    let before = fs.status();
    let cleaner = fs.clone();
    let emptied = devices::run(&executor, async move { cleaner.clean(zones.unwrap_or(u64::MAX)).await })?;
    let ending = fs.clone();
    devices::run(&executor, async move { ending.unmount().await })?;
    devices.shut_down()?;
    let after = fs.status();
    let copied = after.counters.blocks_cleaned - before.counters.blocks_cleaned;
    let outcome = json!({
        "schema": "imbrex.fs-clean/1",
        "zones_emptied": emptied,
        "blocks_copied": copied,
        "dead_blocks_before": before.usage.dead,
        "dead_blocks": after.usage.dead,
    });
    tell(&outcome, as_json)
}

fn tell(outcome: &Value, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        output::json(outcome)?;
    } else {
        let (emptied, copied) = (&outcome["zones_emptied"], &outcome["blocks_copied"]);
        output::line(&format!("{emptied} zones emptied, {copied} live blocks copied out of them"));
    }
    Ok(ExitCode::Done)
}
