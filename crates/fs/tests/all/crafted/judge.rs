//! Applies actions to a crafted store, each on devices of its own: check, mount and work, scrub, salvage. Each may fail
//! with an error, and must end without a panic and within [`super::limits`].
//!
//! 1. A store that mounts for writing has a consistent namespace; so it has after work and a successful unmount, unless
//!    frames of the log were altered.
//! 2. A walk of the tree ends, and so does reading all data of files.
//! 3. A salvaged store mounts.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;

use imbrex_fs::core::{Allocate, Caller, Rename, Seek, SetAttr, SetAttribute, look};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::model::{Contents, Model};
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::executor::select;
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::superblock::Role;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::salvage::{SalvageOptions, salvage};
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::{Device, Executor, Fs, FsError, MountOptions};

use super::limits::{self, Limited};

/// Longest virtual time of an action.
const TIME_NS: u64 = 24 * 3600 * 1_000_000_000;
/// Most names in a store of less than two megabytes: a name takes at least 22 bytes.
const NAMES_MAX: usize = 100_000;
const PIECE_BYTES: u64 = 256 << 10;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
/// Most stripe groups that a scrub of one of these stores reads before it must have ended.
const GROUPS_MAX: u64 = 200;
/// Blocks of the device for salvaged metadata.
const SALVAGE_BLOCKS: u64 = 4096;

/// An action on a crafted store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Reads everything, like `imbrex fs check` and `imbrex fs dump`.
    Check,
    /// Mounts, reads, works, unmounts and mounts again.
    Work,
    /// Reads and repairs every row and copy.
    Scrub,
    /// Finds files without metadata.
    Salvage,
}

/// All actions.
pub(crate) const ACTIONS: [Action; 4] = [Action::Check, Action::Work, Action::Scrub, Action::Salvage];

/// Performs the action on devices with `contents`, which may have altered frames of the log. Returns whether it found
/// no error; the message describes a wrong reaction.
pub(crate) fn judge(
    seed: u64,
    trial: &Trial,
    (contents, has_frames): (&[Contents], bool),
    action: Action,
) -> Result<bool, String> {
    limits::begin(seed);
    let (executor, operations) = (Executor::in_virtual_time(), Rc::new(Cell::new(0)));
    let devices = contents.iter().enumerate().map(|(number, holds)| {
        let limited = Limited::new(Model::with(holds.clone()), &operations);
        Device::new(&executor, &format!("model {number}"), Box::new(limited))
    });
    let (devices, bounds, drives) = (devices.collect::<Vec<_>>(), trial.bounds, trial.drives);
    let (inner, result) = (executor.clone(), Rc::new(Cell::new(None)));
    let done = result.clone();
    let acting = async move {
        let options = MountOptions { bounds: Some(bounds), epoch_ns: 1_400_000_000_000_000_000, ..Default::default() };
        done.set(Some(match action {
            Action::Check => check(&inner, &devices, &options).await,
            Action::Work => work(&inner, &devices, &options, has_frames).await,
            Action::Scrub => scrub(&inner, &devices, &options).await,
            Action::Salvage => salvaged(&inner, &devices, drives, &options).await,
        }));
    };
    let late = executor.sleep(TIME_NS);
    let ran = std::panic::catch_unwind(AssertUnwindSafe(|| executor.run(select(acting, late))));
    // Tasks that a panic left half done may panic again when they are dropped.
    let forgotten = std::panic::catch_unwind(AssertUnwindSafe(|| executor.shut_down()));
    match (ran, result.take()) {
        (Err(panic), _) => Err(format!("{action:?}: panic: {}", words_of(&panic))),
        (Ok(Err(stalled)), _) => Err(format!("{action:?}: {stalled}")),
        (Ok(Ok(())), None) => Err(format!("{action:?}: it took more than a day of virtual time")),
        (Ok(Ok(())), Some(Err(Wrong(why)))) => Err(format!("{action:?}: {why}")),
        (Ok(Ok(())), Some(Ok(went_well))) => {
            forgotten.map(|()| went_well).map_err(|panic| format!("{action:?}: in the end: {}", words_of(&panic)))
        }
    }
}

