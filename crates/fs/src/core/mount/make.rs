//! Making a file system: the layout of its metadata, and the first blocks of its devices.

use imbrex_safety::{Contents, contents};
use imbrex_units::quantity::Rounding;
use uuid::Uuid;

use super::make_hot::{hot_option, hot_parts};
use super::make_options::{MakeOptions, Parts, size_of_blocks};
use super::members::parts;
use crate::array::{Array, Data};
use crate::block_run::BlockRun;
use crate::core::files::names::root_attributes;
use crate::core::repair::check_drive::check_drive;
use crate::device::area::Place;
use crate::device::{BLOCK_BYTES, Device, Geometry, Kind};
use crate::error::FsError;
use crate::format::change::{Change, NODE_BYTES};
use crate::format::hot_part::HotPart;
use crate::format::limits::LOG_BLOCKS_MIN;
use crate::format::shape::{DRIVES_MAX, PARITY_MAX, Shape, zones_of};
use crate::format::superblock::{FORMAT, LastDurable, Layout, MIRRORS_MAX, Member, Role, Standing, Superblock};
use crate::journal::checkpoint::{self, Writer};
use crate::journal::log::LogPlace;
use crate::journal::mirror::State;
use crate::journal::{Checksums, Mirror};
use crate::namespace::{Groups, ROOT};
use crate::store;

/// Estimated bytes of metadata per file: an inode, a directory entry with a name of 16 bytes, and an extent.
const FILE_BYTES: u64 = NODE_BYTES + 21 + 16 + 13 + 16;
/// Upper bound of the log's size, in blocks.
const LOG_BLOCKS_MAX: u64 = 64 << 10;
/// Approximate number of zones into which the smallest drive of an array without zoned drives is divided.
/// `CUT_BLOCKS_MIN` and `CUT_BLOCKS_MAX` bound the blocks of a zone.
const CUT_ZONES: u64 = 256;
const CUT_BLOCKS_MIN: u64 = 16;
const CUT_BLOCKS_MAX: u64 = 65_536;
/// Number of blocks that one write fills with zeros.
const BLANK_BLOCKS: u64 = 256;

/// Planned layout of a file system on its devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Superblock of the file system, with member number 0. Each device gets it with its own member number, in its
    /// first block and, except for caveat disks without metadata, also in its second block.
    pub superblock: Superblock,
    /// Estimated number of files that the space for metadata allows.
    pub files: u64,
}

