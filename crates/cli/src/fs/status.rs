//! The state of a file system, mounted or not, as JSON and as text.

use std::path::{Path, PathBuf};

use imbrex::human;
use imbrex_fs::Fs;
use imbrex_fs::core::{PartStatus, Standing, Status};
use imbrex_fs::device::{BLOCK_BYTES, Traffic};
use imbrex_fs::hot::HotStatus;
use imbrex_fs::journal::mirror::State;
use serde_json::{Value, json};

use super::scrubs;
use crate::json;

/// Returns the status as JSON. `mounted_on` is the directory, if this process serves it.
pub(super) fn document(fs: &Fs, devices: &[PathBuf], mounted_on: Option<&Path>) -> Value {
    let (status, stat, superblock) = (fs.status(), fs.statfs(), fs.superblock());
    let usage = status.usage;
    let zones = status.zones.iter();
    let empty = zones.clone().filter(|(written, _)| *written == 0).count() as u64 + status.zones_unopened;
    let without_live = zones.filter(|(written, live)| *written > 0 && *live == 0).count();
    json!({
        "schema": "imbrex.fs-stat/1",
        "uuid": superblock.uuid,
        "store": status.store,
        "options": superblock.options.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
        "devices": json::paths(devices),
        "mounted_on": mounted_on.map(json::path),
        "process": mounted_on.map(|_| std::process::id()),
        "read_only": status.is_read_only,
        "block_bytes": BLOCK_BYTES,
        "blocks": usage.blocks,
        "live_blocks": usage.live,
        "dead_blocks": usage.dead,
        "free_blocks": stat.free,
        "unusable_blocks": usage.unusable,
        "free_runs": usage.free_runs,
        "longest_free_blocks": usage.longest,
        "files": status.files,
        "files_free": stat.files_free,
        "zones": status.zones.len() as u64 + status.zones_unopened,
        "zones_empty": empty,
        "zones_dead": without_live,
        "log_blocks": { "used": status.log.0, "all": status.log.1 },
        "checkpoint_bytes": { "used": status.checkpoint.0, "all": status.checkpoint.1 },
        "staged_bytes": status.staged_bytes,
        "unwritten": status.unwritten,
        "drives_missing": status.missing,
        "replacing": status.replacing.map(|(drive, replaced)| json!({
            "drive": drive,
            "groups": replaced.groups,
            "groups_in_all": replaced.groups_in_all,
        })),
        "spares": status.spares,
        "spares_missing": status.spares_missing,
        "last_scrub": scrubs::last(fs),
        "metadata_copies": status.copies.iter().map(copy).collect::<Vec<_>>(),
        "metadata_blocks_mended": status.mended_blocks,
        "array": array(&status),
        "hot_zone": hot_zone(&status),
        "since_mounted": since_mounted(&status),
    })
}

fn array(status: &Status) -> Value {
    json!({
        "padding_blocks": status.array.padding_blocks,
        "parity_blocks": status.array.parity_blocks,
        "degraded_rows": status.array.degraded_rows,
        "recovered_blocks": status.array.recovered_blocks,
    })
}

fn hot_zone(status: &Status) -> Value {
    let HotStatus { blocks, used, files, alone_files, alone_blocks, counters } = status.hot;
    json!({
        "blocks": blocks,
        "used_blocks": used,
        "files": files,
        "alone_files": alone_files,
        "alone_blocks": alone_blocks,
        "hits": counters.hits,
        "misses": counters.misses,
        "came_in": counters.came_in,
        "went_out": counters.went_out,
        "damaged": counters.damaged,
        "drives": status.hot_parts.iter().map(hot_part).collect::<Vec<_>>(),
    })
}

fn hot_part(part: &PartStatus) -> Value {
    let state = match part.standing {
        Standing::Used => "used",
        Standing::Read => "read",
        Standing::Doubted => "of another time",
        Standing::GivenUp => "not used",
    };
    json!({
        "drive": part.drive,
        "device": part.name,
        "blocks": part.blocks,
        "used_blocks": part.used,
        "state": state,
        "hits": part.hits,
    })
}

