//! The devices of a file system: which is which, whatever order they are given in, and what data lie on.
//!
//! A device knows its own name. The superblock of the metadata has the names that the file system was made with, and the log
//! those of drives that came later, and which of them are gone: so one that was replaced is known when it comes back.

use uuid::Uuid;

use crate::array::{Array, Belongs, Data, Part};
use crate::device::{Device, Geometry, Kind};
use crate::error::FsError;
use crate::format::superblock::{Role, Shape, Superblock};
use crate::namespace::Groups;

/// What is on a device.
pub async fn look(device: &Device) -> Result<Superblock, FsError> {
    let mut why = String::new();
    for block in 0..2 {
        match device.read(block, 1).await {
            Ok(bytes) => match Superblock::decode(&bytes) {
                Ok(superblock) => return Ok(superblock),
                Err(reason) if why.is_empty() => why = reason,
                Err(_) => {}
            },
            Err(fault) if why.is_empty() => why = format!("its first block cannot be read: {fault}"),
            Err(_) => {}
        }
    }
    Err(FsError::format(device.name(), why))
}

/// A device, and what it says that it is.
struct Found {
    device: Device,
    uuid: Uuid,
}

/// The devices of one file system, as far as they were given.
pub(super) struct Members {
    /// What the device with the metadata says.
    pub superblock: Superblock,
    /// The device with the metadata.
    pub metadata: Device,
    found: Vec<Found>,
}

impl Members {
    /// Those `devices`, given in any order.
    pub async fn of(devices: &[Device]) -> Result<Members, FsError> {
        let mut found = Vec::with_capacity(devices.len());
        let mut superblocks: Vec<(Superblock, Device)> = Vec::new();
        for device in devices {
            let superblock = look(device).await?;
            check_unchanged(&superblock, device)?;
            if let Some((other, first)) = superblocks.first().filter(|(other, _)| other.uuid != superblock.uuid) {
                let name = first.name();
                let reason = format!("belongs to file system {}, and {name} to {}", superblock.uuid, other.uuid);
                return Err(FsError::format(device.name(), reason));
            }
            let uuid = superblock.members[superblock.member as usize].uuid;
            found.push(Found { device: device.clone(), uuid });
            superblocks.push((superblock, device.clone()));
        }
        let of_metadata = superblocks.iter().find(|(it, _)| it.members[it.member as usize].role != Role::Data);
        let Some((superblock, metadata)) = of_metadata else {
            let Some((any, device)) = superblocks.first() else {
                return Err(FsError::format("no device", "give at least one"));
            };
            return Err(missing(device.name(), any, any.metadata_member()));
        };
        if superblock.layout.place.end() > metadata.geometry().blocks {
            return Err(FsError::format(metadata.name(), "its superblock describes a larger device"));
        }
        let (superblock, metadata) = (superblock.clone(), metadata.clone());
        Ok(Members { superblock, metadata, found })
    }

    /// What the data lie on, with the stripe groups and drives that the metadata name. Devices that were members once, and are
    /// none now, are told by name.
    pub async fn data(&self, groups: &Groups, is_read_only: bool) -> Result<(Data, Vec<String>), FsError> {
        let superblock = &self.superblock;
        let mut uuids = drives_of(superblock, groups);
        let find = |uuid: Uuid| self.found.iter().find(|found| found.uuid == uuid).map(|found| found.device.clone());
        let devices: Vec<(Uuid, Option<Device>)> = uuids.iter().map(|&uuid| (uuid, find(uuid))).collect();
        let Some(shape) = superblock.shape else {
            let device = devices[0].1.clone();
            let device = device.ok_or_else(|| missing(self.metadata.name(), superblock, superblock.data_member()))?;
            return Ok((Data::Drive(device), Vec::new()));
        };
        uuids.push(superblock.members[superblock.metadata_member()].uuid);
        let stale = self.found.iter().filter(|found| !uuids.contains(&found.uuid));
        let stale = stale.map(|found| found.device.name().to_string()).collect();
        let parts = parts(superblock, shape, devices, groups);
        check_enough(&self.metadata, shape, &parts)?;
        let array = Array::assemble(superblock.uuid, shape, parts, groups, is_read_only).await?;
        Ok((Data::Array(array), stale))
    }
}

/// What the drives of an array are to it.
pub(crate) fn parts(
    superblock: &Superblock,
    shape: Shape,
    devices: Vec<(Uuid, Option<Device>)>,
    groups: &Groups,
) -> Vec<Part> {
    let members = superblock.data_members();
    let part = |(drive, (uuid, device)): (usize, (Uuid, Option<Device>))| {
        let made_with = members.get(drive).map(|number| superblock.members[*number]);
        let first = match made_with.map(|member| (member.role, member.geometry.kind)) {
            Some((Role::Both, Kind::Zoned { conventional, .. })) => conventional,
            Some((Role::Both, _)) => superblock.layout.place.end().div_ceil(shape.zone_blocks) as u32,
            // The first zone bears the superblock.
            _ => 1,
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

/// The names of the drives that data lie on, by number; for those that are gone, none that any device has.
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

/// A device must be what it was when the file system was made.
fn check_unchanged(superblock: &Superblock, device: &Device) -> Result<(), FsError> {
    let (geometry, member) = (device.geometry(), superblock.members[superblock.member as usize]);
    let is_same = std::mem::discriminant(&member.geometry.kind) == std::mem::discriminant(&geometry.kind);
    if member.geometry.blocks <= geometry.blocks && is_same {
        return Ok(());
    }
    let reason = format!(
        "was {} with {} blocks when the file system was made, and is {} with {}",
        member.geometry.kind.name(),
        member.geometry.blocks,
        geometry.kind.name(),
        geometry.blocks
    );
    Err(FsError::format(device.name(), reason))
}

fn missing(name: &str, superblock: &Superblock, member: usize) -> FsError {
    let (what, uuid) = (superblock.members[member].role, superblock.members[member].uuid);
    FsError::format(name, format!("the device of its file system for {what:?}, {uuid}, is missing: give it too"))
}

/// Fails if more drives are missing than there is parity for, and names them.
pub(crate) fn check_enough(metadata: &Device, shape: Shape, parts: &[Part]) -> Result<(), FsError> {
    let is_missing = |part: &Part| part.device.is_none() && part.belongs != Belongs::No;
    let missing = parts.iter().enumerate().filter(|(_, part)| is_missing(part));
    let missing: Vec<String> = missing.map(|(number, part)| format!("drive {number} ({})", part.uuid)).collect();
    if missing.len() <= usize::from(shape.parity) {
        return Ok(());
    }
    let reason = format!(
        "of its array of {} are missing: {}; with parity {} no more than {} may be: give them too",
        parts.iter().filter(|part| part.belongs != Belongs::No).count(),
        missing.join(", "),
        shape.parity,
        shape.parity
    );
    Err(FsError::format(metadata.name(), reason))
}
