//! Consistency checks of a file system at mount, before it is used: positions in the log and in the checkpoint,
//! checksums, the array, extents of files. Each error names the fault and its place.
//!
//! Numbers that are invalid by themselves are refused where they are decoded ([`crate::format`]).

use crate::device::Geometry;
use crate::error::FsError;
use crate::format::change::Extent;
use crate::format::limits::{COUNT_END, COUNT_FAR};
use crate::format::shape::{DRIVES_MAX, Shape, zones_of};
use crate::format::superblock::Superblock;
use crate::journal::checkpoint::Header;
use crate::journal::checksums::STAMP_GENERATIONS;
use crate::namespace::{Groups, Namespace};

/// Number of findings that an error names; `imbrex fs check` lists all.
const NAMED: usize = 3;
/// Advice in errors about inconsistent metadata.
const ADVICE: &str = "`imbrex fs check` lists all findings; mount it read-only (-o ro) and copy the files";

/// Factor by which a missing drive may have more zones than the largest drive that is present.
const LARGER: u64 = 1024;

/// Checks that the position in the log that a checkpoint names exists, and that its counters are below their upper
/// bound.
pub(super) fn check_header(superblock: &Superblock, header: &Header, name: &str) -> Result<(), FsError> {
    let (place, (_, blocks)) = (header.place, superblock.layout.log);
    if place.block <= blocks && place.frame < COUNT_END && header.number < COUNT_END {
        return Ok(());
    }
    let reason = format!(
        "checkpoint {} goes on with frame {} at block {} of the log, which has {blocks} blocks",
        header.number, place.frame, place.block
    );
    Err(FsError::format(name, reason))
}

/// Checks that no counter is near its overflow. Years of use do not bring a counter there.
pub(super) fn check_counts(
    superblock: &Superblock,
    header: &Header,
    groups: &Groups,
    name: &str,
) -> Result<(), FsError> {
    let sequences = groups.all().values().map(|layout| layout.sequence).chain([groups.sequence_below()]);
    let parts = (0..=u8::MAX).filter_map(|part| groups.hot_part(part)).map(|part| part.generation);
    let generation = superblock.standing.generation;
    if generation >= STAMP_GENERATIONS {
        let reason = format!(
            "the generation of its metadata is {generation}, and mounts never reach {STAMP_GENERATIONS}: {ADVICE}"
        );
        return Err(FsError::format(name, reason));
    }
    let others = [superblock.writes, header.number, header.place.frame];
    match sequences.chain(parts).chain(others).max() {
        Some(most) if most >= COUNT_FAR => {
            let reason =
                format!("has {most} as a number of a generation, frame or sequence, which no use reaches: {ADVICE}");
            Err(FsError::format(name, reason))
        }
        _ => Ok(()),
    }
}

/// Checks that the checksums of a record belong to blocks that the table of checksums has.
pub(super) fn check_sums(superblock: &Superblock, block: u64, count: usize, name: &str) -> Result<(), FsError> {
    let (end, blocks) = (block.saturating_add(count as u64), superblock.hot_base() + superblock.hot_blocks());
    if end <= blocks {
        return Ok(());
    }
    let reason = format!("a record of the log has checksums of blocks {block} to {end}, and there are only {blocks}");
    Err(FsError::format(name, reason))
}

/// Checks that the names of files form a tree. If they do not, a mount for writing is refused, as it would do more
/// damage.
pub(super) fn check_namespace(namespace: &Namespace, name: &str) -> Result<(), FsError> {
    let wrong = namespace.self_check();
    if wrong.is_empty() {
        return Ok(());
    }
    let more = wrong.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let first = wrong[..wrong.len().min(NAMED)].join("; ");
    Err(FsError::format(name, format!("its directory tree is inconsistent: {first}{more}: {ADVICE}")))
}

/// Checks that drives that were added later have numbers and UUIDs of their own, and replace only drives with smaller
/// numbers.
pub(super) fn check_drives(superblock: &Superblock, groups: &Groups, name: &str) -> Result<(), FsError> {
    let wrong = |reason: String| Err(FsError::format(name, reason));
    let made_with = superblock.data_members();
    let mut uuids: Vec<(u128, u8)> = Vec::new();
    for number in 0..=u8::MAX - 1 {
        let record = groups.drives().get(&number);
        let made = made_with.get(usize::from(number)).map(|&member| superblock.members[member].uuid.as_u128());
        let Some(uuid) = record.map(|record| record.uuid).or(made) else { continue };
        if let Some(old) = record.and_then(|record| record.replaces).filter(|old| *old >= number) {
            return wrong(format!("drive {number} of its array replaces drive {old}, which came later"));
        }
        if record.is_some() && made.is_some_and(|made| uuid != made && uuid != 0) {
            return wrong(format!("drive {number} of its array has another UUID than the drive that it was made with"));
        }
        if let Some((_, other)) = uuids.iter().find(|(other, _)| *other == uuid && uuid != 0) {
            return wrong(format!("drives {other} and {number} of its array have the same UUID"));
        }
        uuids.push((uuid, number));
    }
    let there = uuids.iter().filter(|(uuid, _)| *uuid != 0).count();
    if there > 2 * DRIVES_MAX {
        return wrong(format!("its array has {there} drives, and may have {DRIVES_MAX}, each with one replacement"));
    }
    Ok(())
}

/// Checks that the array has no more stripe groups than its drives have zones for. `there` are the drives that are
/// present. The size of a missing drive is known only from the superblock, and is capped at `LARGER` times that of the
/// largest drive present.
pub(crate) fn check_groups(
    superblock: &Superblock,
    shape: Shape,
    there: &[Geometry],
    name: &str,
) -> Result<(), FsError> {
    let zones = |geometry: &Geometry| u64::from(zones_of(geometry, shape.zone_blocks, 0));
    let found: Vec<u64> = there.iter().map(zones).collect();
    let most = found.iter().max().copied().unwrap_or(0).saturating_mul(LARGER).saturating_add(LARGER);
    let members = superblock.data_members().into_iter().map(|number| &superblock.members[number].geometry);
    let listed: u64 = members.map(|geometry| zones(geometry).min(most)).sum();
    let room = found.iter().sum::<u64>().max(listed) / (1 + u64::from(shape.parity));
    if u64::from(shape.groups) <= room {
        return Ok(());
    }
    let reason = format!("its array has {} stripe groups, and its drives have zones for {room}", shape.groups);
    Err(FsError::format(name, reason))
}

/// Checks that no block belongs to two extents of files, or to one and to a preallocated run.
pub(super) fn check_apart(superblock: &Superblock, namespace: &Namespace, name: &str) -> Result<(), FsError> {
    let stored = namespace.nodes_from(0).map(|(inode, node)| (inode, &node.extents));
    // Other stores reserve an amount of room, and no particular blocks.
    let kept = namespace.all_preallocated().filter(|_| superblock.store == "caveat");
    let pieces = stored.chain(kept);
    let mut all: Vec<(Extent, u32)> =
        pieces.flat_map(|(inode, extents)| extents.as_slice().iter().map(move |extent| (*extent, inode))).collect();
    all.sort_unstable_by_key(|(extent, inode)| (extent.start, *inode));
    for pair in all.windows(2) {
        let [(one, owner), (other, next)] = [pair[0], pair[1]];
        if one.start + u64::from(one.blocks) > other.start {
            let (start, end) = (other.start, other.start + u64::from(other.blocks));
            return Err(FsError::format(
                name,
                format!("blocks {start} to {end} are of file {next} and of file {owner}"),
            ));
        }
    }
    Ok(())
}
