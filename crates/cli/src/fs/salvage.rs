//! `imbrex fs salvage`: recovers files without metadata. New metadata is written to a device, or to memory if files are
//! only copied out.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use imbrex::{Failure, Progress, human};
use imbrex_fs::core::look;
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::format::superblock::Role;
use imbrex_fs::journal::Checksums;
use imbrex_fs::salvage::{Flawed, Reached, SalvageOptions, Salvaged, salvage};
use imbrex_fs::{Device, Executor, Fs, MountOptions};
use serde_json::{Value, json};

use super::args::SalvageArgs;
use super::devices::{self, Devices, Purpose};
use super::mkfs::{self, NewFile};
use super::{Walked, stored_pieces, walk};
use crate::consent::Consent;
use crate::error::ExitCode;
use crate::interrupt;
use crate::json;
use crate::output;

/// Blocks in memory for names and places of files, besides the checksums. Memory is allocated only for the blocks that
/// are used.
const MEMORY_BLOCKS: u64 = 1 << 20;
/// Largest plausible ratio of an array's size to the size of the drives that are present.
const LARGER: u64 = 1024;
/// Bytes that are copied at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Number of files that are named on the terminal; JSON names all.
const NAMED: usize = 20;

/// Salvages the files and prints the result.
pub(super) fn run(args: &SalvageArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let new_directory = args.to.as_deref().map(make_directory).transpose()?;
    let executor = Executor::in_virtual_time();
    let is_inside = args.meta.as_ref().is_some_and(|meta| args.devices.contains(meta));
    let purpose = if is_inside { Purpose::Work } else { Purpose::Look };
    let given: Vec<PathBuf> =
        args.devices.iter().filter(|path| is_inside || Some(*path) != args.meta.as_ref()).cloned().collect();
    let mut drives = Devices::open(&executor, &given, purpose, false)?;
    leave_out(&mut drives, args.meta.as_deref().filter(|_| !is_inside));
    let (metadata, new_file) = metadata(&executor, args, &drives, is_inside)?;
    let salvaged = salvage_with_bar(&executor, &drives, &metadata, args, quiet)?;
    new_file.into_iter().for_each(NewFile::keep);
    let copied = match &args.to {
        Some(directory) => Some(copy_out(&executor, &drives, &metadata, directory, args.json || quiet)?),
        None => {
            metadata.shut_down().map_err(|fault| Failure::failed(format!("{}: {fault}", metadata.name())))?;
            None
        }
    };
    new_directory.into_iter().for_each(NewDirectories::keep);
    tell(args, &drives.paths, &salvaged, copied)?;
    let is_whole = salvaged.incomplete.is_empty() && salvaged.older.is_empty();
    let is_whole = is_whole && salvaged.unreadable_groups + salvaged.unknown_zones + salvaged.untold_blocks == 0;
    Ok(if is_whole { ExitCode::Done } else { ExitCode::Damage })
}

/// Removes the device for the new metadata from the drives, where it was found in their folder.
fn leave_out(drives: &mut Devices, metadata: Option<&Path>) {
    let is_it = |path: &PathBuf| metadata.is_some_and(|metadata| devices::are_same(path, metadata));
    while let Some(at) = drives.paths.iter().position(is_it) {
        drives.paths.remove(at);
        drives.all.remove(at);
    }
}

/// Returns the device for the metadata, and the new file for it, if one was created.
fn metadata(
    executor: &Executor,
    args: &SalvageArgs,
    drives: &Devices,
    is_inside: bool,
) -> Result<(Device, Option<NewFile>), Failure> {
    let Some(path) = &args.meta else { return Ok((in_memory(executor, drives)?, None)) };
    mkfs::check_meta_size(args.meta_size, std::slice::from_ref(path))?;
    if is_inside {
        let at = drives.paths.iter().position(|drive| drive == path).unwrap_or(0);
        return Ok((drives.all[at].clone(), None));
    }
    let made = mkfs::make_file(path, args.meta_size)?;
    let consent = Consent { force: args.force, yes: args.yes };
    Ok((devices::open_new(executor, &[path.as_path()], consent, |_| Ok(()))?.remove(0), Some(made)))
}

