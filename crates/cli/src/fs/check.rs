//! `imbrex fs check`: reads everything and changes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use imbrex::Failure;
use imbrex::Progress;
use imbrex_fs::core::{has_unknown_format, look};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::superblock::{Role, Superblock};
use imbrex_fs::{Executor, Fs, FsError};
use serde_json::{Value, json};

use super::devices::{self, Devices, Purpose};
use super::{Offline, stored_pieces, tell_missing, walk};
use crate::error::ExitCode;
use crate::json;
use crate::output;

/// Bytes that are read at once.
const PIECE_BYTES: u64 = 1 << 20;
const REGULAR: u32 = 0o100_000;

/// One damage that a check of a file system found.
pub(super) struct Finding {
    /// Kind of the damage, as one word for the JSON output.
    pub kind: &'static str,
    /// Description of the damage and its place, for people.
    pub text: String,
    /// Path of the damaged file within the file system; `None` if the damage belongs to no known file.
    pub path: Option<PathBuf>,
}

/// Result of a check of a file system: the amount that was read, and the damage found.
#[derive(Default)]
pub(super) struct Checked {
    /// UUID of the file system; `None` if no superblock could be read.
    pub uuid: Option<uuid::Uuid>,
    /// Number of files that were read; one with several names (hard links) counts once. A check of devices also counts
    /// directories and symbolic links; a scrub of a mounted directory counts only regular files.
    pub files: u64,
    /// Number of bytes of the regular files that were read. A check of devices leaves out holes; a scrub of a mounted
    /// directory counts the whole file sizes.
    pub bytes: u64,
    /// Damage that was found, in the order of its discovery; empty if there is none.
    pub findings: Vec<Finding>,
    /// Number of files and directories that could not be opened, and so were not checked. Only a scrub of a mounted
    /// directory counts them; otherwise 0.
    pub unread: u64,
}

/// Checks the file system. Prints the damage on standard output and returns [`ExitCode::Damage`] if there is any.
pub(super) fn run(paths: &[PathBuf], as_json: bool) -> Result<ExitCode, Failure> {
    let mut checked = Checked::default();
    let executor = Executor::in_virtual_time();
    let looks = look_at(&executor, paths)?;
    if looks.told.is_some() {
        let devices = Devices::open(&executor, paths, Purpose::Look, false)?;
        check(executor, devices, looks, &mut checked, as_json)?;
    } else {
        checked.findings = looks.damaged;
    }
    tell(paths, &checked, as_json)?;
    Ok(if checked.findings.is_empty() { ExitCode::Done } else { ExitCode::Damage })
}

/// Results of reading the superblocks of the devices.
#[derive(Default)]
struct Looks {
    /// Damaged superblocks of file systems of this program.
    damaged: Vec<Finding>,
    /// Error messages of the devices without a superblock of this program.
    strangers: Vec<String>,
    /// The first device with a valid superblock, and the UUID of its file system. Without one the check ends here.
    told: Option<(String, uuid::Uuid)>,
}

/// Reads the superblocks of the devices.
///
/// # Errors
/// The devices belong to different file systems, one has a superblock of a format that this program does not know, or no
/// device has a superblock, not even a damaged one.
fn look_at(executor: &Executor, paths: &[PathBuf]) -> Result<Looks, Failure> {
    let mut looks = Looks::default();
    for path in paths {
        let device = devices::open(executor, path, Purpose::Look, false)?;
        let place = device.name().to_string();
        let looking = async move {
            let looked = look(&device).await;
            // Another format is no damage.
            if let (Err(error), true) = (&looked, has_unknown_format(&device).await) {
                return Err(error.clone());
            }
            let mut is_ours = false;
            for block in 0..2 {
                is_ours |= device.read(block, 1).await.is_ok_and(|bytes| Superblock::is_named(&bytes));
            }
            Ok((looked, is_ours))
        };
        let (looked, is_ours) = devices::run(executor, looking)?;
        match (looked, &looks.told) {
            (Ok(superblock), None) => looks.told = Some((place, superblock.uuid)),
            (Ok(superblock), Some((first, uuid))) if superblock.uuid != *uuid => {
                let own = superblock.uuid;
                return Err(Failure::failed(format!("{place}: belongs to file system {own}, and {first} to {uuid}"))
                    .or_try("the devices of one file system"));
            }
            (Ok(_), _) => {}
            (Err(error), _) if is_ours => {
                looks.damaged.push(Finding { kind: "superblock", text: error.to_string(), path: None });
            }
            (Err(error), _) => looks.strangers.push(error.to_string()),
        }
    }
    executor.shut_down();
    match looks.strangers.first() {
        Some(stranger) if looks.told.is_none() && looks.damaged.is_empty() => Err(Failure::failed(stranger)),
        _ => Ok(looks),
    }
}