/// Plans the layout of a file system on `parts`. Only the geometries of the devices are used; nothing is read or
/// written.
///
/// # Errors
/// [`FsError::Format`] if no drive is given, or if the devices do not suit the options or one another, or are too
/// small.
pub fn plan(parts: Parts<'_>, options: &MakeOptions) -> Result<Plan, FsError> {
    let (drives, metadata) = (parts.drives, parts.metadata);
    let Some(first) = drives.first() else { return Err(FsError::format("no device", "give at least one")) };
    let geometry = first.geometry();
    let wrong = |reason: &str| FsError::format(first.name(), reason);
    let is_array = drives.len() > 1 || options.parity > 0;
    let default = store::default_for(&geometry.kind).filter(|_| !is_array);
    let Some(store) = options.store.as_deref().or(default).or(is_array.then_some("log")) else {
        return Err(wrong(
            "takes writes in any order, as conventional and drive-managed drives do, and only store log can use it (--store \
             log); for another store, make an emulated drive with `imbrex drive create FILE --drive strict-append`",
        ));
    };
    if store != "log" && is_array {
        return Err(wrong(&format!("store '{store}' takes one drive and no parity; store log takes several")));
    }
    if !store::suits(store, &geometry.kind) {
        return Err(wrong(&store::unfit(store, &geometry.kind)));
    }
    if metadata.len() > MIRRORS_MAX {
        return Err(FsError::format(
            metadata[0].name(),
            format!("there are at most {MIRRORS_MAX} copies of the metadata"),
        ));
    }
    let smallest = metadata.iter().map(|device| device.geometry().blocks).min();
    metadata.iter().try_for_each(|device| check_for_metadata(device, smallest.unwrap_or(0)))?;
    let (place, data_run) = match smallest {
        Some(blocks) => (Place::run(0, blocks), outside_part(&geometry.kind, geometry.blocks)),
        None if is_array => {
            return Err(wrong("is one of an array: give the metadata a device of their own with --meta"));
        }
        None => inside(first, options)?,
    };
    if data_run.1 == 0 {
        return Err(wrong("is too small: nothing is left for data"));
    }
    if let Some(spare) = parts.spares.first().filter(|_| store != "log" || options.parity == 0) {
        return Err(FsError::format(spare.name(), "a spare is for arrays with parity (--store log --parity M)"));
    }
    let hot_option = hot_option(parts, options).map_err(|reason| wrong(&reason))?;
    if options.hot_blocks > 0 && store != "log" {
        return Err(wrong(&format!("store '{store}' has no hot zone; store log has")));
    }
    let hot_parts = hot_parts(parts, options).map_err(|reason| wrong(&reason))?;
    let shape = if store == "log" { Some(shape_of(parts, place, options, &hot_parts)?) } else { None };
    if let Some(shape) = shape {
        parts.spares.iter().try_for_each(|spare| check_drive(spare, shape.zone_blocks))?;
    }
    let data = shape.map_or(data_run, |shape| (0, shape.blocks()));
    let of_data = if shape.is_some() { data.1 } else { geometry.blocks };
    let hot = if hot_parts.is_empty() { (options.hot_blocks, 0) } else { (0, options.hot_blocks) };
    let layout = lay_out(place, of_data, hot).ok_or_else(|| {
        let (zone, smaller) = match hot.0 {
            0 => (String::new(), ""),
            blocks => (
                format!(" and a hot zone of {}", size_of_blocks(blocks, Rounding::Nearest)),
                ", or ask for a smaller one",
            ),
        };
        let least = size_of_blocks(least_place(of_data, hot), Rounding::Up);
        let [given, data] = [place.blocks, of_data].map(|blocks| size_of_blocks(blocks, Rounding::Nearest));
        wrong(&format!("{given} of metadata are too few for {data} of data{zone}: give {least} or more{smaller}"))
    })?;
    let options = MakeOptions { options: [options.options.as_slice(), &hot_option].concat(), ..options.clone() };
    Ok(plan_of(parts, &options, (store, data, layout, shape, hot_parts)))
}

fn plan_of(
    parts: Parts<'_>,
    options: &MakeOptions,
    (store, data, layout, shape, hot_parts): (&str, (u64, u64), Layout, Option<Shape>, Vec<HotPart>),
) -> Plan {
    let uuid = options.uuid.unwrap_or_else(Uuid::new_v4);
    let member = |(number, (device, role)): (usize, (&Device, Role))| {
        let uuid = Uuid::from_u128(uuid.as_u128().wrapping_add(1 + number as u128));
        Member { uuid, role, geometry: device.geometry() }
    };
    let members = parts.all().enumerate().map(member).collect();
    let options = options.options.clone();
    let standing = Standing::of(parts.metadata.len().max(1));
    let superblock = Superblock {
        uuid,
        member: 0,
        store: store.into(),
        options,
        data,
        layout,
        members,
        shape,
        standing,
        last_durable: LastDurable::default(),
        writes: 0,
        hot_parts,
        taken_part: None,
        format: FORMAT,
    };
    let files = layout.checkpoints[0].1 * BLOCK_BYTES as u64 / FILE_BYTES;
    Plan { superblock, files }
}

