//! The devices of a file system: identifies them, given in any order, and opens those that hold the data.
//!
//! Each device holds its own UUID. The superblock of the metadata lists the UUIDs of the devices that the file system
//! was made with. The log lists the UUIDs of drives that were added later, and the drives that are gone. So a drive that
//! was replaced is recognized when it is given again.

use uuid::Uuid;

use crate::array::{Array, Belongs, Data, Part};
use crate::core::repair::check_drive::check_drive;
use crate::device::{Device, Geometry, Kind};
use crate::error::FsError;
use crate::format::shape::Shape;
use crate::format::superblock::{Role, Superblock};
use crate::journal::mirror::LABELS;
use crate::namespace::Groups;

/// Returns the sort key of superblocks by age: the generation, then the number of writes.
fn age(superblock: &Superblock) -> (u64, u64) {
    (superblock.standing.generation, superblock.writes)
}

/// Reads the superblock of a device from its first two blocks. If both hold a valid one, returns the one that was
/// written later.
///
/// # Errors
/// [`FsError::Format`] if neither block can be read and decoded.
pub async fn look(device: &Device) -> Result<Superblock, FsError> {
    let mut why = String::new();
    let mut found: Option<Superblock> = None;
    for block in 0..LABELS {
        match device.read(block, 1).await {
            // The other superblock may be an older one that this program knows, left by an upgrade that was cut off.
            Ok(bytes) if Superblock::unknown_format(&bytes).is_some() => {
                let reason = Superblock::decode(&bytes).err().unwrap_or_default();
                return Err(FsError::format(device.name(), reason));
            }
            Ok(bytes) => match Superblock::decode(&bytes) {
                Ok(superblock) => {
                    let later = |other: &Superblock| age(other) < age(&superblock);
                    if found.as_ref().is_none_or(later) {
                        found = Some(superblock);
                    }
                }
                Err(reason) if why.is_empty() => why = reason,
                Err(_) => {}
            },
            Err(fault) if why.is_empty() => why = format!("its first block cannot be read: {fault}"),
            Err(_) => {}
        }
    }
    found.ok_or_else(|| FsError::format(device.name(), why))
}

/// Returns whether a superblock of the device is intact and of a format that this program does not know. That is no
/// damage: another version of the program made the file system.
pub async fn has_unknown_format(device: &Device) -> bool {
    for block in 0..LABELS {
        if device.read(block, 1).await.is_ok_and(|bytes| Superblock::unknown_format(&bytes).is_some()) {
            return true;
        }
    }
    false
}

/// A device, and the superblock that was read from it.
struct Found {
    device: Device,
    superblock: Superblock,
}

impl Found {
    fn uuid(&self) -> Uuid {
        self.superblock.own().uuid
    }
}

/// Devices with copies of the metadata: number of the copy, device, and whether the copy is up to date.
type Copies = Vec<(usize, Device, bool)>;

/// The devices of one file system that were given.
pub(super) struct Members {
    /// Newest superblock of the given devices with metadata.
    pub superblock: Superblock,
    /// The devices with copies of the metadata, of those that were given: number of the copy counted from 0, device,
    /// and whether the copy is up to date.
    pub metadata: Copies,
    /// Errors of the devices that could not be identified, as text.
    pub unknown: Vec<String>,
    found: Vec<Found>,
}

impl Members {
    /// Identifies `devices`, given in any order.
    ///
    /// # Errors
    /// [`FsError::Format`] if the devices belong to several file systems, two have the same UUID, one differs from its
    /// superblock, or no copy of the metadata is usable. A superblock of an unknown format is an error. A device that
    /// cannot be identified is also an error, unless another can hold its contents.
    pub(in crate::core) async fn of(devices: &[Device]) -> Result<Members, FsError> {
        let (mut found, mut unknown): (Vec<Found>, Vec<FsError>) = (Vec::new(), Vec::new());
        for device in devices {
            match look(device).await {
                Ok(superblock) => found.push(Found { device: device.clone(), superblock }),
                // Without this device the mount would write a state that the device does not know, in an older format.
                Err(error) if has_unknown_format(device).await => return Err(error),
                Err(error) => unknown.push(error),
            }
        }
        let Some(first) = found.first() else {
            return Err(unknown.pop().unwrap_or_else(|| FsError::format("no device", "give at least one")));
        };
        // A device that cannot be identified is acceptable only if its contents are redundant: by parity, or another
        // metadata copy.
        let can_do_without = first.superblock.shape.is_some_and(|shape| shape.parity > 0)
            || first.superblock.metadata_members().len() > 1;
        if let Some(error) = unknown.first().filter(|_| !can_do_without) {
            return Err(error.clone());
        }
        for other in &found {
            check_unchanged(&other.superblock, &other.device)?;
            if other.superblock.uuid != first.superblock.uuid {
                let (own, name, of_first) = (other.superblock.uuid, first.device.name(), first.superblock.uuid);
                let reason = format!("belongs to file system {own}, and {name} to {of_first}");
                return Err(FsError::format(other.device.name(), reason));
            }
        }
        refuse_copies(&found)?;
        let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        let (superblock, metadata) = copies_of(&found, &unknown)?;
        found.iter().try_for_each(|found| check_member(&superblock, found.uuid(), &found.device))?;
        Ok(Members { superblock, metadata, unknown, found })
    }