fn since_mounted(status: &Status) -> Value {
    json!({
        "files_written": status.counters.files_written,
        "checkpoints": status.counters.checkpoints,
        "record_units": status.usage.records.0,
        "record_blocks": status.usage.records.1,
        "names_left_out": status.counters.names_left_out,
        "throttled_ms": status.counters.throttled_ns / 1_000_000,
        "waited_ms": status.counters.waited_ns / 1_000_000,
        "blocks_cleaned": status.counters.blocks_cleaned,
        "zones_cleaned": status.counters.zones_cleaned,
        "files_moved": status.counters.files_moved,
        "damaged_blocks": status.counters.damaged_blocks,
        "data": traffic(&status.traffic),
        "metadata": traffic(&status.metadata_traffic),
    })
}

fn copy((number, device, state): &(usize, String, State)) -> Value {
    json!({ "copy": number, "device": device, "state": self::state(*state) })
}

/// Returns the state of a copy of the metadata in words.
pub(super) fn state(state: State) -> &'static str {
    match state {
        State::Current => "up to date",
        State::Outdated => "being brought up to date",
        State::Lost => "lost",
        State::Replaced => "replaced",
    }
}

/// Returns the errors since the mount in words; empty if there were none.
fn errors(document: &Value) -> String {
    let number = |key: &str| document.pointer(key).and_then(Value::as_u64).unwrap_or(0);
    let counted = [
        (number("/since_mounted/data/failures"), "of the drives"),
        (number("/since_mounted/metadata/failures"), "of the devices with metadata"),
        (number("/since_mounted/damaged_blocks"), "blocks that do not match their checksum"),
    ];
    let words: Vec<String> =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, of)| format!("{count} {of}")).collect();
    words.join(", ")
}

fn traffic(traffic: &Traffic) -> Value {
    json!({
        "reads": traffic.reads,
        "blocks_read": traffic.blocks_read,
        "writes": traffic.writes,
        "blocks_written": traffic.blocks_written,
        "flushes": traffic.flushes,
        "resets": traffic.resets,
        "failures": traffic.failures,
    })
}

/// Returns the parts of the hot zone on drives in words; empty if there are none.
fn hot_drives(document: &Value) -> String {
    let drives = document["hot_zone"]["drives"].as_array().cloned().unwrap_or_default();
    let words = |part: &Value| {
        let bytes = |key: &str| human::bytes(part[key].as_u64().unwrap_or(0) * BLOCK_BYTES as u64);
        let state = part["state"].as_str().filter(|state| *state != "used").map(|state| format!(", {state}"));
        let (used, all) = (bytes("used_blocks"), bytes("blocks"));
        format!("drive {}: {used} of {all}, {} reads{}", part["drive"], part["hits"], state.unwrap_or_default())
    };
    drives.iter().map(words).collect::<Vec<_>>().join("; ")
}

