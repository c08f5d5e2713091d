//! The drives of a file system without metadata, and the stripe groups on the drives, as the first blocks of drives and
//! zones describe them.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::Salvaged;
use super::replaced::{gone, leave_out};
use super::zone::Zone;
use crate::array::Array;
use crate::array::zone_header::ZoneHeader;
use crate::core::look;
use crate::core::made::{check_enough, check_groups, check_member, drives_of, has_checkpoint, parts};
use crate::device::{Device, Geometry, ZoneCondition, ZoneState};
use crate::error::FsError;
use crate::format::change::{Change, GroupLayout, ZoneOf};
use crate::format::shape::{Shape, zones_of};
use crate::format::superblock::{Role, Superblock};
use crate::journal::mirror::Mirror;
use crate::namespace::Namespace;

/// A given drive, and its UUID.
pub(super) struct Given {
    device: Device,
    uuid: Uuid,
    /// First zone that belongs to the array, according to the drive's own superblock.
    first: u32,
    /// Part of the hot zone that the drive took over from a drive that it replaced.
    part: Option<u8>,
}

/// The array, as far as its drives are given.
pub(super) struct Assembled {
    /// The array of the given drives, with the stripe groups that the headers of its zones name.
    pub array: Array,
    /// Changes of the metadata that add the drives with which the array was not made, and drop the removed drives.
    pub drives: Vec<Change>,
}

impl Assembled {
    /// Returns the numbers of the groups, in the order in which the groups were opened.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut groups: Vec<(u64, u32)> =
            self.array.groups().iter().map(|(group, layout, _)| (layout.sequence, *group)).collect();
        groups.sort_unstable();
        groups.into_iter().map(|(_, group)| group).collect()
    }
}

/// Reads the superblocks of `drives`. Returns the superblock of the file system as it was made, and the drives with
/// data.
///
/// # Errors
/// Nothing can be salvaged, or, without `force`, the metadata can be read.
pub(super) async fn look_at(
    drives: &[Device],
    metadata: &Device,
    force: bool,
) -> Result<(Superblock, Vec<Given>), FsError> {
    let mut found: Vec<(Superblock, Device)> = Vec::new();
    for device in drives {
        let superblock = look(device).await?;
        if let Some((other, first)) = found.first().filter(|(other, _)| other.uuid != superblock.uuid) {
            let reason = format!("belongs to file system {}, and {} to {}", superblock.uuid, first.name(), other.uuid);
            return Err(FsError::format(device.name(), reason));
        }
        let uuid = superblock.own().uuid;
        if let Some((_, other)) = found.iter().find(|(other, _)| other.own().uuid == uuid) {
            let name = other.name();
            let reason = format!("is the same device as {name} ({uuid}): one is a copy of the other; give one of them");
            return Err(FsError::format(device.name(), reason));
        }
        found.push((superblock, device.clone()));
    }
    let Some((first, device)) = found.first() else {
        return Err(FsError::format("no device", "give the drives with the data"));
    };
    if first.shape.is_none() {
        let reason = format!(
            "is of store {}, whose data carry no records: its metadata cannot be recovered (only store log has \
             records)",
            first.store
        );
        return Err(FsError::format(device.name(), reason));
    }
    // The old device of the metadata may have had another size than its successor.
    let drives = || found.iter().filter(|(superblock, _)| superblock.own().role != Role::Metadata);
    for (superblock, _) in &found {
        drives().try_for_each(|(other, device)| check_member(superblock, other.own().uuid, device))?;
    }
    for (superblock, device) in &found {
        let Some(slot) = superblock.slot().filter(|_| !force) else { continue };
        let copy = Mirror::new(superblock, vec![(slot, device.clone(), true)], true);
        if has_checkpoint(&copy, superblock).await {
            let reason = "its metadata can be read: `imbrex fs mount` it, with -o ro if it is damaged; --force salvages all the same";
            return Err(FsError::format(device.name(), reason));
        }
    }
    let own = |superblock: &Superblock| superblock.members[superblock.member as usize];
    let mut superblock = first.clone();
    // A drive that joined the array later lists itself behind the others.
    let made_with = superblock.members.iter().rposition(|member| member.role != Role::Data).map_or(0, |last| last + 1);
    superblock.members.truncate(made_with.max(1));
    superblock.taken_part = None;
    if own_role(&superblock) == Role::Both && !metadata.is(device) && metadata.name() != device.name() {
        let reason = "its metadata lay on the drive itself, and go there again: give it as the device for them too";
        return Err(FsError::format(device.name(), reason));
    }
    let is_taken = |(superblock, device): &&(Superblock, Device)| {
        matches!(own(superblock).role, Role::Data | Role::Spare)
            && (metadata.is(device) || metadata.name() == device.name())
    };
    if let Some((_, device)) = found.iter().find(is_taken) {
        return Err(FsError::format(device.name(), "holds data: give another device for the new metadata"));
    }
    let data = found.iter().filter(|(superblock, _)| own(superblock).role != Role::Metadata);
    let given: Vec<Given> = data.map(|(superblock, device)| given(superblock, device)).collect();
    if given.is_empty() {
        return Err(FsError::format(device.name(), "holds no data: give the drives with the data"));
    }
    Ok((superblock, given))
}