/// Returns a device in memory for the metadata, used while files are copied out.
fn in_memory(executor: &Executor, drives: &Devices) -> Result<Device, Failure> {
    let Some(first) = drives.all.first().cloned() else { return Err(Failure::usage("name the drives with the data")) };
    let superblock = devices::run(executor, async move { look(&first).await })?;
    let data_blocks = superblock.shape.map_or(0, |shape| shape.blocks());
    let there: u64 = drives.all.iter().map(|drive| drive.geometry().blocks).sum();
    if data_blocks / LARGER > there {
        let name = drives.all[0].name();
        return Err(Failure::failed(format!(
            "{name}: its array has {data_blocks} blocks, and the drives that are there {there}"
        ))
        .or_try("all its drives; if these are all, its superblock makes no sense"));
    }
    let blocks = Checksums::blocks_for(data_blocks) + MEMORY_BLOCKS;
    let memory = Memory::new(Geometry { blocks, kind: Kind::Plain });
    Ok(Device::new(executor, "metadata in memory", Box::new(memory)))
}

fn salvage_with_bar(
    executor: &Executor,
    drives: &Devices,
    metadata: &Device,
    args: &SalvageArgs,
    quiet: bool,
) -> Result<Salvaged, Failure> {
    let progress = Progress::on_terminal(args.json || quiet);
    let bar = progress.steps("salvaging");
    let options = SalvageOptions { force: args.force, time_ns: devices::now_ns() };
    let (all, metadata) = (drives.all.clone(), metadata.clone());
    let salvaging = async move {
        let told = |reached: Reached| {
            bar.set_length(reached.groups_in_all);
            bar.set_position(reached.groups);
        };
        let outcome = salvage(&all, &metadata, &options, told).await;
        bar.finish_and_clear();
        outcome
    };
    devices::run(executor, salvaging)
}

/// Directories that were created, the uppermost first. Those that are empty at the end are removed again.
struct NewDirectories(Vec<PathBuf>);

impl NewDirectories {
    /// Keeps the directories.
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewDirectories {
    fn drop(&mut self) {
        // A directory with contents cannot be removed, nor can its parents.
        self.0.iter().rev().for_each(|directory| drop(std::fs::remove_dir(directory)));
    }
}

/// Creates `directory`, or checks that it is empty.
fn make_directory(directory: &Path) -> Result<NewDirectories, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("--to {}: {error}", directory.display()));
    let missing = directory.ancestors().filter(|above| !above.as_os_str().is_empty() && !above.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    missing.reverse();
    let made = NewDirectories(missing);
    std::fs::create_dir_all(directory).map_err(failed)?;
    if std::fs::read_dir(directory).map_err(failed)?.next().is_some() {
        return Err(Failure::failed(format!("--to {}: there is something in it", directory.display()))
            .or_try("a new directory, so that nothing is overwritten"));
    }
    Ok(made)
}

