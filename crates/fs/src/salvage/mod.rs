//! Salvage: recovery of files without metadata. If every device with metadata is lost, the records stored with the data
//! in the store `log` describe the files. Salvage writes new metadata from these records to a new device, and the file
//! system can be mounted again.
//!
//! ```text
//!   first blocks of zones ─► stripe groups ─► every block read ─► units of records ─► runs of blocks whose checksums are right
//!                                                                                         │
//!        new metadata ◄── names, directories ◄── each file as of its newest record ◄──────┘
//! ```
//!
//! Items without a record are not recovered: empty files, symbolic links, device nodes, empty directories, extended
//! attributes, and all names of a file but one. Renames and changes of length since a file's last record are not
//! recovered either. Deleted files may return, since no record says that a file was deleted. Files that were only in
//! the hot zone are lost with the zone, or are recovered as the drives last had them.
//!
//! Invariants:
//! 1. Every block that is given to a file matches the checksum of its record.
//! 2. A file has its contents of one moment: blocks of several moments are not mixed. A file with missing blocks at
//!    every moment gets a name that says so.
//! 3. Salvage ends whatever the drives hold, with an error if nothing can be recovered. A block is a unit of records
//!    only if no later unit of its group describes the block as data. So user data that look like a unit are not taken
//!    for one.
//! 4. The drives are only read. The new metadata become valid when all parts of them are durable.

mod contents;
mod drives;
mod replaced;
mod scan;
mod tree;
mod zone;

use std::collections::BTreeMap;

use self::contents::Contents;
use self::scan::Scan;
use crate::array::{Array, Data};
use crate::block_run::BlockRun;
use crate::core::made::{blank, bytes_in_slot, erase, lay_out, refuse_used};
use crate::device::Device;
use crate::device::area::Place;
use crate::error::FsError;
use crate::format::change::{Change, Inode};
use crate::format::record::{DirectoryRecord, FileRecord};
use crate::format::superblock::{FORMAT, LastDurable, Layout, Role, Standing, Superblock};
use crate::hot::Keeping;
use crate::journal::Checksums;
use crate::journal::checkpoint::Writer;
use crate::journal::checksums::STAMP_GENERATIONS;
use crate::journal::log::LogPlace;
use crate::journal::mirror::Mirror;
use crate::namespace::Namespace;
use crate::store;

/// Pages of checksums in memory.
const CHECKSUM_PAGES: usize = 4 << 10;
/// Generation of the metadata that a salvage writes. Mounts before the salvage do not reach this number, and as many
/// generations are left for the mounts after the salvage.
const SALVAGED_GENERATION: u64 = STAMP_GENERATIONS / 2;
/// Names or files that are encoded in one step.
const AT_ONCE: usize = 1024;

/// Progress of a salvage, in stripe groups.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reached {
    /// Number of stripe groups read so far.
    pub groups: u64,
    /// Number of stripe groups to read in total.
    pub groups_in_all: u64,
}

/// Options of a salvage, the recovery of files without metadata.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SalvageOptions {
    /// Whether to salvage even if the metadata can be read or the new device holds a file system.
    pub force: bool,
    /// Current time, in nanoseconds since 1970: the times of recovered directories, and the change time of recovered
    /// files.
    pub time_ns: i64,
}

/// A recovered file that does not have all blocks of its newest record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flawed {
    /// Path of the recovered file, relative to the root directory.
    pub path: Vec<u8>,
    /// Number of blocks of 4 KiB of the file's newest record that were not found.
    pub missing_blocks: u64,
}