/// Returns a drive as its own superblock describes it.
fn given(superblock: &Superblock, device: &Device) -> Given {
    let first = superblock.own_first_zone(superblock.shape.map_or(1, |shape| shape.zone_blocks));
    Given { device: device.clone(), uuid: superblock.own().uuid, first, part: superblock.taken_part }
}

fn own_role(superblock: &Superblock) -> Role {
    superblock.members[superblock.metadata_members()[0]].role
}

/// Assembles the array from the given drives, with the groups of which enough zones were found. The other groups are
/// counted.
pub(super) async fn assemble(superblock: &Superblock, given: &[Given]) -> Result<(Assembled, Salvaged), FsError> {
    let shape = superblock.shape.expect("it was looked at");
    let (mut zones, mut unknown, mut salvaged) = (Vec::new(), BTreeMap::new(), Salvaged::default());
    let there: Vec<Geometry> = given.iter().map(|drive| drive.device.geometry()).collect();
    check_groups(superblock, shape, &there, given[0].device.name())?;
    for drive in given {
        let of_drive = unknown.entry(drive.uuid).or_default();
        zones.extend(zones_that_say(drive, superblock.uuid, shape, of_drive).await?);
    }
    let numbers = numbers_of(superblock, &zones);
    let gone = gone(&zones);
    let replaced = leave_out(&mut zones, &gone, &numbers, superblock.data_members().len());
    let name = |(uuid, _): (&Uuid, &bool)| {
        let drive = given.iter().find(|drive| drive.uuid == *uuid);
        drive.map_or(String::new(), |drive| drive.device.name().into())
    };
    salvaged.replaced = replaced.iter().filter(|(_, is_needed)| !**is_needed).map(name).collect();
    salvaged.standing_in = replaced.iter().filter(|(_, is_needed)| **is_needed).map(name).collect();
    let given: Vec<&Given> = given.iter().filter(|drive| replaced.get(&drive.uuid) != Some(&false)).collect();
    let Some(first) = given.first() else {
        let reason = "others have the place of all drives that were given: give those too";
        return Err(FsError::format(&salvaged.replaced.join(", "), reason));
    };
    let name = first.device.name();
    salvaged.unknown_zones = given.iter().map(|drive| unknown[&drive.uuid]).sum();
    let mut namespace = Namespace::new(superblock.uuid.as_u128());
    let groups;
    (groups, salvaged.unreadable_groups) = groups_of(shape, &zones, &numbers, zones_max(&given, shape));
    let mut changes = Vec::new();
    let is_given = |uuid: &Uuid| given.iter().any(|drive| drive.uuid == *uuid);
    let made_with = superblock.data_members().len();
    for (uuid, number) in numbers.iter().filter(|(_, number)| usize::from(**number) >= made_with) {
        // The data of a removed drive were moved to another drive, which is missing too.
        let is_gone = gone.contains(number) && !is_given(uuid);
        let uuid_now = if is_gone { 0 } else { uuid.as_u128() };
        changes.push(Change::Drive { number: *number, uuid: uuid_now, replaces: None });
        let part = given.iter().find(|drive| drive.uuid == *uuid).and_then(|drive| drive.part);
        changes.extend(part.map(|part| Change::HotPart { part, drive: *number, has_room: true, generation: 0 }));
    }
    let is_used = |number: u8| groups.values().any(|layout| layout.members.iter().any(|at| at.drive == number));
    for (number, member) in superblock.data_members().into_iter().enumerate() {
        // A drive that was replaced: no group has a zone on it.
        let is_replaced = gone.contains(&(number as u8)) || !changes.is_empty() && !is_used(number as u8);
        if is_replaced && !is_given(&superblock.members[member].uuid) {
            changes.push(Change::Drive { number: number as u8, uuid: 0, replaces: None });
        }
    }
    changes.iter().for_each(|change| namespace.apply(change));
    for (group, layout) in groups {
        namespace.apply(&Change::Group { group, layout });
    }
    let find = |uuid: Uuid| given.iter().find(|drive| drive.uuid == uuid).map(|drive| drive.device.clone());
    let devices = drives_of(superblock, namespace.groups()).into_iter().map(|uuid| (uuid, find(uuid))).collect();
    let parts = parts(superblock, shape, devices, namespace.groups());
    check_enough(name, shape, &parts, namespace.groups())?;
    let array = Array::assemble(superblock.uuid, shape, parts, namespace.groups(), true).await?;
    Ok((Assembled { array, drives: changes }, salvaged))
}

