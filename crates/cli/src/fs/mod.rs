//! `imbrex fs`: file systems for raw shingled disks. Each command has a file of its own.

mod add;
mod age;
pub(crate) mod args;
mod asking;
mod bench;
mod capacity;
mod check;
mod clean;
mod devices;
mod dump;
mod figures;
pub(crate) mod helper;
mod mkfs;
mod mount;
mod options;
mod orders;
mod replace;
mod salvage;
mod scrub;
mod scrubs;
mod shorten;
mod stat;
mod status;
mod sync;
mod umount;
mod upgrade;

use std::collections::BTreeSet;
use std::path::PathBuf;

use imbrex::Failure;
use imbrex_fs::core::{Listed, Mounted};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::format::change::Inode;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Executor, Fs, MountOptions};

use self::args::FsCommand;
use self::devices::{Devices, Purpose};
use crate::consent::Consent;
use crate::error::ExitCode;

/// Number of directory entries that are read at once.
const NAMES_AT_ONCE: usize = 1024;

/// Executes the command.
pub(crate) fn run(command: &FsCommand, quiet: bool) -> Result<ExitCode, Failure> {
    match command {
        FsCommand::Mkfs(args) => mkfs::run(args),
        FsCommand::Mount(args) => mount::run(args, quiet),
        FsCommand::Umount { directory } => umount::run(directory, quiet),
        FsCommand::Sync { directory } => sync::run(directory),
        FsCommand::Check { devices, json } => check::run(devices, *json),
        FsCommand::Scrub { places, repair, json } => scrub::run(places, *repair, *json, quiet),
        FsCommand::Replace { devices, drive, copy, with, force, yes, json } => {
            let new = replace::New { path: with, consent: Consent { force: *force, yes: *yes } };
            match copy {
                Some(copy) => replace::run_copy(devices, *copy, &new, *json, quiet),
                None => replace::run(devices, *drive, &new, *json, quiet),
            }
        }
        FsCommand::Add { devices, drive, spare, force, yes, json } => {
            let new = spare.as_ref().or(drive.as_ref()).expect("one of both is required");
            let consent = Consent { force: *force, yes: *yes };
            add::run(devices, &add::New { path: new, consent, is_spare: spare.is_some() }, *json, quiet)
        }
        FsCommand::Salvage(args) => salvage::run(args, quiet),
        FsCommand::Stat { places, json, table } => stat::run(places, *json, table.table),
        FsCommand::Clean { devices, zones, json } => clean::run(devices, *zones, *json, quiet),
        FsCommand::Dump { devices, json } => dump::run(devices, *json),
        FsCommand::Upgrade { devices, json } => upgrade::run(devices, *json),
        FsCommand::Age(args) => age::run(args, quiet),
        FsCommand::Bench(args) => bench::run(args, quiet),
        FsCommand::Capacity(args) => capacity::run(args, quiet),
    }
}

/// A file system that a command reads or changes without serving it, in virtual time: device operations take no real
/// time.
struct Offline {
    executor: Executor,
    devices: Devices,
    fs: Fs,
    mounted: Mounted,
}

impl Offline {
    fn open(paths: &[PathBuf], purpose: Purpose) -> Result<Offline, Failure> {
        let executor = Executor::in_virtual_time();
        let devices = Devices::open(&executor, paths, purpose, false)?;
        Offline::mount(executor, devices, purpose)
    }

    fn mount(executor: Executor, devices: Devices, purpose: Purpose) -> Result<Offline, Failure> {
        let offline = Offline::mount_silently(executor, devices, purpose)?;
        tell_missing(&offline.mounted);
        Ok(offline)
    }

    fn mount_silently(executor: Executor, devices: Devices, purpose: Purpose) -> Result<Offline, Failure> {
        let options = MountOptions {
            read_only: purpose == Purpose::Look,
            epoch_ns: devices::now_ns(),
            ..MountOptions::default()
        };
        let (inner, members) = (executor.clone(), devices.all.clone());
        let mounting = async move { Fs::mount(&inner, &members, &options).await };
        let (fs, mounted) = devices::run(&executor, mounting)?;
        Ok(Offline { executor, devices, fs, mounted })
    }
}