/// Returns the shape of an array: size of its zones, data width, parity and number of stripe groups. Fails if the drives
/// cannot form an array.
fn shape_of(parts: Parts<'_>, place: Place, options: &MakeOptions, hot_parts: &[HotPart]) -> Result<Shape, FsError> {
    let (drives, has_metadata) = (parts.drives, parts.metadata.is_empty());
    let wrong = |device: &Device, reason: String| Err(FsError::format(device.name(), reason));
    let parity = options.parity;
    if drives.len() > DRIVES_MAX || parity > PARITY_MAX || usize::from(parity) >= drives.len() {
        let reason = format!(
            "an array has 1 to {DRIVES_MAX} drives, up to {PARITY_MAX} of them parity and at least one data; these are {} with \
             parity {parity}",
            drives.len()
        );
        return wrong(&drives[0], reason);
    }
    let mut zone_blocks = None;
    for drive in drives {
        let of_drive = match drive.geometry().kind {
            Kind::Zoned { zone_blocks, .. } => zone_blocks,
            Kind::Plain => continue,
            Kind::Caveat { .. } => return wrong(drive, store::unfit("log", &drive.geometry().kind)),
        };
        let (first, other) = *zone_blocks.get_or_insert((of_drive, drive.name()));
        if of_drive != first {
            let reason = format!(
                "has zones of {of_drive} blocks, and {other} of {first}: zoned drives of an array have zones of one size"
            );
            return wrong(drive, reason);
        }
    }
    let smallest = drives.iter().map(|drive| drive.geometry().blocks).min().unwrap_or(0);
    let cut = (smallest / CUT_ZONES).clamp(CUT_BLOCKS_MIN, CUT_BLOCKS_MAX).next_power_of_two();
    let zone_blocks = zone_blocks.map_or(cut, |(blocks, _)| blocks);
    let zones = |(number, drive): (usize, &Device)| {
        let part = hot_parts.iter().find(|part| usize::from(part.drive) == number);
        let first = match (has_metadata, drive.geometry().kind) {
            (false, _) => part.map_or(1, |part| part.first_zone_behind(zone_blocks)),
            (true, Kind::Zoned { conventional, .. }) => conventional,
            (true, _) => place.end().div_ceil(zone_blocks) as u32,
        };
        u64::from(zones_of(&drive.geometry(), zone_blocks, first))
    };
    let all: u64 = drives.iter().enumerate().map(zones).sum();
    let width = drives.len() as u8 - parity;
    let groups = (all / (1 + u64::from(parity))).min(u64::from(u32::MAX)) as u32;
    if groups < 2 {
        return wrong(&drives[0], format!("is too small: the array has {all} zones of {zone_blocks} blocks"));
    }
    Ok(Shape { parity, width, zone_blocks, groups })
}

/// Returns the run for data, as first block and count, of a device whose metadata are elsewhere. The run begins behind
/// the superblock and the blocks that a write of the superblock destroys. On a zoned drive it begins behind the
/// conventional zones, or behind the first zone if there are none.
fn outside_part(kind: &Kind, blocks: u64) -> (u64, u64) {
    let first = match *kind {
        Kind::Plain => 1,
        Kind::Zoned { zone_blocks, conventional, .. } => u64::from(conventional.max(1)) * zone_blocks,
        Kind::Caveat { isolation, no_overlap } => 1 + isolation.max(no_overlap),
    };
    (first, blocks.saturating_sub(first))
}

/// Returns the place of the metadata, and the run for data (first block, count), if both are on `device`. Fails if the
/// device has no room for them.
fn inside(device: &Device, options: &MakeOptions) -> Result<(Place, (u64, u64)), FsError> {
    let geometry = device.geometry();
    let wanted = options.metadata_blocks.unwrap_or((geometry.blocks / 64).max(256) + options.hot_blocks);
    let place = match geometry.kind {
        Kind::Zoned { zone_blocks, conventional, .. } => {
            let there = u64::from(conventional) * zone_blocks;
            if there == 0 {
                let reason = "has no conventional zones for metadata: give them a device of their own with --meta";
                return Err(FsError::format(device.name(), reason));
            }
            let blocks = options.metadata_blocks.unwrap_or(there).min(there);
            let first = there;
            return Ok((Place::run(0, blocks), (first, geometry.blocks - first)));
        }
        Kind::Caveat { isolation, no_overlap } => Place::islands(wanted, no_overlap, isolation),
        Kind::Plain => Place::run(0, wanted),
    };
    let first = place.end();
    if first >= geometry.blocks {
        let reason = format!(
            "{wanted} blocks of metadata take {first} of its {} blocks: ask for fewer, or give them a device of their own \
             with --meta",
            geometry.blocks
        );
        return Err(FsError::format(device.name(), reason));
    }
    Ok((place, (first, geometry.blocks - first)))
}

/// Returns the smallest number of metadata blocks for which [`lay_out`] returns a layout.
fn least_place(data_blocks: u64, (in_place, on_drives): (u64, u64)) -> u64 {
    let blocks = data_blocks.saturating_add(in_place).saturating_add(on_drives);
    2 + Checksums::blocks_for(blocks) + in_place + 4 * LOG_BLOCKS_MIN
}