/// Returns the status as lines of a name and a value. Lines with an empty value are left out.
pub(super) fn lines(document: &Value) -> Vec<(&'static str, String)> {
    let number = |key: &str| document.pointer(key).and_then(Value::as_u64).unwrap_or(0);
    let word = |key: &str| document.pointer(key).and_then(Value::as_str).unwrap_or("–").to_string();
    let blocks = |key: &str| human::bytes(number(key) * BLOCK_BYTES as u64);
    let words = |key: &str| {
        let list = document[key].as_array().cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    };
    let is_shortened = document["shortened"] == true;
    let mut lines = vec![
        (
            "shortened",
            if is_shortened { "long texts and lists: the status is at most 64 KiB".into() } else { "".into() },
        ),
        ("uuid", word("/uuid")),
        ("store", word("/store")),
        ("options", words("options")),
        ("devices", words("devices")),
        ("mounted on", word("/mounted_on")),
        ("room for data", blocks("/blocks")),
        ("live", blocks("/live_blocks")),
        ("dead", blocks("/dead_blocks")),
        ("free", blocks("/free_blocks")),
        ("free but unusable", blocks("/unusable_blocks")),
        ("longest free run", blocks("/longest_free_blocks")),
        ("files", format!("{}, room for {} more", number("/files"), number("/files_free"))),
    ];
    if number("/zones") > 0 {
        let (all, empty, dead) = (number("/zones"), number("/zones_empty"), number("/zones_dead"));
        lines.push(("zones", format!("{all}, {empty} empty, {dead} with nothing live")));
    }
    let missing = document["drives_missing"].as_array().cloned().unwrap_or_default();
    let missing: Vec<String> = missing.iter().map(Value::to_string).collect();
    lines.push(("drives missing", missing.join(", ")));
    lines.push(("spares", words("spares")));
    lines.push(("spares missing", words("spares_missing")));
    lines.push(("last scrub", scrubs::words(&document["last_scrub"], document["time_s"].as_i64().unwrap_or(0))));
    lines.push(("errors", errors(document)));
    let displaced = document["devices_displaced"].as_array().into_iter().flatten().map(|device| {
        let text = |key: &str| device[key].as_str().unwrap_or_default();
        format!("{} was {} while it is in use", text("device"), text("placement"))
    });
    lines.push(("lost their path", displaced.collect::<Vec<_>>().join("; ")));
    let full = document["devices_on_full_disks"].as_array().into_iter().flatten().filter_map(|device| device.as_str());
    lines.push(("the disk is full of", full.collect::<Vec<_>>().join(", ")));
    let replacing = document["replacing"]
        .as_object()
        .map(|it| format!("drive {}: {} of {} stripe groups", it["drive"], it["groups"], it["groups_in_all"]));
    lines.push(("being replaced", replacing.unwrap_or_default()));
    let copies = document["metadata_copies"].as_array().filter(|copies| copies.len() > 1);
    let copies = copies.into_iter().flatten().map(|copy| {
        let text = |key: &str| copy[key].as_str().unwrap_or_default();
        format!("{} on {}: {}", copy["copy"], text("device"), text("state"))
    });
    lines.push(("copies of metadata", copies.collect::<Vec<_>>().join("; ")));
    let task = document["task"].as_object().filter(|task| task["state"] == "running");
    let task =
        task.map(|task| format!("{}: {} of {}", task["order"].as_str().unwrap_or_default(), task["done"], task["all"]));
    lines.push(("task", task.unwrap_or_default()));
    let mended = number("/array/recovered_blocks");
    lines.push(("made right by parity", if mended > 0 { format!("{mended} blocks") } else { String::new() }));
    let bytes = |key: &str| human::bytes(number(key));
    lines.extend([
        ("log", format!("{} of {} blocks", number("/log_blocks/used"), number("/log_blocks/all"))),
        ("checkpoint", format!("{} of {}", bytes("/checkpoint_bytes/used"), bytes("/checkpoint_bytes/all"))),
        ("not yet written", bytes("/staged_bytes")),
        ("cannot be written", document["unwritten"].as_str().unwrap_or_default().to_string()),
        (
            "cleaned",
            format!(
                "{} zones, {} copied",
                number("/since_mounted/zones_cleaned"),
                blocks("/since_mounted/blocks_cleaned")
            ),
        ),
    ]);
    if number("/hot_zone/blocks") > 0 {
        let (hits, misses) = (number("/hot_zone/hits"), number("/hot_zone/misses"));
        let (used, all) = (blocks("/hot_zone/used_blocks"), blocks("/hot_zone/blocks"));
        let alone = number("/hot_zone/alone_files");
        let copies = number("/hot_zone/files") - alone;
        let of_alone = format!("{alone} {} alone", if alone == 1 { "file" } else { "files" });
        let of_copies = match copies {
            1 => "copy of 1 file".to_string(),
            _ => format!("copies of {copies} files"),
        };
        let files = match (alone, copies) {
            (0, _) => of_copies,
            (_, 0) => of_alone,
            _ => format!("{of_alone}, {of_copies}"),
        };
        let damaged = number("/hot_zone/damaged");
        let damaged =
            if damaged > 0 { format!("; {damaged} times something there was damaged") } else { String::new() };
        lines.push(("hot zone", format!("{used} of {all}, {files}; {hits} of {} reads{damaged}", hits + misses)));
        lines.push(("hot zone by drive", hot_drives(document)));
    }
    let (slowed, waited) = (number("/since_mounted/throttled_ms"), number("/since_mounted/waited_ms"));
    if slowed + waited > 0 {
        lines.push(("writers slowed down", format!("{slowed} ms; {waited} ms waiting for zones")));
    }
    let units = number("/since_mounted/record_units");
    if units > 0 {
        let (blocks, left_out) = (blocks("/since_mounted/record_blocks"), number("/since_mounted/names_left_out"));
        let without = if left_out > 0 { format!(", {left_out} without a name") } else { String::new() };
        lines.push(("records with data", format!("{units} units{without}, for which {blocks} were written")));
    }
    lines.retain(|(_, value)| !value.is_empty());
    lines
}