/// Result of a salvage: counts, and the files that were recovered only in part.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Salvaged {
    /// Number of stripe groups that were read.
    pub groups: u64,
    /// Number of stripe groups of which too few zones could be read to recover their data.
    pub unreadable_groups: u64,
    /// Number of zones that have a write pointer, are not empty, and have no header of this file system. Conventional
    /// zones and drives without zones are not counted.
    pub unknown_zones: u64,
    /// Number of units of records (blocks that describe the data before them) that were accepted.
    pub units: u64,
    /// Number of blocks that look like units of records and are not valid: damaged, or user data that resemble one.
    pub strange_units: u64,
    /// Number of blocks with data, or unreadable, that no unit describes: the unit is lost, or the power failed before
    /// it was written. Blocks of zeros do not count. The files of these blocks were recovered as of an earlier record,
    /// or not at all.
    pub untold_blocks: u64,
    /// Number of files that were recovered, incomplete ones included.
    pub files: u64,
    /// Sum of the sizes of the recovered files, in bytes.
    pub bytes: u64,
    /// Number of directories that were recovered, without the root directory and `lost+found`.
    pub directories: u64,
    /// Files with missing blocks. Their names end in `.incomplete`, and the missing blocks read as zeros.
    pub incomplete: Vec<Flawed>,
    /// Files that were recovered as of an earlier record, since blocks of their newest record are missing.
    pub older: Vec<Flawed>,
    /// Number of files and directories that got another name, since a newer one has their name. Most of them were
    /// deleted or replaced.
    pub renamed: u64,
    /// Number of files without a known name and of directories without a known parent. They are in `lost+found`.
    pub unnamed: u64,
    /// Number of blocks that are unreadable or do not match the checksum in their record, and could not be
    /// reconstructed from parity.
    pub damaged_blocks: u64,
    /// Number of blocks of 4 KiB, data and units of records, that were reconstructed from parity.
    pub recovered_blocks: u64,
    /// Number of blocks that match their checksum and that no recovered file uses: they belong to another version of
    /// their file, or are a second copy of a block.
    pub superseded_blocks: u64,
    /// Numbers of the drives of the array that were not given or failed, counted from 0 in the array.
    pub missing_drives: Vec<u8>,
    /// Names of the given drives that were replaced by others. No file data on these drives are read.
    pub replaced: Vec<String>,
    /// Names of the given drives that were replaced and are read nevertheless, since the drive that replaced them is
    /// missing.
    pub standing_in: Vec<String>,
    /// Whether files may have been stored only in the hot zone, which is not read. The drives have no records of such
    /// files, or have records of earlier versions.
    pub may_lack_files_alone: bool,
}

/// Everything found of a file: its records by sequence, and its runs of blocks, from several moments.
#[derive(Default, Debug)]
struct Versions {
    records: BTreeMap<u64, FileRecord>,
    runs: Vec<Found>,
}

/// Run of blocks of a file that match the checksums of their record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Found {
    sequence: u64,
    at: u32,
    blocks: u32,
    start: u64,
}

/// Everything found: files by inode number and generation, directories by inode number.
#[derive(Default, Debug)]
struct Everything {
    files: BTreeMap<(Inode, u32), Versions>,
    directories: BTreeMap<Inode, DirectoryRecord>,
    sequence: u64,
}

/// Reads the stripe groups on `drives`, and writes new metadata to `metadata` with the files that the records in the
/// groups describe, so that the file system can be mounted with both. The hot zone is not read. If the metadata were on
/// the drive with the data, `metadata` must be that drive. `progress` is called after each stripe group.
///
/// # Errors
/// [`FsError::Format`] if `drives` are not of one file system with the store `log`, if too few of them are given, or if
/// no record is found. Without `force` also if the metadata can be read, or `metadata` holds a file system. A failed
/// write to `metadata` is an error too.
pub async fn salvage(
    drives: &[Device],
    metadata: &Device,
    options: &SalvageOptions,
    mut progress: impl FnMut(Reached),
) -> Result<Salvaged, FsError> {
    let (superblock, given) = drives::look_at(drives, metadata, options.force).await?;
    let place = place_of(&superblock, metadata, options.force).await?;
    let (assembled, mut salvaged) = drives::assemble(&superblock, &given).await?;
    let array = &assembled.array;
    check_options(&superblock, array)?;
    let on_metadata = on_metadata(&superblock, metadata, place)?;
    if !is_inside(&superblock) {
        erase(metadata).await?;
    }
    let area = Mirror::new(&on_metadata, vec![(0, metadata.clone(), true)], false);
    blank_all(&area, &on_metadata.layout, superblock.layout.place == place).await?;
    let checksums = Checksums::new(area.clone(), on_metadata.layout.checksums, CHECKSUM_PAGES);
    let mut everything = Everything::default();
    let groups = assembled.in_order();
    for (number, group) in groups.iter().enumerate() {
        Scan::of(array, *group).read(&checksums, &mut everything, &mut salvaged).await?;
        salvaged.groups += 1;
        progress(Reached { groups: number as u64 + 1, groups_in_all: groups.len() as u64 });
    }
    if salvaged.units == 0 {
        let reason = "no record of a file was found on the drives of its file system: no file can be recovered";
        return Err(FsError::format(drives[0].name(), reason));
    }
    salvaged.may_lack_files_alone = superblock.layout.hot.1 > 0 && keeps_alone(&superblock);
    salvaged.recovered_blocks = array.counters().recovered_blocks;
    salvaged.missing_drives = array.missing().into_iter().map(|(number, _)| number).collect();
    let namespace = rebuild(&superblock, array, assembled.drives, &everything, options.time_ns, &mut salvaged)?;
    write(&area, &on_metadata, &checksums, &namespace).await?;
    Ok(salvaged)
}

