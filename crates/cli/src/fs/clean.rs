//! `imbrex fs clean`: empties zones with dead blocks.

use std::path::PathBuf;

use imbrex::{Failure, Progress};
use serde_json::{Value, json};

use super::devices::{self, Purpose};
use super::{Offline, asking};
use crate::error::ExitCode;
use crate::interrupt;
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
    let wanted = zones.unwrap_or(u64::MAX);
    let bar = Progress::on_terminal(as_json || quiet).steps("cleaning");
    bar.set_length(wanted.min(before.zones.len() as u64));
    let mut emptied = 0;
    // Ctrl-C ends the cleaning between two zones; the zones that are empty stay so.
    while emptied < wanted && !interrupt::requested() {
        let cleaner = fs.clone();
        if devices::run(&executor, async move { cleaner.clean(1).await })? == 0 {
            break;
        }
        emptied += 1;
        bar.set_position(emptied);
    }
    bar.finish_and_clear();
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
