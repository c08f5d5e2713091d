//! `imbrex fs scrub`: reads every block of every file of a mounted file system from the drive and compares it with its
//! checksum, while other programs use the file system. `O_DIRECT` bypasses the kernel's page cache.
//!
//! Of an array that is not mounted every row that files use is read, on all drives, parity included.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use imbrex::{Failure, Progress};
use imbrex_fs::Fs;
use imbrex_fs::core::Scrubbed;
use imbrex_fs::format::change::Inode;
use imbrex_fs::journal::mirror::{CopyDamage, State};
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::check::{self, Checked, Finding, held_by_copy};
use super::devices::{self, Purpose};
use super::{Offline, asking, scrubs, stat, status, walk};
use crate::error::ExitCode;
use crate::interrupt;
use crate::json;
use crate::output;

/// Bytes that are read at once, and the size of a block. The blocks of a piece are read one by one if the piece is
/// damaged.
const PIECE_BYTES: u64 = 1 << 20;
const BLOCK_BYTES: u64 = 4096;
/// Number of damaged ranges of a file up to which each has its own line; more have one line together.
const LINES: usize = 16;
/// `EIO`: a block does not match its checksum, or cannot be read.
const DAMAGED: i32 = 5;

/// Scrubs the file system that is mounted on a directory, or the array on devices.
pub(super) fn run(places: &[PathBuf], repairs: bool, as_json: bool, quiet: bool) -> Result<ExitCode, Failure> {
    match places {
        [directory] if directory.is_dir() && repairs => {
            let order = json!({ "order": "scrub", "repair": true });
            tell(&asking::ask(directory, "scrubbing", order, as_json || quiet)?, as_json)
        }
        [directory] if directory.is_dir() => scrub_mounted(directory, as_json, quiet),
        devices => scrub_devices(devices, repairs, as_json, quiet),
    }
}

/// Scrubs the array on the devices in `paths`.
fn scrub_devices(paths: &[PathBuf], repairs: bool, as_json: bool, quiet: bool) -> Result<ExitCode, Failure> {
    let purpose = if repairs { Purpose::Work } else { Purpose::Look };
    let offline = Offline::open(paths, purpose)?;
    let (scrubbing, ending) = (offline.fs.clone(), offline.fs.clone());
    let bar = Progress::on_terminal(as_json || quiet).steps("scrubbing");
    let scrubbing = async move {
        let told = |done, all| {
            bar.set_length(all);
            bar.set_position(done);
            !interrupt::requested()
        };
        let outcome = scrubbing.scrub_array(repairs, told).await;
        bar.finish_and_clear();
        outcome
    };
    let scrubbed = devices::run(&offline.executor, scrubbing)?;
    let found = document(&offline.fs, &offline.devices.paths, &scrubbed)?;
    if repairs {
        let (fs, summary) = (offline.fs.clone(), scrubs::summary(&found));
        devices::run(&offline.executor, async move { scrubs::note(&fs, &summary).await })?;
        devices::run(&offline.executor, async move { ending.unmount().await })?;
        offline.devices.shut_down()?;
    }
    tell(&found, as_json)
}

/// Returns the result of a scrub as JSON, with the paths and ranges of lost blocks.
pub(super) fn document(fs: &Fs, paths: &[PathBuf], scrubbed: &Scrubbed) -> Result<Value, Failure> {
    let names: BTreeMap<Inode, PathBuf> = walk(fs)?.into_iter().map(|walked| (walked.inode, walked.path)).collect();
    let ranges = |blocks: &[(Inode, u64)]| -> Vec<Value> {
        let range = |(inode, from, to): (Inode, u64, u64)| {
            let path = names.get(&inode).map_or_else(|| "".into(), json::path);
            json!({ "path": path, "offset": from * BLOCK_BYTES, "bytes": (to - from) * BLOCK_BYTES })
        };
        in_ranges(blocks).into_iter().map(range).collect()
    };
    let copy = |copy: &CopyDamage| {
        json!({
            "copy": copy.slot,
            "device": copy.device,
            "state": status::state(copy.state),
            "damaged_blocks": copy.damaged,
            "repaired_blocks": copy.repaired,
        })
    };
    Ok(json!({
        "schema": "imbrex.fs-scrub/1",
        "devices": json::paths(paths),
        "is_whole": scrubbed.is_whole(),
        "is_repaired": scrubbed.is_repaired,
        "rows": scrubbed.rows,
        "wrong_rows": scrubbed.wrong_rows,
        "incomplete_rows": scrubbed.incomplete_rows,
        "repaired_rows": scrubbed.repaired_rows,
        "metadata_blocks": scrubbed.metadata_blocks,
        "metadata_copies": scrubbed.metadata_copies.iter().map(copy).collect::<Vec<_>>(),
        "lost": ranges(&scrubbed.lost),
        "held_by_copies": ranges(&scrubbed.held_by_copies),
    }))
}