/// Builds the namespace from the records, and adds the stripe groups of the array.
fn rebuild(
    superblock: &Superblock,
    array: &Array,
    drives: Vec<Change>,
    everything: &Everything,
    time_ns: i64,
    salvaged: &mut Salvaged,
) -> Result<Namespace, FsError> {
    let mut contents: BTreeMap<(Inode, u32), Contents> = BTreeMap::new();
    for (key, versions) in &everything.files {
        let found: u64 = versions.runs.iter().map(|run| u64::from(run.blocks)).sum();
        let file = contents::of(versions);
        salvaged.superseded_blocks += found - file.extents.iter().map(|extent| u64::from(extent.blocks)).sum::<u64>();
        contents.insert(*key, file);
    }
    let mut namespace = Namespace::new(superblock.uuid.as_u128());
    drives.iter().for_each(|change| namespace.apply(change));
    for (group, layout, _) in array.groups() {
        namespace.apply(&Change::Group { group, layout });
    }
    namespace.apply(&Change::Sequence { below: everything.sequence + 2 });
    tree::plant(&mut namespace, everything, contents, time_ns, salvaged)?;
    let wrong = namespace.self_check();
    assert!(wrong.is_empty(), "the rebuilt directory tree is inconsistent: {}", wrong.join("; "));
    Ok(namespace)
}

/// Returns an error if a mount would refuse the options that the file system was made with.
fn check_options(superblock: &Superblock, array: &Array) -> Result<(), FsError> {
    let option = |key: &str| superblock.options.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
    Keeping::named(option(Keeping::OPTION).as_deref()).map_err(|reason| FsError::format("the hot zone", reason))?;
    let run = BlockRun { start: superblock.data.0, blocks: superblock.data.1 };
    store::make(&superblock.store, &Data::Array(array.clone()), run, None, option).map(drop)
}

/// Returns whether the file system keeps files only in the hot zone.
fn keeps_alone(superblock: &Superblock) -> bool {
    let said = superblock.options.iter().find(|(key, _)| key == Keeping::OPTION).map(|(_, value)| value.as_str());
    Keeping::named(said).is_ok_and(|keeping| keeping == Keeping::Alone)
}

/// Returns whether the metadata lie on the drive that holds the data.
fn is_inside(superblock: &Superblock) -> bool {
    superblock.members[superblock.metadata_members()[0]].role == Role::Both
}

/// Returns the place for the new metadata.
async fn place_of(superblock: &Superblock, metadata: &Device, force: bool) -> Result<Place, FsError> {
    if is_inside(superblock) {
        let (place, geometry) = (superblock.layout.place, metadata.geometry());
        if place.end() > geometry.blocks {
            let reason = format!("has {} blocks, and its metadata take {}", geometry.blocks, place.end());
            return Err(FsError::format(metadata.name(), reason));
        }
        return Ok(place);
    }
    if !force {
        refuse_used(metadata).await?;
    }
    Ok(Place::run(0, metadata.geometry().blocks))
}