/// Returns the failure for a device that does not belong to the file system, which is no damage.
fn stranger(looks: &Looks) -> Option<Failure> {
    let (first, uuid) = looks.told.as_ref()?;
    let strange = looks.strangers.first()?;
    let remedy = format!(
        "the same command without this device; if it belongs to file system {uuid}, as {first} does, its first blocks \
         were overwritten: `imbrex fs replace` rebuilds it from the others, `imbrex fs salvage` recovers lost metadata"
    );
    Some(Failure::failed(strange).or_try(remedy))
}

fn check(
    executor: Executor,
    devices: Devices,
    looks: Looks,
    checked: &mut Checked,
    as_json: bool,
) -> Result<(), Failure> {
    if let Some(missing) = missing(&executor, &devices)? {
        if looks.damaged.is_empty() {
            return Err(stranger(&looks).unwrap_or(missing));
        }
        // The missing device is present, with a damaged superblock.
        checked.findings = looks.damaged;
        return Ok(());
    }
    let offline = match Offline::mount_silently(executor, devices, Purpose::Look) {
        Ok(offline) => offline,
        // The mount needs the device without a superblock.
        Err(failure) if looks.strangers.contains(&failure.message) => {
            return Err(stranger(&looks).unwrap_or(failure));
        }
        Err(failure) => {
            checked.findings.push(Finding { kind: "metadata", text: failure.message, path: None });
            return Ok(());
        }
    };
    // If all devices of the file system are present, the foreign one is the user's mistake. Else it may be a missing
    // device that was overwritten, which is damage.
    let is_complete = offline.mounted.missing.is_empty() && offline.mounted.missing_copies.is_empty();
    if let Some(failure) = stranger(&looks).filter(|_| is_complete) {
        return Err(failure);
    }
    tell_missing(&offline.mounted);
    checked.uuid = Some(offline.fs.superblock().uuid);
    checked.findings.extend(offline.mounted.lost_from.map(|frame| Finding {
        kind: "log",
        text: format!("frame {frame} of the log is damaged: changes committed in it and in later frames are lost"),
        path: None,
    }));
    checked.findings.extend(offline.mounted.unknown.iter().map(|text| Finding {
        kind: "superblock",
        text: text.clone(),
        path: None,
    }));
    checked.findings.extend(offline.mounted.outdated_copies.iter().map(|name| Finding {
        kind: "metadata",
        text: format!("{name} holds outdated metadata, and is brought up to date by the next mount"),
        path: None,
    }));
    let wrong = offline.fs.self_check();
    checked.findings.extend(wrong.into_iter().map(|text| Finding { kind: "namespace", text, path: None }));
    let files = walk(&offline.fs)?;
    let bar = Progress::on_terminal(as_json).bytes("checking");
    let usage = offline.fs.status().usage;
    bar.set_length(usage.live.saturating_mul(BLOCK_BYTES as u64));
    let mut seen: BTreeSet<Inode> = BTreeSet::new();
    for file in &files {
        if !seen.insert(file.inode) {
            continue;
        }
        checked.files += 1;
        if file.mode & 0o170_000 == REGULAR {
            let pieces = stored_pieces(&offline.fs, file.inode, PIECE_BYTES)?;
            let bytes = pieces.iter().map(|(from, to)| to - from).sum::<u64>();
            let blocks = damaged_ranges(&offline, file.inode, &pieces)?;
            checked.bytes += bytes;
            bar.inc(bytes);
            checked.findings.extend(blocks.into_iter().map(|text| Finding {
                kind: "contents",
                text: format!("{}: {text}", file.path.display()),
                path: Some(file.path.clone()),
            }));
        }
    }
    bar.finish_and_clear();
    check_rows(&offline, checked)
}

/// Checks parts that reading files does not cover: all copies of the metadata; and on an array with all its drives
/// parity and mirrors.
fn check_rows(offline: &Offline, checked: &mut Checked) -> Result<(), Failure> {
    let fs = offline.fs.clone();
    let copies = offline.fs.clone();
    let damaged = devices::run(&offline.executor, async move { copies.scrub_copies(false).await })?;
    checked.findings.extend((damaged > 0).then(|| Finding {
        kind: "metadata",
        text: format!(
            "{damaged} blocks of the metadata are damaged on some device: `imbrex fs scrub --repair` rewrites them \
             from another device"
        ),
        path: None,
    }));
    if fs.superblock().shape.is_none_or(|shape| shape.parity == 0) || !offline.mounted.missing.is_empty() {
        return Ok(());
    }
    let scrubbed = devices::run(&offline.executor, async move { fs.scrub_array(false, |_, _| true).await })?;
    let wrong = scrubbed.wrong_rows + scrubbed.incomplete_rows;
    checked.findings.extend((wrong > 0).then(|| Finding {
        kind: "rows",
        text: format!(
            "{wrong} of {} rows are damaged on some drive: `imbrex fs scrub --repair` repairs them as far as parity \
             allows",
            scrubbed.rows
        ),
        path: None,
    }));
    Ok(())
}