/// Returns the zones of a drive whose header names this file system. Zones with data but without such a header are
/// counted in `unknown`.
async fn zones_that_say(
    drive: &Given,
    file_system: Uuid,
    shape: Shape,
    unknown: &mut u64,
) -> Result<Vec<Zone>, FsError> {
    let states: Vec<ZoneState> = drive.device.zones().await.unwrap_or_default();
    let count = zones_of(&drive.device.geometry(), shape.zone_blocks, 0);
    let mut found = Vec::new();
    for zone in drive.first..count {
        let written = match states.get(zone as usize).map(|state| (state.condition, state.written)) {
            Some((ZoneCondition::Writable, 0) | (ZoneCondition::Offline, _)) => continue,
            Some((ZoneCondition::Writable, written)) => written,
            _ => shape.zone_blocks,
        };
        // A header that cannot be read is skipped: the other zones of the group describe the group.
        let block = drive.device.read(u64::from(zone) * shape.zone_blocks, 1).await.unwrap_or_default();
        let header = ZoneHeader::decode(&block).filter(|header| header.file_system == file_system);
        // A zone without a write pointer may hold any old data, or none.
        let has_pointer = states.get(zone as usize).is_some_and(|state| state.condition != ZoneCondition::Conventional);
        *unknown += u64::from(header.is_none() && has_pointer);
        found.extend(header.map(|header| Zone { header, uuid: drive.uuid, zone, written, has_pointer }));
    }
    Ok(found)
}

/// Returns the number of each drive. The drives that the array was made with are numbered in order, the others as in
/// the headers of zones.
fn numbers_of(superblock: &Superblock, zones: &[Zone]) -> BTreeMap<Uuid, u8> {
    let mut numbers = BTreeMap::new();
    for (number, member) in superblock.data_members().into_iter().enumerate() {
        numbers.insert(superblock.members[member].uuid, number as u8);
    }
    for zone in zones {
        for (uuid, at) in zone.header.drives.iter().zip(&zone.header.layout.members) {
            let is_new = usize::from(at.drive) >= superblock.data_members().len() && !uuid.is_nil();
            if is_new && !numbers.values().any(|number| *number == at.drive) {
                numbers.entry(*uuid).or_insert(at.drive);
            }
        }
    }
    numbers
}

/// Returns a number above every drive's number of zones. A header that names a zone beyond it is not accepted.
fn zones_max(given: &[&Given], shape: Shape) -> u32 {
    let most = given.iter().map(|drive| zones_of(&drive.device.geometry(), shape.zone_blocks, 0)).max().unwrap_or(0);
    most.saturating_mul(4)
}

/// Returns the groups of which enough zones were found, by number, and the number of groups of which too few were
/// found. If several groups have one number, the newest is taken.
fn groups_of(
    shape: Shape,
    zones: &[Zone],
    numbers: &BTreeMap<Uuid, u8>,
    zones_max: u32,
) -> (BTreeMap<u32, GroupLayout>, u64) {
    let mut newest: BTreeMap<u32, (u64, Vec<&Zone>)> = BTreeMap::new();
    for zone in zones {
        let sequence = zone.header.layout.sequence;
        let (known, own) = newest.entry(zone.header.group).or_default();
        if *known < sequence {
            (*known, *own) = (sequence, Vec::new());
        }
        if *known == sequence {
            own.push(zone);
        }
    }
    let (mut groups, mut unreadable) = (BTreeMap::new(), 0);
    for (group, (_, own)) in newest.into_iter().filter(|(group, _)| *group < shape.groups) {
        let Some(layout) = layout_of(shape, &own, numbers, zones_max) else { continue };
        let is_there =
            |at: &&ZoneOf| own.iter().any(|zone| numbers.get(&zone.uuid) == Some(&at.drive) && zone.zone == at.zone);
        if layout.members.iter().filter(is_there).count() < usize::from(layout.width) {
            unreadable += 1;
        } else {
            groups.insert(group, layout);
        }
    }
    (groups, unreadable)
}

/// Returns the layout of a group from the headers of its zones, with each zone at the place where it was found. Returns
/// `None` if the layout is impossible.
fn layout_of(shape: Shape, own: &[&Zone], numbers: &BTreeMap<Uuid, u8>, zones_max: u32) -> Option<GroupLayout> {
    // A column that is being moved to another drive is on both drives. The longer zone is complete.
    let mut layout = own.first()?.header.layout.clone();
    let mut longest: BTreeMap<u8, u64> = BTreeMap::new();
    for zone in own {
        let column = zone.header.column;
        let at = ZoneOf { drive: *numbers.get(&zone.uuid)?, zone: zone.zone };
        if longest.get(&column).is_none_or(|written| *written < zone.written) {
            longest.insert(column, zone.written);
            *layout.members.get_mut(usize::from(column))? = at;
        }
    }
    let mut drives: Vec<u8> = layout.members.iter().map(|at| at.drive).collect();
    drives.sort_unstable();
    drives.dedup();
    let is_shaped = (1..=shape.width).contains(&layout.width)
        && layout.members.len() == usize::from(layout.width) + usize::from(shape.parity)
        && drives.len() == layout.members.len();
    let is_placed = layout.members.iter().all(|at| at.zone < zones_max && numbers.values().any(|it| *it == at.drive));
    (is_shaped && is_placed).then_some(layout)
}