    /// Returns the name of a device with metadata that are up to date, for error messages.
    pub(in crate::core) fn name(&self) -> &str {
        self.metadata.iter().find(|(.., is_current)| *is_current).map_or("no device", |(_, device, _)| device.name())
    }

    /// Returns the names of devices whose copy of the metadata is outdated.
    pub(super) fn outdated_copies(&self) -> Vec<String> {
        let outdated = self.metadata.iter().filter(|(.., is_current)| !is_current);
        outdated.map(|(_, device, _)| device.name().to_string()).collect()
    }

    /// Returns a description of each copy of the metadata that is missing.
    pub(super) fn missing_copies(&self) -> Vec<String> {
        let members = self.superblock.metadata_members();
        let is_there = |slot: &usize| self.metadata.iter().any(|(there, ..)| there == slot);
        let missing = (0..members.len()).filter(|slot| !is_there(slot));
        missing
            .map(|slot| format!("copy {slot} of the metadata ({})", self.superblock.members[members[slot]].uuid))
            .collect()
    }

    /// Returns the spares that were given: drives that wait for a drive of the array to fail.
    pub(in crate::core) fn spares(&self, groups: &Groups) -> Vec<(Uuid, Device)> {
        let drives = drives_of(&self.superblock, groups);
        let is_spare = |found: &&Found| found.superblock.own().role == Role::Spare && !drives.contains(&found.uuid());
        self.found.iter().filter(is_spare).map(|found| (found.uuid(), found.device.clone())).collect()
    }

    /// Returns the names of missing spares. A spare that replaced a drive and was then replaced itself is no spare any
    /// more, but no record tells which one it was. So as many spares are left out of the list as later drives are gone.
    pub(super) fn missing_spares(&self, groups: &Groups) -> Vec<String> {
        let drives = drives_of(&self.superblock, groups);
        let is_there = |uuid: Uuid| drives.contains(&uuid) || self.found.iter().any(|found| found.uuid() == uuid);
        let members = self.superblock.members.iter();
        let missing: Vec<Uuid> = members
            .filter(|member| member.role == Role::Spare && !is_there(member.uuid))
            .map(|member| member.uuid)
            .collect();
        let made_with = self.superblock.data_members().len();
        let gone =
            groups.drives().iter().filter(|(number, drive)| usize::from(**number) >= made_with && drive.uuid == 0);
        missing.into_iter().skip(gone.count()).map(|uuid| format!("spare {uuid}")).collect()
    }

    /// Opens the drive with the data, or assembles the array with the stripe groups and drives in `groups`. Also returns
    /// the names of devices that were members once and are not any more.
    ///
    /// # Errors
    /// [`FsError::Format`] if the drive is missing, more drives of the array are missing than parity covers, or a drive
    /// does not fit.
    pub(in crate::core) async fn data(
        &self,
        groups: &Groups,
        is_read_only: bool,
    ) -> Result<(Data, Vec<String>), FsError> {
        let superblock = &self.superblock;
        let mut uuids = drives_of(superblock, groups);
        let find = |uuid: Uuid| self.found.iter().find(|found| found.uuid() == uuid).map(|found| found.device.clone());
        let devices: Vec<(Uuid, Option<Device>)> = uuids.iter().map(|&uuid| (uuid, find(uuid))).collect();
        let Some(shape) = superblock.shape else {
            let device = devices[0].1.clone();
            let device = device.ok_or_else(|| {
                with_unknown(missing(self.name(), superblock, superblock.data_member()), &self.unknown)
            })?;
            return Ok((Data::Drive(device), Vec::new()));
        };
        uuids.extend(superblock.metadata_members().into_iter().map(|number| superblock.members[number].uuid));
        uuids.extend(self.spares(groups).into_iter().map(|(uuid, _)| uuid));
        let stale = self.found.iter().filter(|found| !uuids.contains(&found.uuid()));
        let stale = stale.map(|found| found.device.name().to_string()).collect();
        let there = devices.iter().filter_map(|(_, device)| device.as_ref());
        there.clone().try_for_each(|device| check_drive(device, shape.zone_blocks))?;
        let there: Vec<Geometry> = there.map(Device::geometry).collect();
        super::sound::check_groups(superblock, shape, &there, self.name())?;
        let parts = parts(superblock, shape, devices, groups);
        check_enough(self.name(), shape, &parts, groups).map_err(|error| with_unknown(error, &self.unknown))?;
        let array = Array::assemble(superblock.uuid, shape, parts, groups, is_read_only).await?;
        Ok((Data::Array(array), stale))
    }
}