/// Returns blocks of files as ranges: the file, the first block, and the end.
fn in_ranges(blocks: &[(Inode, u64)]) -> Vec<(Inode, u64, u64)> {
    let mut ranges: Vec<(Inode, u64, u64)> = Vec::new();
    for (inode, block) in blocks.iter().copied().collect::<BTreeSet<_>>() {
        match ranges.last_mut().filter(|last| last.0 == inode && last.2 == block) {
            Some(last) => last.2 = block + 1,
            None => ranges.push((inode, block, block + 1)),
        }
    }
    ranges
}

fn tell(found: &Value, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        output::json(found)?;
    } else {
        for (path, from, to, count) in in_few_lines(&found["lost"]) {
            output::line(&match count {
                1 => format!("{path}: bytes {from} to {to} are lost"),
                _ => format!("{path}: bytes in {count} places from {from} to {to} are lost; --json names each"),
            });
        }
        for (path, from, to, count) in in_few_lines(&found["held_by_copies"]) {
            output::line(&match count {
                1 => format!("{path}: {}", held_by_copy(from, to)),
                _ => format!(
                    "{path}: bytes in {count} places from {from} to {to} are damaged beyond parity, and whole in the hot zone; --json names each"
                ),
            });
        }
        output::line(&format!(
            "{} rows read: {} wrong, {} incomplete, {} repaired; {} blocks of the metadata damaged on some device",
            found["rows"],
            found["wrong_rows"],
            found["incomplete_rows"],
            found["repaired_rows"],
            found["metadata_blocks"]
        ));
        damaged_copies(found).iter().for_each(|line| output::line(line));
    }
    Ok(if found["is_whole"] == true { ExitCode::Done } else { ExitCode::Damage })
}

/// Returns a message for each copy of the metadata that is lost, or still has damage after a repair.
fn damaged_copies(found: &Value) -> Vec<String> {
    let message = |copy: &Value| {
        let device = copy["device"].as_str().unwrap_or_default();
        let number = |key: &str| copy[key].as_u64().unwrap_or(0);
        let (slot, damaged, repaired) = (number("copy"), number("damaged_blocks"), number("repaired_blocks"));
        let remedy = format!("`imbrex fs replace --copy {slot}` makes this copy on another device");
        if found["is_repaired"] == true && repaired < damaged {
            let left = damaged - repaired;
            return Some(format!("{device}: {left} damaged blocks of the metadata could not be repaired: {remedy}"));
        }
        let is_lost = copy["state"] == status::state(State::Lost);
        is_lost.then(|| format!("{device}: its copy of the metadata is lost and was not read: {remedy}"))
    };
    found["metadata_copies"].as_array().into_iter().flatten().filter_map(message).collect()
}

/// Returns the ranges in a list as (path, offset, end, number of ranges). Many ranges of one file are merged into one
/// from the first to the last.
fn in_few_lines(ranges: &Value) -> Vec<(&str, u64, u64, usize)> {
    let mut by_path: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    places(ranges).for_each(|(path, from, to)| by_path.entry(path).or_default().push((from, to)));
    let lines = by_path.into_iter().flat_map(|(path, ranges)| match (ranges.first(), ranges.last()) {
        (Some((from, _)), Some((_, to))) if ranges.len() > LINES => vec![(path, *from, *to, ranges.len())],
        _ => ranges.into_iter().map(|(from, to)| (path, from, to, 1)).collect(),
    });
    lines.collect()
}

/// Returns the paths, offsets and ends in a list of ranges.
fn places(ranges: &Value) -> impl Iterator<Item = (&str, u64, u64)> {
    let number = |range: &Value, key: &str| range[key].as_u64().unwrap_or(0);
    ranges.as_array().into_iter().flatten().map(move |range| {
        let (path, from) = (range["path"].as_str().unwrap_or_default(), number(range, "offset"));
        (path, from, from + number(range, "bytes"))
    })
}