/// Prints on standard error the missing drives, copies and spares, and the devices that are not used, with remedies.
fn tell_missing(mounted: &Mounted) {
    for drive in &mounted.missing {
        notice!(
            "{drive} is missing: its data are reconstructed from the other drives; `imbrex fs replace` puts \
             another drive in its place"
        );
    }
    for device in &mounted.unknown {
        notice!("{device}; the device is not used");
    }
    for copy in &mounted.missing_copies {
        notice!(
            "{copy} is missing: only the other copy is used; `imbrex fs replace --copy NUMBER` puts another \
             device in its place. If the other copy is lost too, `imbrex fs salvage` recovers files of store log"
        );
    }
    for spare in &mounted.missing_spares {
        notice!(
            "{spare} is missing: it cannot replace a drive; give it too, or add another with `imbrex fs add \
             --spare`"
        );
    }
    for name in &mounted.outdated_copies {
        notice!(
            "{name} holds outdated metadata: it is brought up to date while the file system is mounted for \
             writing"
        );
    }
    if mounted.mended_blocks > 0 {
        let blocks = mounted.mended_blocks;
        notice!(
            "{blocks} blocks of the metadata were missing or damaged on one device, and are rewritten from \
             another"
        );
    }
    for drive in &mounted.doubted_parts {
        notice!("drive {drive} has an outdated part of the hot zone: its copies are rewritten");
    }
    for name in &mounted.stale {
        notice!("{name} is no longer part of the array, and is not used: another device has replaced it");
    }
}

/// An entry of a walk: a file with its path.
struct Walked {
    path: PathBuf,
    inode: Inode,
    mode: u32,
}

/// Returns every name of a file system once, directories before their contents. The contents of a directory with
/// several names, which only a damaged file system has, are listed below the first name.
fn walk(fs: &Fs) -> Result<Vec<Walked>, Failure> {
    use std::os::unix::ffi::OsStrExt;
    let mut found = vec![Walked { path: "/".into(), inode: ROOT, mode: 0o040_755 }];
    let (mut next, mut entered) = (0, BTreeSet::new());
    while next < found.len() {
        let (inode, path, mode) = (found[next].inode, found[next].path.clone(), found[next].mode);
        next += 1;
        if mode & 0o170_000 != 0o040_000 || !entered.insert(inode) {
            continue;
        }
        for name in names(fs, inode)? {
            let path = path.join(std::ffi::OsStr::from_bytes(&name.name));
            found.push(Walked { path, inode: name.inode, mode: name.mode });
        }
    }
    Ok(found)
}

/// Returns the stored bytes of a file as ranges (start, end) of at most `most` bytes, in order. Holes are left out, so
/// the work depends on the stored bytes, not on the file's size.
fn stored_pieces(fs: &Fs, inode: Inode, most: u64) -> Result<Vec<(u64, u64)>, Failure> {
    let size = fs.attr(inode).map_err(Failure::failed)?.attributes.size;
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    for extent in fs.extents(inode).map_err(Failure::failed)? {
        let (mut at, end) = (u64::from(extent.at) * BLOCK_BYTES as u64, (extent.end() * BLOCK_BYTES as u64).min(size));
        while at < end {
            let room = pieces.last().filter(|last| last.1 == at).map_or(0, |last| most.saturating_sub(last.1 - last.0));
            let taken = (end - at).min(if room > 0 { room } else { most });
            match pieces.last_mut().filter(|_| room > 0) {
                Some(last) => last.1 += taken,
                None => pieces.push((at, at + taken)),
            }
            at += taken;
        }
    }
    Ok(pieces)
}

fn names(fs: &Fs, directory: Inode) -> Result<Vec<Listed>, Failure> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let some = fs.list(directory, from, NAMES_AT_ONCE).map_err(Failure::failed)?;
        let Some(last) = some.last() else { return Ok(all) };
        from = last.next;
        all.extend(some.into_iter().filter(|name| name.name != b"." && name.name != b".."));
    }
}