/// Returns the layout of the metadata in `place`: two superblocks, checksums, log, two checkpoint slots and hot zone.
/// The hot zone has `hot_blocks` blocks in `place`, and `on_drives` blocks elsewhere that need checksums, too. `None` if
/// `place` is too small.
pub(crate) fn lay_out(place: Place, data_blocks: u64, (hot_blocks, on_drives): (u64, u64)) -> Option<Layout> {
    let checksums = (2, Checksums::blocks_for(data_blocks.checked_add(hot_blocks)?.checked_add(on_drives)?));
    let left = place.blocks.checked_sub(2 + checksums.1)?.checked_sub(hot_blocks)?;
    let log_blocks = (left / 4).min(LOG_BLOCKS_MAX);
    if log_blocks < LOG_BLOCKS_MIN {
        return None;
    }
    let log = (checksums.0 + checksums.1, log_blocks);
    let slot = (left - log_blocks) / 2;
    let first = log.0 + log.1;
    let hot = (if hot_blocks > 0 { first + 2 * slot } else { 0 }, hot_blocks);
    Some(Layout { place, checksums, log, checkpoints: [(first, slot), (first + slot, slot)], hot })
}

/// Returns the largest size, in bytes of changes, of a checkpoint in a slot of `blocks` blocks.
pub(crate) fn bytes_in_slot(blocks: u64) -> u64 {
    let (mut low, mut high) = (0, blocks * BLOCK_BYTES as u64);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if checkpoint::blocks_for(middle) <= blocks {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Makes a file system on the drive `data`, with its metadata on the device `metadata` or, if that is `None`, on
/// `data`. The previous contents are lost: sequential zones are reset, and the signatures found by the last
/// [`Device::survey`] are overwritten. Other old data are not erased. `time_ns`, in nanoseconds since 1970, becomes the
/// time of the root directory. The file system is durable when this returns.
///
/// # Errors
/// [`FsError::Format`] if a device holds a file system of Imbrex and [`MakeOptions::overwrite`] is not set, if the
/// devices do not suit the options, if the store refuses its options, or if the metadata cannot be written.
/// [`FsError::Device`] if another operation of a device fails.
pub async fn make(
    data: &Device,
    metadata: Option<&Device>,
    options: &MakeOptions,
    time_ns: i64,
) -> Result<Plan, FsError> {
    let (drives, metadata) = (std::slice::from_ref(data), metadata.map_or(&[][..], std::slice::from_ref));
    make_on(Parts { drives, metadata, spares: &[] }, options, time_ns).await
}

/// Makes a file system on `parts`: one or more drives, one or more copies of the metadata, and spares. Returns its
/// layout. The previous contents are lost: sequential zones are reset, and the signatures found by the last
/// [`Device::survey`] are overwritten. Other old data are not erased. `time_ns`, in nanoseconds since 1970, becomes the
/// time of the root directory. The file system is durable when this returns.
///
/// # Errors
/// [`FsError::Format`] if a device holds a file system of Imbrex and [`MakeOptions::overwrite`] is not set, if [`plan`]
/// fails, if the store refuses its options, or if a copy of the metadata cannot be written. [`FsError::Device`] if
/// another operation of a device fails.
pub async fn make_on(parts: Parts<'_>, options: &MakeOptions, time_ns: i64) -> Result<Plan, FsError> {
    let plan = plan(parts, options)?;
    let superblock = &plan.superblock;
    try_store(parts.drives, superblock).await?;
    if !options.overwrite {
        for (device, _) in parts.all() {
            refuse_used(device).await?;
        }
    }
    for (device, _) in parts.all() {
        erase(device).await?;
    }
    let copies = if parts.metadata.is_empty() { &parts.drives[..1] } else { parts.metadata };
    let copies = copies.iter().enumerate().map(|(slot, device)| (slot, device.clone(), true)).collect();
    let area = Mirror::new(superblock, copies, false);
    write_metadata(&area, superblock, time_ns).await?;
    area.write_labels().await?;
    for (number, (drive, _)) in
        parts.all().enumerate().filter(|(_, (_, role))| matches!(role, Role::Data | Role::Spare))
    {
        let own = Superblock { member: number as u32, ..superblock.clone() };
        write_superblock(drive, &own).await?;
    }
    let failed = area.copies().into_iter().find(|(.., state)| *state != State::Current);
    match failed {
        Some((_, name, _)) => Err(FsError::format(&name, "cannot be written")),
        None => Ok(plan),
    }
}

/// Writes the superblock of a drive that holds no metadata; it is durable on return. It is written to the first two
/// blocks, but on a caveat disk only to the first, as the second is not free there.
pub(in crate::core) async fn write_superblock(drive: &Device, own: &Superblock) -> Result<(), FsError> {
    let copies = if matches!(drive.geometry().kind, Kind::Caveat { .. }) { 1 } else { 2 };
    drive.write(0, own.encode().repeat(copies)).await?;
    drive.flush().await?;
    close_first_zone(drive).await
}

/// Fails if `device` cannot hold a copy of the metadata of `blocks` blocks: they must be writable in any order.
pub(in crate::core) fn check_for_metadata(device: &Device, blocks: u64) -> Result<(), FsError> {
    let geometry = device.geometry();
    let (anywhere, kind) = match geometry.kind {
        Kind::Plain => (geometry.blocks, String::new()),
        Kind::Zoned { zone_blocks, conventional, .. } => {
            (u64::from(conventional) * zone_blocks, " that can be written in any order, as a zoned drive".into())
        }
        Kind::Caveat { .. } => (0, " that can be written in any order, as a caveat drive".into()),
    };
    if anywhere >= blocks {
        return Ok(());
    }
    let advice = "give flash, a conventional drive or a file";
    Err(FsError::format(
        device.name(),
        format!("has {anywhere} blocks{kind}, and the metadata take {blocks}: {advice}"),
    ))
}

/// Creates the store as a mount would, and drops it. So errors of the store are reported before anything is erased.
async fn try_store(drives: &[Device], superblock: &Superblock) -> Result<(), FsError> {
    let data = match superblock.shape {
        Some(shape) => {
            let numbers = superblock.data_members();
            let named = numbers.iter().zip(drives).map(|(&number, drive)| (superblock.members[number].uuid, drive));
            let devices = named.map(|(uuid, drive)| (uuid, Some(drive.clone()))).collect();
            let parts = parts(superblock, shape, devices, &Groups::default());
            Data::Array(Array::assemble(superblock.uuid, shape, parts, &Groups::default(), true).await?)
        }
        None => Data::Drive(drives[0].clone()),
    };
    let zones = data.zones().await?;
    let zones = Some(&zones[..]).filter(|zones| !zones.is_empty());
    let option = |key: &str| superblock.options.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
    let run = BlockRun { start: superblock.data.0, blocks: superblock.data.1 };
    store::make(&superblock.store, &data, run, zones, option).map(drop)
}

/// Finishes the zone with the superblock if it is sequential. Nothing more is written there, and it must not count as an
/// open zone.
async fn close_first_zone(drive: &Device) -> Result<(), FsError> {
    match drive.geometry().kind {
        Kind::Zoned { conventional: 0, .. } => Ok(drive.finish(0).await?),
        _ => Ok(()),
    }
}

/// Fails if `device` holds a file system of Imbrex.
pub(crate) async fn refuse_used(device: &Device) -> Result<(), FsError> {
    // An unreadable block holds no superblock. On a new caveat disk every block is unreadable.
    let Ok(block) = device.read(0, 1).await else { return Ok(()) };
    if Superblock::decode(&block).is_ok() || Superblock::unknown_format(&block).is_some() {
        let reason = "holds a file system already; --force overwrites it";
        return Err(FsError::format(device.name(), reason));
    }
    Ok(())
}

/// Erases a device that a file system is about to use. Resets its sequential zones, and overwrites the signatures that
/// the last [survey](Device::survey) found, so that no program recognizes the former contents.
pub(crate) async fn erase(device: &Device) -> Result<(), FsError> {
    let contents = device.former_contents();
    wipe_rest(device, &contents)?;
    empty_zones(device).await?;
    for block in contents::blocks_to_wipe(&contents) {
        if !is_written_in_place(&device.geometry(), block) {
            continue;
        }
        // An unreadable block holds no signature.
        let Ok(mut bytes) = device.read(block, 1).await else { continue };
        contents::wipe(&contents, block, &mut bytes);
        device.write(block, bytes).await?;
    }
    Ok(())
}

/// Overwrites the signatures behind the last whole block of the device. Those of a zoned drive are in sequential zones,
/// which are reset.
fn wipe_rest(device: &Device, contents: &[Contents]) -> Result<(), FsError> {
    let Geometry { blocks, kind } = device.geometry();
    let end = blocks * BLOCK_BYTES as u64;
    let is_behind = |one: &&Contents| one.place.1 > 0 && one.place.0 + one.place.1 > end;
    let behind: Vec<Contents> = contents.iter().filter(is_behind).cloned().collect();
    let (Some(first), false) = (behind.first(), matches!(kind, Kind::Zoned { .. })) else { return Ok(()) };
    device.wipe_rest(&behind).map_err(|error| {
        let reason = format!("holds {first} behind its last whole block of 4 KiB, which cannot be erased: {error}");
        FsError::format(device.name(), reason)
    })
}

/// Returns whether `block` can be overwritten in place. False behind the last whole block of the device, which no file
/// system uses.
fn is_written_in_place(geometry: &Geometry, block: u64) -> bool {
    let end = match geometry.kind {
        Kind::Zoned { zone_blocks, conventional, .. } => u64::from(conventional) * zone_blocks,
        _ => geometry.blocks,
    };
    block < end.min(geometry.blocks)
}

async fn empty_zones(device: &Device) -> Result<(), FsError> {
    let Kind::Zoned { conventional, .. } = device.geometry().kind else { return Ok(()) };
    let states = device.zones().await?;
    for zone in conventional..states.len() as u32 {
        if states[zone as usize].written > 0 {
            device.reset(zone).await?;
        }
    }
    Ok(())
}

/// Writes the first metadata: an empty log, an empty table of checksums, and a checkpoint with the root directory. Old
/// blocks are filled with zeros where they could be taken for new ones, or are unreadable.
async fn write_metadata(area: &Mirror, superblock: &Superblock, time_ns: i64) -> Result<(), FsError> {
    let Layout { checksums, log, checkpoints, .. } = superblock.layout;
    blank(area, checksums).await?;
    // On a caveat disk a block that was never written is unreadable, and a replay reads the log up to the first unused
    // block.
    let is_caveat = matches!(area.device().geometry().kind, Kind::Caveat { .. });
    blank(area, if is_caveat { log } else { (log.0, 1) }).await?;
    for (first, _) in checkpoints {
        blank(area, (first, 1)).await?;
    }
    let place = LogPlace { block: 0, frame: 1 };
    let mut writer = Writer::new(area.clone(), superblock.uuid.as_u128(), checkpoints[0], 1, place);
    let root = Change::Node { inode: ROOT, attributes: root_attributes(time_ns) };
    writer.add(&[Change::Generations { below: 1 }, root]).await?;
    writer.finish(1).await?;
    area.flush().await?;
    writer.validate().await?;
    Ok(())
}

/// Fills `blocks` blocks from `first` on with zeros. Skips holes of a file, which read as zeros already.
pub(crate) async fn blank(area: &Mirror, (first, blocks): (u64, u64)) -> Result<(), FsError> {
    let zeros = vec![0; BLANK_BLOCKS.min(blocks) as usize * BLOCK_BYTES];
    let mut next = first;
    loop {
        next = area.next_data(next);
        if next >= first + blocks {
            return Ok(());
        }
        let count = (first + blocks - next).min(BLANK_BLOCKS);
        area.write(next, &zeros[..count as usize * BLOCK_BYTES]).await?;
        next += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_place_that_an_error_tells_is_enough_and_a_block_less_is_not() {
        for (data, hot) in [(1, (0, 0)), (1024, (7, 0)), (485_488_836, (0, 1 << 20)), (4_854_888_360, (1 << 20, 0))] {
            let least = least_place(data, hot);
            assert!(lay_out(Place::run(0, least), data, hot).is_some(), "{data} and {hot:?} in {least}");
            assert!(lay_out(Place::run(0, least - 1), data, hot).is_none(), "{data} and {hot:?} in less than {least}");
        }
    }
}