/// Scrubs the file system that is mounted on `directory`.
fn scrub_mounted(directory: &Path, as_json: bool, quiet: bool) -> Result<ExitCode, Failure> {
    let status = stat::ask(directory)?;
    let uuid = status["uuid"].as_str().and_then(|uuid| uuid.parse().ok());
    let mut checked = Checked { uuid, ..Checked::default() };
    let mut unread = Unread::default();
    let files = files(directory, &mut unread)?;
    let progress = Progress::on_terminal(as_json || quiet);
    let bar = progress.bytes("scrubbing");
    bar.set_length(files.iter().map(|(_, bytes)| bytes).sum());
    let mut buffer = vec![0; PIECE_BYTES as usize];
    for (path, bytes) in &files {
        if interrupt::requested() {
            return Err(Failure::failed(format!("stopped after {} of {} files", checked.files, files.len())));
        }
        bar.inc(*bytes);
        let Some(file) = unread.or_note(path, open(path)) else { continue };
        checked.files += 1;
        checked.bytes += bytes;
        scrub(directory, path, &file, &mut buffer, &mut checked.findings)?;
    }
    bar.finish_and_clear();
    checked.unread = unread.count;
    note(directory, &checked, as_json || quiet);
    check::tell(&[directory.into()], &checked, as_json)?;
    match (unread.failure(directory), checked.findings.is_empty()) {
        (None, true) => Ok(ExitCode::Done),
        (None, false) => Ok(ExitCode::Damage),
        (Some(failure), true) => Err(failure),
        (Some(failure), false) => {
            // Damage determines the exit code even if some files were not read.
            message!("imbrex: {failure}");
            Ok(ExitCode::Damage)
        }
    }
}

/// Asks the serving process to store the result. The process refuses that to users other than root and the one who
/// mounted.
fn note(directory: &Path, checked: &Checked, quiet: bool) {
    let is_whole = checked.findings.is_empty() && checked.unread == 0;
    let found = json!({ "is_whole": is_whole, "damaged": checked.findings.len() });
    let _ = asking::ask(directory, "noting", json!({ "order": "note-scrub", "found": found }), quiet);
}

/// Files and directories that could not be opened, and so were not read.
#[derive(Default)]
struct Unread {
    count: u64,
    /// The first of the files and directories, with the error.
    first: Option<(PathBuf, std::io::Error)>,
}

impl Unread {
    /// Returns the opened file, or counts the failure. A file that was deleted meanwhile needs no scrubbing and is not
    /// counted.
    fn or_note<T>(&mut self, path: &Path, opened: std::io::Result<T>) -> Option<T> {
        match opened {
            Ok(opened) => Some(opened),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                self.count += 1;
                self.first.get_or_insert((path.into(), error));
                None
            }
        }
    }

    /// Returns the failure if any file or directory was not read.
    fn failure(self, directory: &Path) -> Option<Failure> {
        let (path, error) = self.first?;
        let (place, count, path) = (directory.display(), self.count, path.display());
        let one_or_several = if count == 1 { "file or directory" } else { "files and directories" };
        let words =
            format!("{place}: {count} {one_or_several} could not be opened and were not read, first {path}: {error}");
        Some(Failure::failed(words).or_try("as root, and on a mount that root may use"))
    }
}

/// Opens a file for reads that bypass the page cache.
fn open(path: &Path) -> std::io::Result<File> {
    File::options().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path)
}