/// Copies every file to `directory`. Returns the number of files and of their bytes.
fn copy_out(
    executor: &Executor,
    drives: &Devices,
    metadata: &Device,
    directory: &Path,
    quiet: bool,
) -> Result<(u64, u64), Failure> {
    let mut all = vec![metadata.clone()];
    for device in drives.all.iter().filter(|device| !device.is(metadata)) {
        let looked = device.clone();
        // The new metadata take the place of the old ones, UUID included.
        if devices::run(executor, async move { look(&looked).await })?.own().role != Role::Metadata {
            all.push(device.clone());
        }
    }
    let options = MountOptions { read_only: true, epoch_ns: devices::now_ns(), ..MountOptions::default() };
    let inner = executor.clone();
    let (fs, _) = devices::run(executor, async move { Fs::mount(&inner, &all, &options).await })?;
    let found = walk(&fs)?;
    let progress = Progress::on_terminal(quiet);
    let bar = progress.steps("copying");
    bar.set_length(found.len() as u64);
    let mut copied = (0, 0);
    for walked in &found {
        if interrupt::requested() {
            return Err(Failure::failed(format!("stopped after {} files", copied.0)));
        }
        let to = directory.join(walked.path.strip_prefix("/").unwrap_or(&walked.path));
        if walked.mode & 0o170_000 == 0o040_000 {
            std::fs::create_dir_all(&to).map_err(|error| Failure::failed(format!("{}: {error}", to.display())))?;
        } else {
            copied.1 += copy_file(executor, &fs, walked, &to)?;
            copied.0 += 1;
        }
        bar.inc(1);
    }
    // Attributes are set in reverse order, contents before their directory, and only after all files are copied: a
    // directory may get a mode that forbids writes.
    for walked in found.iter().rev().filter(|walked| walked.path != Path::new("/")) {
        let to = directory.join(walked.path.strip_prefix("/").unwrap_or(&walked.path));
        dress(&fs, walked, &to)?;
    }
    bar.finish_and_clear();
    Ok(copied)
}

fn copy_file(executor: &Executor, fs: &Fs, walked: &Walked, to: &Path) -> Result<u64, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", to.display()));
    let size = fs.attr(walked.inode).map_err(Failure::failed)?.attributes.size;
    let file = File::create_new(to).map_err(failed)?;
    for (from, to) in stored_pieces(fs, walked.inode, PIECE_BYTES)? {
        let (reading, inode) = (fs.clone(), walked.inode);
        let bytes = devices::run(executor, async move { reading.read(inode, from, (to - from) as usize).await })?;
        file.write_all_at(&bytes, from).map_err(failed)?;
    }
    // Sets the size without writing, so that a hole at the end stays a hole.
    file.set_len(size).map_err(failed)?;
    Ok(size)
}

/// Gives a copy the permissions of its record, a file also its time, and the owner where that is permitted.
fn dress(fs: &Fs, walked: &Walked, to: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", to.display()));
    let attributes = fs.attr(walked.inode).map_err(Failure::failed)?.attributes;
    // Without root's privileges the copy belongs to the user.
    let _ = std::os::unix::fs::chown(to, Some(attributes.uid), Some(attributes.gid));
    if walked.mode & 0o170_000 != 0o040_000 {
        let time = time_of(attributes.modified_ns);
        File::options().write(true).open(to).and_then(|file| file.set_modified(time)).map_err(failed)?;
    }
    std::fs::set_permissions(to, PermissionsExt::from_mode(attributes.mode & 0o777)).map_err(failed)
}