/// Checks that `device` matches the geometry that `superblock` lists for `uuid`, if it lists `uuid`.
pub(crate) fn check_member(superblock: &Superblock, uuid: Uuid, device: &Device) -> Result<(), FsError> {
    let listed = superblock.members.iter().find(|member| member.uuid == uuid);
    listed.map_or(Ok(()), |member| check_geometry(member.geometry, device))
}

/// Fails if two devices have the same UUID: one is then a copy of the other, made at another time.
fn refuse_copies(found: &[Found]) -> Result<(), FsError> {
    for (index, one) in found.iter().enumerate() {
        if let Some(other) = found[..index].iter().find(|other| other.uuid() == one.uuid()) {
            let (name, uuid) = (other.device.name(), one.uuid());
            let reason = format!("is the same device as {name} ({uuid}): one is a copy of the other; give one of them");
            return Err(FsError::format(one.device.name(), reason));
        }
    }
    Ok(())
}

/// Returns the superblock of the latest generation, and the copies of the metadata among `found`. Fails if two copies
/// have diverged: each was written while the other was missing.
fn copies_of(found: &[Found], unknown: &[String]) -> Result<(Superblock, Copies), FsError> {
    let copies = || found.iter().filter_map(|found| Some((found.superblock.slot()?, found)));
    let latest = copies().max_by_key(|(slot, found)| (age(&found.superblock), std::cmp::Reverse(*slot)));
    let Some((latest_slot, latest)) = latest else {
        let any = &found[0];
        let missing = missing(any.device.name(), &any.superblock, any.superblock.metadata_members()[0]);
        return Err(with_unknown(missing, unknown));
    };
    let (superblock, members) = (latest.superblock.clone(), latest.superblock.metadata_members());
    let mut used: Copies = Vec::new();
    for (slot, copy) in copies() {
        let is_known = members.get(slot).is_some_and(|&member| superblock.members[member].uuid == copy.uuid());
        if !is_known || used.iter().any(|(other, ..)| *other == slot) {
            continue;
        }
        if superblock.standing.disagrees(&copy.superblock.standing, slot) {
            let (one, other) = (latest.device.name(), copy.device.name());
            let reason = format!(
                "was written without {other}, and {other} without {one}: each has changes that the other lacks. Mount \
                 with the one to keep, and without the other; then bring the other up to date with `imbrex fs replace \
                 --copy {slot}` or, to keep {other}, --copy {latest_slot}"
            );
            return Err(FsError::format(one, reason));
        }
        if superblock.layout.place.end() > copy.device.geometry().blocks {
            return Err(FsError::format(copy.device.name(), "its superblock describes a larger device"));
        }
        let is_current =
            superblock.standing.holds_all(copy.superblock.standing.generation) && superblock.standing.is_current(slot);
        used.push((slot, copy.device.clone(), is_current));
    }
    Ok((superblock, used))
}

/// Adds the devices that could not be identified to an error about a missing device: one of them may be the missing one.
fn with_unknown(error: FsError, unknown: &[String]) -> FsError {
    match error {
        FsError::Format { place, reason } if !unknown.is_empty() => {
            FsError::Format { place, reason: format!("{reason}; {}", unknown.join("; ")) }
        }
        error => error,
    }
}