fn words_of(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

/// The action ended in a forbidden way.
struct Wrong(String);

type Judged = Result<bool, Wrong>;

/// Reads everything in a mounted file system; returns whether all of it was readable.
async fn read_all(fs: &Fs) -> Judged {
    let (mut found, mut next, mut listed, mut is_well) = (vec![ROOT], 0, BTreeSet::new(), true);
    while let Some(&inode) = found.get(next) {
        next += 1;
        let mode = fs.attr(inode).map_or(0, |attr| attr.attributes.mode);
        if mode & 0o170_000 == DIRECTORY {
            if !listed.insert(inode) {
                is_well = false;
                continue;
            }
            let mut from = 0;
            while let Ok(some) = fs.list(inode, from, 64) {
                let Some(last) = some.last() else { break };
                from = last.next;
                found.extend(some.iter().filter(|name| name.name != b"." && name.name != b"..").map(|it| it.inode));
                if found.len() > NAMES_MAX {
                    return Err(Wrong(format!("more than {NAMES_MAX} names")));
                }
            }
        } else {
            is_well &= read_file(fs, inode, mode).await?;
        }
    }
    Ok(is_well)
}

async fn read_file(fs: &Fs, inode: Inode, mode: u32) -> Judged {
    let Ok(attr) = fs.attr(inode) else { return Ok(false) };
    let _ = fs.read_link(inode);
    for name in fs.attributes(inode).unwrap_or_default() {
        let _ = fs.attribute(inode, &name);
    }
    if mode & 0o170_000 != REGULAR {
        return Ok(true);
    }
    let (size, mut is_well) = (attr.attributes.size, true);
    for extent in fs.extents(inode).unwrap_or_default() {
        let (mut at, end) = (u64::from(extent.at) * BLOCK_BYTES as u64, extent.end() * BLOCK_BYTES as u64);
        while at < end.min(size) {
            is_well &= fs.read_stored_only(inode, at, PIECE_BYTES as usize).await.is_ok();
            at += PIECE_BYTES;
        }
    }
    for offset in [0, size / 2, size.saturating_sub(1), size, u64::MAX - 5] {
        is_well &= fs.read(inode, offset, 9000).await.is_ok();
        let _ = (fs.seek(inode, offset, Seek::Data), fs.seek(inode, offset, Seek::Hole));
    }
    Ok(is_well)
}

async fn check(executor: &Executor, devices: &[Device], options: &MountOptions) -> Judged {
    let options = MountOptions { read_only: true, ..options.clone() };
    let Ok((fs, _)) = Fs::mount(executor, devices, &options).await else { return Ok(false) };
    let mut is_well = fs.self_check().is_empty();
    let _ = (fs.status(), fs.statfs());
    is_well &= read_all(&fs).await?;
    is_well &= fs.scrub_copies(false).await.is_ok_and(|damaged| damaged == 0);
    if fs.superblock().shape.is_some() {
        is_well &= fs.scrub_array(false, |_, _| true).await.is_ok_and(|found| found.lost.is_empty());
    }
    Ok(is_well)
}

fn whole(fs: &Fs, when: &str) -> Result<(), Wrong> {
    let wrong = fs.self_check();
    if wrong.is_empty() { Ok(()) } else { Err(Wrong(format!("{when}: {}", wrong.join("; ")))) }
}

async fn work(executor: &Executor, devices: &[Device], options: &MountOptions, has_frames: bool) -> Judged {
    let Ok((fs, _)) = Fs::mount(executor, devices, options).await else { return Ok(false) };
    whole(&fs, "mounted")?;
    let mut is_well = read_all(&fs).await?;
    is_well &= change(&fs).await.is_ok();
    is_well &= read_all(&fs).await?;
    let _ = (fs.status(), fs.statfs());
    whole(&fs, "after work")?;
    if fs.unmount().await.is_err() {
        return Ok(false);
    }
    let options = MountOptions { read_only: true, ..options.clone() };
    match Fs::mount(executor, devices, &options).await {
        Ok((fs, _)) => {
            whole(&fs, "mounted again")?;
            Ok(is_well & read_all(&fs).await?)
        }
        // A frame from a future time is found when the log reaches it.
        Err(_) if has_frames => Ok(false),
        Err(error) => Err(Wrong(format!("unmounted in order, and then: {error}"))),
    }
}

/// Performs operations of all kinds; failures are ignored.
async fn change(fs: &Fs) -> Result<(), FsError> {
    let caller = Caller::default();
    let names = fs.list(ROOT, 0, 40)?;
    let made = fs.make_node(ROOT, b"made", REGULAR | 0o600, 0, caller).await?;
    fs.write(made.inode, 0, &[7; 13_000]).await?;
    let _ = fs.fsync(made.inode).await;
    for name in names.iter().filter(|name| name.name != b"." && name.name != b"..") {
        let inode = name.inode;
        let size = fs.attr(inode).map_or(0, |attr| attr.attributes.size);
        let _ = fs.open(inode);
        let _ = fs.write(inode, 0, &[9; 5000]).await;
        let _ = fs.write(inode, size, &[8; 5000]).await;
        let _ = fs.allocate(inode, 4096, 4096, Allocate::PunchHole).await;
        let _ = fs.set_attribute(inode, b"user.b", b"value", SetAttribute::Any).await;
        let _ = fs.close(inode).await;
        let _ = fs.fsync(inode).await;
        let _ = fs.set_attr(inode, &SetAttr { size: Some(size / 2), ..SetAttr::default() }).await;
        let _ = fs.link(inode, ROOT, format!("link-{inode}").as_bytes()).await;
    }
    let _ = fs.make_directory(ROOT, b"made-directory", 0o700, caller).await;
    for (number, name) in names.iter().enumerate().filter(|(_, it)| it.name != b"." && it.name != b"..") {
        let _ = match number % 4 {
            0 => fs.unlink(ROOT, &name.name).await,
            1 => {
                let new = format!("renamed-{number}");
                fs.rename(ROOT, &name.name, ROOT, new.as_bytes(), Rename::Replace).await
            }
            2 => fs.remove_directory(ROOT, &name.name).await,
            _ => Ok(()),
        };
    }
    let _ = fs.clean(2).await;
    let _ = fs.checkpoint().await;
    fs.sync().await
}

async fn scrub(executor: &Executor, devices: &[Device], options: &MountOptions) -> Judged {
    let Ok((fs, _)) = Fs::mount(executor, devices, options).await else { return Ok(false) };
    let mut is_well = fs.scrub_copies(true).await.is_ok();
    if fs.superblock().shape.is_some() {
        let mut groups = 0;
        let scrubbed = fs.scrub_array(true, |read, _| {
            groups = read;
            read < GROUPS_MAX
        });
        is_well &= scrubbed.await.is_ok();
        if groups >= GROUPS_MAX {
            return Err(Wrong(format!("a scrub read {groups} stripe groups and did not end")));
        }
    }
    whole(&fs, "scrubbed")?;
    is_well &= read_all(&fs).await?;
    Ok(is_well & fs.unmount().await.is_ok())
}

async fn salvaged(executor: &Executor, devices: &[Device], drives: usize, options: &MountOptions) -> Judged {
    let drives = &devices[..drives];
    let geometry = Geometry { blocks: SALVAGE_BLOCKS, kind: Kind::Plain };
    let fresh = Device::new(executor, "new metadata", Box::new(Memory::new(geometry)));
    let is_inside = devices.len() == drives.len();
    let metadata = if is_inside { &devices[0] } else { &fresh };
    let how = SalvageOptions { force: true, time_ns: 1_400_000_000_000_000_000 };
    if salvage(drives, metadata, &how, |_| ()).await.is_err() {
        return Ok(false);
    }
    let mut all = if is_inside { Vec::new() } else { vec![fresh.clone()] };
    for drive in drives {
        // A drive that claims to have a copy of the metadata would be taken for the new copy.
        let is_copy = look(drive).await.is_ok_and(|superblock| superblock.own().role == Role::Metadata);
        all.extend((!is_copy).then(|| drive.clone()));
    }
    let options = MountOptions { read_only: true, ..options.clone() };
    match Fs::mount(executor, &all, &options).await {
        Ok((fs, _)) => {
            whole(&fs, "salvaged")?;
            read_all(&fs).await
        }
        Err(error) => Err(Wrong(format!("salvaged, and then: {error}"))),
    }
}
