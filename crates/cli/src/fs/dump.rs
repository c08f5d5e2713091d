//! `imbrex fs dump`: prints the contents of the devices.

use std::path::PathBuf;

use imbrex::Failure;
use imbrex::human;
use imbrex_fs::format::change::Extent;
use imbrex_fs::format::hot_part::{HotPart, PART_FIRST};
use imbrex_fs::format::superblock::Superblock;
use serde_json::{Value, json};

use super::devices::Purpose;
use super::{Offline, Walked, walk};
use crate::error::ExitCode;
use crate::json;
use crate::output;

/// Prints superblock, checkpoint, and files with their extents.
pub(super) fn run(paths: &[PathBuf], as_json: bool) -> Result<ExitCode, Failure> {
    let offline = Offline::open(paths, Purpose::Look)?;
    let files = walk(&offline.fs)?;
    if as_json {
        let files: Result<Vec<Value>, Failure> = files.iter().map(|file| as_value(&offline, file)).collect();
        output::json(&json!({
            "schema": "imbrex.fs-dump/1",
            "devices": json::paths(&offline.devices.paths),
            "superblock": superblock(offline.fs.superblock()),
            "checkpoint": offline.mounted.checkpoint,
            "log_records": offline.mounted.records,
            "files": files?,
        }))?;
        return Ok(ExitCode::Done);
    }
    superblock_lines(offline.fs.superblock())?;
    let (checkpoint, records) = (offline.mounted.checkpoint, offline.mounted.records);
    output::line(&format!("checkpoint  number {checkpoint}, {records} records of the log behind it"));
    for file in &files {
        line(&offline, file)?;
    }
    Ok(ExitCode::Done)
}

fn as_value(offline: &Offline, file: &Walked) -> Result<Value, Failure> {
    let attr = offline.fs.attr(file.inode).map_err(Failure::failed)?;
    let extents = offline.fs.extents(file.inode).map_err(Failure::failed)?;
    let extent = |extent: &Extent| {
        let (start, is_hot) = place(offline, extent);
        json!({ "at": extent.at, "blocks": extent.blocks, "start": start, "hot_zone": is_hot })
    };
    Ok(json!({
        "path": json::path(&file.path),
        "inode": file.inode,
        "mode": format!("{:06o}", attr.attributes.mode),
        "uid": attr.attributes.uid,
        "gid": attr.attributes.gid,
        "links": attr.attributes.links,
        "size": attr.attributes.size,
        "modified_ns": attr.attributes.modified_ns,
        "extents": extents.iter().map(extent).collect::<Vec<_>>(),
    }))
}

/// Returns the first block of an extent, counted in the data or in the hot zone, and whether it lies in the hot zone.
fn place(offline: &Offline, extent: &Extent) -> (u64, bool) {
    let superblock = offline.fs.superblock();
    let is_hot = superblock.layout.hot.1 > 0 && extent.start >= superblock.hot_base();
    (extent.start - if is_hot { superblock.hot_base() } else { 0 }, is_hot)
}

fn superblock(superblock: &Superblock) -> Value {
    let layout = &superblock.layout;
    let member = |member: &imbrex_fs::format::superblock::Member| {
        json!({
            "uuid": member.uuid,
            "role": format!("{:?}", member.role).to_lowercase(),
            "kind": member.geometry.kind.name(),
            "blocks": member.geometry.blocks,
        })
    };
    json!({
        "uuid": superblock.uuid,
        "store": superblock.store,
        "options": superblock.options.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>(),
        "data": { "first": superblock.data.0, "blocks": superblock.data.1 },
        "metadata": { "first": layout.place.first, "blocks": layout.place.blocks },
        "checksums": { "first": layout.checksums.0, "blocks": layout.checksums.1 },
        "log": { "first": layout.log.0, "blocks": layout.log.1 },
        "hot_zone": { "first": layout.hot.0, "blocks": layout.hot.1 },
        "hot_drives": superblock.hot_parts.iter().map(|part| json!({
            "drive": part.drive,
            "first": PART_FIRST,
            "blocks": part.blocks,
        })).collect::<Vec<_>>(),
        "checkpoints": layout.checkpoints.map(|(first, blocks)| json!({ "first": first, "blocks": blocks })),
        "members": superblock.members.iter().map(member).collect::<Vec<_>>(),
    })
}

fn superblock_lines(superblock: &Superblock) -> Result<(), Failure> {
    let layout = &superblock.layout;
    let part =
        |name: &str, (first, blocks): (u64, u64)| output::line(&format!("{name:10}  {blocks} blocks from {first} on"));
    output::line(&format!("{:10}  {}", "uuid", superblock.uuid));
    output::line(&format!("{:10}  {}", "store", superblock.store));
    for (key, value) in &superblock.options {
        output::line(&format!("{:10}  {key}={value}", "option"));
    }
    for member in &superblock.members {
        let (role, kind) = (format!("{:?}", member.role).to_lowercase(), member.geometry.kind.name());
        output::line(&format!("{:10}  {role}, {kind}, {} blocks ({})", "device", member.geometry.blocks, member.uuid));
    }
    part("data", superblock.data);
    part("metadata", (layout.place.first, layout.place.blocks));
    output::line("in the metadata:");
    part("checksums", layout.checksums);
    part("log", layout.log);
    part("checkpoint", layout.checkpoints[0]);
    part("checkpoint", layout.checkpoints[1]);
    if layout.hot.1 > 0 {
        part("hot zone", layout.hot);
    }
    for part in &superblock.hot_parts {
        let HotPart { drive, blocks } = part;
        output::line(&format!(
            "{:10}  {blocks} blocks from {PART_FIRST} on of drive {drive}, as it was made",
            "hot zone"
        ));
    }
    Ok(())
}

fn line(offline: &Offline, file: &Walked) -> Result<(), Failure> {
    let attr = offline.fs.attr(file.inode).map_err(Failure::failed)?;
    let extents = offline.fs.extents(file.inode).map_err(Failure::failed)?;
    let words = |extent: &Extent| {
        let (start, is_hot) = place(offline, extent);
        format!("{}+{}@{}{start}", extent.at, extent.blocks, if is_hot { "hot:" } else { "" })
    };
    let places: Vec<String> = extents.iter().map(words).collect();
    let size = human::bytes(attr.attributes.size);
    let (inode, mode) = (file.inode, attr.attributes.mode);
    let words = format!("{inode:>8}  {mode:06o}  {size:>10}  {}  {}", file.path.display(), places.join(" "));
    output::line(words.trim_end());
    output::check()
}