fn time_of(ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    if ns < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

fn tell(
    args: &SalvageArgs,
    devices: &[PathBuf],
    salvaged: &Salvaged,
    copied: Option<(u64, u64)>,
) -> Result<(), Failure> {
    if args.json {
        return output::json(&document(args, devices, salvaged, copied));
    }
    let (files, bytes) = (human::count(salvaged.files), human::bytes(salvaged.bytes));
    let directories = human::count(salvaged.directories);
    let one_or = |count: u64, one: &'static str, several: &'static str| if count == 1 { one } else { several };
    let of_files = one_or(salvaged.files, "file", "files");
    let of_directories = one_or(salvaged.directories, "directory", "directories");
    output::line(&format!("{files} {of_files} ({bytes}) and {directories} {of_directories} came back"));
    let counted = [
        (
            salvaged.incomplete.len() as u64,
            "files lack blocks: their names end in .incomplete, and zeros stand for what is missing",
        ),
        (
            salvaged.older.len() as u64,
            "files came back as they were before their last write, of which blocks are missing",
        ),
        (
            salvaged.renamed,
            "files and directories have another name now, for a newer one has theirs: most were deleted or replaced",
        ),
        (salvaged.unnamed, "files and directories have no name or place that is known: they are in lost+found"),
        (salvaged.recovered_blocks, "blocks were made right by parity"),
        (salvaged.damaged_blocks, "blocks are damaged"),
        (salvaged.unreadable_groups, "stripe groups could not be read: too few of their zones are there"),
        (salvaged.unknown_zones, "zones have unknown contents: their first block is damaged"),
        (
            salvaged.untold_blocks,
            "blocks with contents have no record: their files came back in an earlier state, or not at all",
        ),
        (salvaged.strange_units, "blocks look like records and are none: damaged, or contents of a file"),
    ];
    for (count, what) in counted.into_iter().filter(|(count, _)| *count > 0) {
        output::line(&format!("{} {what}", human::count(count)));
    }
    for name in &salvaged.replaced {
        output::line(&format!("{name} was replaced, and is not read: its data are on another drive"));
    }
    for name in &salvaged.standing_in {
        output::line(&format!("{name} was replaced, and is read nevertheless: the drive that replaced it is missing"));
    }
    for flawed in salvaged.incomplete.iter().chain(&salvaged.older).take(NAMED) {
        output::line(&format!("  /{}: {} blocks missing", path_of(flawed).display(), flawed.missing_blocks));
    }
    output::line(
        "without data in the log, these did not come back: empty files, symbolic links, device nodes, further names, \
         extended attributes, and renames since a file was last written; deleted files may have returned",
    );
    if salvaged.may_lack_files_alone {
        output::line(
            "files that were only in the hot zone did not come back either, or as the drives had them last: the drives \
             do not record which",
        );
    }
    match (&args.meta, copied) {
        (Some(meta), _) => output::line(&format!(
            "mount it with {} in the place of the old metadata, with -o ro first: new data may overwrite data that did \
             not come back",
            meta.display()
        )),
        (None, Some((files, bytes))) => {
            output::line(&format!("{} files ({}) were copied", human::count(files), human::bytes(bytes)));
        }
        (None, None) => {}
    }
    Ok(())
}

fn path_of(flawed: &Flawed) -> PathBuf {
    OsStr::from_bytes(&flawed.path).into()
}

fn document(args: &SalvageArgs, devices: &[PathBuf], salvaged: &Salvaged, copied: Option<(u64, u64)>) -> Value {
    let flawed = |list: &[Flawed]| -> Vec<Value> {
        let one = |flawed: &Flawed| {
            let path = format!("/{}", path_of(flawed).display());
            json!({ "path": path, "missing_blocks": flawed.missing_blocks })
        };
        list.iter().map(one).collect()
    };
    json!({
        "schema": "imbrex.fs-salvage/1",
        "devices": json::paths(devices),
        "meta": args.meta.as_ref().map(json::path),
        "to": args.to.as_ref().map(json::path),
        "block_bytes": BLOCK_BYTES,
        "groups": salvaged.groups,
        "unreadable_groups": salvaged.unreadable_groups,
        "unknown_zones": salvaged.unknown_zones,
        "drives_missing": salvaged.missing_drives,
        "drives_replaced": salvaged.replaced,
        "drives_standing_in": salvaged.standing_in,
        "units": salvaged.units,
        "strange_units": salvaged.strange_units,
        "untold_blocks": salvaged.untold_blocks,
        "files": salvaged.files,
        "bytes": salvaged.bytes,
        "directories": salvaged.directories,
        "incomplete": flawed(&salvaged.incomplete),
        "older": flawed(&salvaged.older),
        "renamed": salvaged.renamed,
        "unnamed": salvaged.unnamed,
        "recovered_blocks": salvaged.recovered_blocks,
        "may_lack_files_alone": salvaged.may_lack_files_alone,
        "damaged_blocks": salvaged.damaged_blocks,
        "superseded_blocks": salvaged.superseded_blocks,
        "copied_files": copied.map(|(files, _)| files),
        "copied_bytes": copied.map(|(_, bytes)| bytes),
    })
}