/// Returns each drive of an array with its device, its first zone for stripe groups, and whether it belongs to the
/// array.
pub(crate) fn parts(
    superblock: &Superblock,
    shape: Shape,
    devices: Vec<(Uuid, Option<Device>)>,
    groups: &Groups,
) -> Vec<Part> {
    let members = superblock.data_members();
    let part = |(drive, (uuid, device)): (usize, (Uuid, Option<Device>))| {
        let made_with = members.get(drive).map(|number| superblock.members[*number]);
        let taken_over = groups.hot_part_on(drive as u8).and_then(|part| superblock.hot_parts.get(usize::from(part)));
        let first = match taken_over.filter(|_| made_with.is_none()) {
            Some(part) => part.first_zone_behind(shape.zone_blocks),
            None => superblock.first_zone(drive, shape.zone_blocks),
        };
        let belongs = match (groups.is_gone(drive as u8), groups.replacement_of(drive as u8)) {
            (true, _) => Belongs::No,
            (false, Some(_)) => Belongs::Leaving,
            (false, None) => Belongs::Yes,
        };
        let geometry = made_with.map_or(Geometry { blocks: 0, kind: Kind::Plain }, |member| member.geometry);
        Part { uuid, device, geometry, first, belongs }
    };
    devices.into_iter().enumerate().map(part).collect()
}

/// Returns the UUIDs of the drives with data, by drive number. A drive that is gone has the nil UUID, which no device
/// has.
pub(crate) fn drives_of(superblock: &Superblock, groups: &Groups) -> Vec<Uuid> {
    let members = superblock.data_members();
    let mut uuids: Vec<Uuid> = members.into_iter().map(|number| superblock.members[number].uuid).collect();
    for (&number, record) in groups.drives() {
        let count = uuids.len().max(usize::from(number) + 1);
        uuids.resize(count, Uuid::nil());
        uuids[usize::from(number)] = Uuid::from_u128(record.uuid);
    }
    uuids
}

/// Checks that a device is as it was when the file system was made; it may have grown.
fn check_unchanged(superblock: &Superblock, device: &Device) -> Result<(), FsError> {
    check_geometry(superblock.own().geometry, device)
}

fn check_geometry(made_with: Geometry, device: &Device) -> Result<(), FsError> {
    let geometry = device.geometry();
    let zoned = |kind: Kind| match kind {
        Kind::Zoned { zone_blocks, zones, conventional, .. } => Some((zone_blocks, conventional, zones)),
        _ => None,
    };
    let is_same = match (zoned(made_with.kind), zoned(geometry.kind)) {
        (Some(then), Some(now)) => (then.0, then.1) == (now.0, now.1) && then.2 <= now.2,
        _ => made_with.kind == geometry.kind,
    };
    if made_with.blocks <= geometry.blocks && is_same {
        return Ok(());
    }
    let reason = format!(
        "was {} with {} blocks when the file system was made, and is {} with {}",
        made_with.kind.name(),
        made_with.blocks,
        geometry.kind.name(),
        geometry.blocks
    );
    Err(FsError::format(device.name(), reason))
}

fn missing(name: &str, superblock: &Superblock, member: usize) -> FsError {
    let (what, uuid) = (superblock.members[member].role, superblock.members[member].uuid);
    let advice = match what {
        Role::Metadata if superblock.shape.is_some() => {
            "give it too; if it is lost, imbrex fs salvage finds files again without it"
        }
        _ => "give it too",
    };
    FsError::format(name, format!("the device of its file system for {what:?}, {uuid}, is missing: {advice}"))
}

/// Fails if more drives are missing than there is parity for, and names them. A drive and its replacement count once if
/// both are missing: no group lies on both.
pub(crate) fn check_enough(metadata: &str, shape: Shape, parts: &[Part], groups: &Groups) -> Result<(), FsError> {
    let is_missing = |part: &Part| part.device.is_none() && part.belongs != Belongs::No;
    let is_away = |number: u8| parts.get(usize::from(number)).is_some_and(is_missing);
    let is_half = |number: u8| is_away(number) && groups.replacement_of(number).is_some_and(is_away);
    let halves = (0..parts.len() as u8).filter(|number| is_half(*number)).count();
    let missing = parts.iter().enumerate().filter(|(_, part)| is_missing(part));
    let missing: Vec<String> = missing.map(|(number, part)| format!("drive {number} ({})", part.uuid)).collect();
    if missing.len() <= usize::from(shape.parity) + halves {
        return Ok(());
    }
    let reason = format!(
        "of its array of {} are missing: {}; with parity {} no more than {} may be: give them too",
        parts.iter().filter(|part| part.belongs != Belongs::No).count(),
        missing.join(", "),
        shape.parity,
        shape.parity
    );
    Err(FsError::format(metadata, reason))
}