/// Returns the failure for too many missing devices, which is no damage and so no finding; `None` if enough are
/// present.
fn missing(executor: &Executor, devices: &Devices) -> Result<Option<Failure>, Failure> {
    let (mut drives, mut copies) = (BTreeSet::new(), BTreeSet::new());
    let (mut all_drives, mut all_copies, mut spare) = (usize::MAX, 0, 0);
    for device in devices.all.clone() {
        // A damaged superblock is a finding of its own.
        let Ok(superblock) = devices::run(executor, async move { look(&device).await }) else { continue };
        spare = superblock.shape.map_or(0, |shape| usize::from(shape.parity));
        // The superblock of a drive that was added later counts one drive more than the older superblocks.
        all_drives = all_drives.min(superblock.data_members().len());
        all_copies = superblock.metadata_members().len();
        match superblock.own().role {
            Role::Data => drives.extend([superblock.own().uuid]),
            Role::Metadata => copies.extend([superblock.own().uuid]),
            Role::Both => return Ok(None),
            Role::Spare => {}
        }
    }
    // An array works without as many drives as it has parity, and every file system with one copy of its metadata.
    if !copies.is_empty() && drives.len() + spare >= all_drives {
        return Ok(None);
    }
    let there = drives.len().min(all_drives) + copies.len();
    let all = all_drives + all_copies;
    let failure = Failure::failed(format!("{} of its {all} devices are missing", all - there.min(all)));
    Ok(Some(failure.or_try("name them all")))
}

/// Returns a message for each unreadable range of bytes in `pieces` of a file. Adjacent blocks with the same error are
/// one range.
fn damaged_ranges(offline: &Offline, inode: Inode, pieces: &[(u64, u64)]) -> Result<Vec<String>, Failure> {
    // First byte, end, and the error; no error where the hot zone has an intact copy.
    let mut wrong: Vec<(u64, u64, Option<String>)> = Vec::new();
    for &(from, to) in pieces {
        if read(offline, inode, from, to - from)?.is_ok() {
            continue;
        }
        for piece in (from..to).step_by(BLOCK_BYTES) {
            let Err(error) = read(offline, inode, piece, BLOCK_BYTES as u64)? else { continue };
            let end = (piece + BLOCK_BYTES as u64).min(to);
            let fs = offline.fs.clone();
            let copy = async move { Ok(fs.read(inode, piece, BLOCK_BYTES).await) };
            let error = devices::run(&offline.executor, copy)?.err().map(|_| error.to_string());
            match wrong.last_mut().filter(|last| last.1 == piece && last.2 == error) {
                Some(last) => last.1 = end,
                None => wrong.push((piece, end, error)),
            }
        }
    }
    let message = |(from, to, error): (u64, u64, Option<String>)| match error {
        None => held_by_copy(from, to),
        Some(error) => format!("bytes {from} to {to}: {error}"),
    };
    Ok(wrong.into_iter().map(message).collect())
}

/// Returns the message about bytes that neither the drives nor parity give, but a copy in the hot zone does.
pub(super) fn held_by_copy(from: u64, to: u64) -> String {
    format!(
        "bytes {from} to {to} are damaged beyond parity, and whole in the hot zone: `imbrex fs scrub --repair` writes them anew from it"
    )
}

fn read(offline: &Offline, inode: Inode, offset: u64, bytes: u64) -> Result<Result<(), FsError>, Failure> {
    let fs: Fs = offline.fs.clone();
    let reading = async move { Ok(fs.read_stored_only(inode, offset, bytes as usize).await.map(drop)) };
    devices::run(&offline.executor, reading)
}

/// Prints the result of a check.
pub(super) fn tell(paths: &[PathBuf], checked: &Checked, as_json: bool) -> Result<(), Failure> {
    let name = paths.first().map(Path::new).unwrap_or(Path::new("")).display();
    if as_json {
        let finding = |finding: &Finding| -> Value {
            let path = finding.path.as_ref().map(json::path);
            json!({ "kind": finding.kind, "text": finding.text, "path": path })
        };
        return output::json(&json!({
            "schema": "imbrex.fs-check/1",
            "devices": json::paths(paths),
            "uuid": checked.uuid,
            "is_whole": checked.findings.is_empty() && checked.unread == 0,
            "unread": checked.unread,
            "files": checked.files,
            "bytes": checked.bytes,
            "findings": checked.findings.iter().map(finding).collect::<Vec<_>>(),
        }));
    }
    for finding in &checked.findings {
        output::line(&format!("{name}: {}", finding.text));
    }
    let words = match (checked.findings.is_empty(), checked.unread) {
        (false, _) => "damaged",
        (true, 0) => "whole",
        (true, _) => "no damage in the files that were read",
    };
    let (files, bytes) = (checked.files, imbrex::human::bytes(checked.bytes));
    output::line(&format!("{name}: {words}; {files} files, {bytes} read"));
    Ok(())
}