/// Returns the regular files of a file system, each once, with their sizes.
fn files(directory: &Path, unread: &mut Unread) -> Result<Vec<(PathBuf, u64)>, Failure> {
    let told = |path: &Path, error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let device = directory.metadata().map_err(|error| told(directory, error))?.dev();
    let (mut found, mut seen, mut folders) = (Vec::new(), BTreeSet::new(), vec![directory.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        let Some(entries) = unread.or_note(&folder, std::fs::read_dir(&folder)) else { continue };
        for entry in entries {
            let path = entry.map_err(|error| told(&folder, error))?.path();
            let Some(metadata) = unread.or_note(&path, path.symlink_metadata()) else { continue };
            match metadata.file_type() {
                kind if kind.is_dir() && metadata.dev() == device => folders.push(path),
                kind if kind.is_file() && seen.insert(metadata.ino()) => found.push((path, metadata.len())),
                _ => {}
            }
        }
    }
    Ok(found)
}

/// Reads a file; adds its damaged ranges to `findings`.
fn scrub(root: &Path, path: &Path, file: &File, buffer: &mut [u8], findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let mut offset = 0;
    loop {
        match file.read_at(buffer, offset) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(DAMAGED) => name_blocks(root, path, file, offset, findings),
            Err(error) => return Err(Failure::failed(format!("{}: {error}", path.display()))),
        }
        offset += PIECE_BYTES;
    }
}

/// Adds the damaged blocks of a piece to `findings`; adjacent blocks with the same error are one range.
fn name_blocks(root: &Path, path: &Path, file: &File, from: u64, findings: &mut Vec<Finding>) {
    let name = Path::new("/").join(path.strip_prefix(root).unwrap_or(path));
    let mut block = [0; BLOCK_BYTES as usize];
    let mut damaged: Vec<(u64, u64, std::io::Error)> = Vec::new();
    for offset in (from..from + PIECE_BYTES).step_by(BLOCK_BYTES as usize) {
        let Err(error) = (match file.read_at(&mut block, offset) {
            Ok(0) => break,
            read => read,
        }) else {
            continue;
        };
        match damaged
            .last_mut()
            .filter(|(_, end, known)| *end == offset && known.raw_os_error() == error.raw_os_error())
        {
            Some((_, end, _)) => *end = offset + BLOCK_BYTES,
            None => damaged.push((offset, offset + BLOCK_BYTES, error)),
        }
    }
    findings.extend(damaged.into_iter().map(|(from, to, error)| Finding {
        kind: "contents",
        text: format!("{}: bytes {from} to {to}: {error}", name.display()),
        path: Some(name.clone()),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_many_ranges_has_one_line() {
        let range = |path: &str, offset: u64| json!({ "path": path, "offset": offset, "bytes": 4096 });
        let few = (0..LINES as u64).map(|number| range("/few", number * 9000));
        let many = (0..=LINES as u64).map(|number| range("/many", number * 9000));
        let all = Value::Array(few.chain(many).collect());
        let lines = in_few_lines(&all);
        assert_eq!(lines.len(), LINES + 1);
        assert_eq!(lines[LINES], ("/many", 0, LINES as u64 * 9000 + 4096, LINES + 1));
        assert_eq!(lines[1], ("/few", 9000, 13_096, 1));
    }

    #[test]
    fn copies_of_the_metadata_that_are_lost_or_stay_damaged_are_named() {
        let copy = |slot: u64, state: State, damaged: u64, repaired: u64| {
            let (device, state) = (format!("meta{slot}"), status::state(state));
            json!({ "copy": slot, "device": device, "state": state, "damaged_blocks": damaged, "repaired_blocks": repaired })
        };
        let copies = [
            copy(0, State::Current, 2, 2),
            copy(1, State::Lost, 3, 0),
            copy(2, State::Lost, 0, 0),
            copy(3, State::Outdated, 0, 0),
        ];
        let found = json!({ "is_repaired": true, "metadata_copies": copies });
        let remedy = |slot: u64| format!("`imbrex fs replace --copy {slot}` makes this copy on another device");
        let expected = [
            format!("meta1: 3 damaged blocks of the metadata could not be repaired: {}", remedy(1)),
            format!("meta2: its copy of the metadata is lost and was not read: {}", remedy(2)),
        ];
        assert_eq!(damaged_copies(&found), expected);
        let only_read = json!({ "is_repaired": false, "metadata_copies": [copy(0, State::Current, 2, 0)] });
        assert_eq!(damaged_copies(&only_read), Vec::<String>::new());
    }

    #[test]
    fn neighbouring_blocks_of_a_file_are_one_range() {
        let blocks = [(7, 3), (5, 9), (7, 1), (7, 2), (5, 11), (6, 10), (7, 2)];
        assert_eq!(in_ranges(&blocks), [(5, 9, 10), (5, 11, 12), (6, 10, 11), (7, 1, 4)]);
        assert_eq!(in_ranges(&[]), []);
    }
}