/// Returns the superblock of the new metadata, which are the first copy. Any other copy is given up, and counts as
/// outdated if it returns.
fn on_metadata(superblock: &Superblock, metadata: &Device, place: Place) -> Result<Superblock, FsError> {
    let copies = superblock.metadata_members();
    let mut known = vec![0; copies.len()];
    known[0] = SALVAGED_GENERATION;
    let standing = Standing { generation: SALVAGED_GENERATION, since: SALVAGED_GENERATION, known };
    let layout = layout_on(superblock, metadata, place)?;
    // The log and the checkpoints begin anew.
    let (last_durable, format) = (LastDurable::default(), FORMAT);
    let mut own = Superblock { member: copies[0] as u32, layout, standing, last_durable, format, ..superblock.clone() };
    own.members[copies[0]].geometry = metadata.geometry();
    Ok(own)
}

fn layout_on(superblock: &Superblock, metadata: &Device, place: Place) -> Result<Layout, FsError> {
    let blocks = superblock.shape.map_or(0, |shape| shape.blocks());
    // Parts of the hot zone on drives stay there. Their contents are copied anew.
    let on_drives = superblock.hot_parts.iter().map(|part| part.blocks).sum::<u64>();
    lay_out(place, blocks, (0, on_drives)).ok_or_else(|| {
        let needed = Checksums::blocks_for(blocks + on_drives) + 128;
        let reason = format!("has {} blocks, and the metadata need {needed} at least: give a larger one", place.blocks);
        FsError::format(metadata.name(), reason)
    })
}

/// Clears the blocks for the metadata, so that their old contents are not taken for metadata.
async fn blank_all(area: &Mirror, layout: &Layout, keeps_superblock: bool) -> Result<(), FsError> {
    if !keeps_superblock {
        blank(area, (0, 2)).await?;
    }
    for (first, _) in layout.checkpoints {
        blank(area, (first, 1)).await?;
    }
    blank(area, layout.checksums).await?;
    blank(area, layout.log).await
}

/// Writes the metadata. The superblock is written last.
async fn write(
    area: &Mirror,
    superblock: &Superblock,
    checksums: &Checksums,
    namespace: &Namespace,
) -> Result<(), FsError> {
    let slot = superblock.layout.checkpoints[0];
    if namespace.encoded_bytes() > bytes_in_slot(slot.1) {
        let needed =
            namespace.encoded_bytes().div_ceil(crate::device::BLOCK_BYTES as u64) * 3 + superblock.layout.checksums.1;
        let reason = format!("is too small for what was found: about {needed} blocks are needed");
        return Err(FsError::format(&area.name(), reason));
    }
    let place = LogPlace { block: 0, frame: 1 };
    let mut writer = Writer::new(area.clone(), superblock.uuid.as_u128(), slot, 1, place);
    describe(namespace, &mut writer).await?;
    writer.finish(namespace.files()).await?;
    checksums.write_back().await?;
    area.flush().await?;
    writer.validate().await?;
    for copy in 0..2 {
        area.write(copy, &superblock.encode()).await?;
    }
    Ok(area.flush().await?)
}

async fn describe(namespace: &Namespace, writer: &mut Writer) -> Result<(), FsError> {
    writer.add(&namespace.describe_rest()).await?;
    let inodes: Vec<Inode> = namespace.nodes_from(0).map(|(inode, _)| inode).collect();
    for some in inodes.chunks(AT_ONCE) {
        let mut changes = Vec::new();
        some.iter().for_each(|inode| namespace.describe(*inode, &mut changes));
        writer.add(&changes).await?;
    }
    for inode in inodes {
        let mut from = Some(0);
        while let Some(cookie) = from {
            let mut changes = Vec::new();
            from = namespace.describe_names(inode, cookie, AT_ONCE, &mut changes);
            writer.add(&changes).await?;
        }
    }
    Ok(())
}
