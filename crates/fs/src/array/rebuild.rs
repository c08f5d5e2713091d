//! Drives that come and go: one is added, one leaves, and what the one that leaves held of each group is written to another.

use uuid::Uuid;

use super::drives::Drive;
use super::rows::columns_of;
use super::{Array, Belongs, Part, drive_of};
use crate::device::{BLOCK_BYTES, Device, DeviceFault};
use crate::format::change::{GroupLayout, ZoneOf};

/// A column of a group on its way to another drive.
pub struct Moving {
    group: u32,
    column: usize,
    /// Where the group lies once the column is there.
    pub layout: GroupLayout,
    from: ZoneOf,
    to: ZoneOf,
}

impl Array {
    /// Adds a drive called `uuid`, which is prepared for it, from its zone `first` on; its number.
    pub async fn add_drive(&self, uuid: Uuid, device: Device, first: u32) -> u8 {
        let geometry = device.geometry();
        let part = Part { uuid, device: Some(device), geometry, first, belongs: Belongs::Yes };
        let drive = drive_of(part, self.0.shape.zone_blocks).await;
        self.0.drives.borrow_mut().add(drive)
    }

    /// How many drives it has and had: numbers of drives are below this.
    pub fn drives(&self) -> usize {
        self.0.drives.borrow().all().len()
    }

    /// How many drives belong to it.
    pub fn drives_now(&self) -> usize {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter(|drive| drive.is_there() || drive.is_missing()).count()
    }

    /// Whether drive `number` is there and takes writes.
    pub fn is_there(&self, number: u8) -> bool {
        self.0.drives.borrow().get(number).is_some_and(Drive::is_there)
    }

    /// Returns the devices of the drives that are there and take writes.
    pub fn devices(&self) -> Vec<Device> {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter(|drive| drive.is_there()).filter_map(|drive| drive.device.clone()).collect()
    }

    /// Whether `device` is one of its drives.
    pub fn uses(&self, device: &Device) -> bool {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter_map(|drive| drive.device.as_ref()).any(|other| other.is(device))
    }

    /// The number of its drive that is called `name`.
    pub fn named(&self, name: &str) -> Option<u8> {
        let drives = self.0.drives.borrow();
        let is_it = |drive: &Drive| drive.device.as_ref().is_some_and(|device| device.name() == name);
        drives.all().iter().position(is_it).map(|number| number as u8)
    }

    /// Drive `number` with its name among devices, if it is there and takes writes.
    pub fn device(&self, number: u8) -> Option<(Uuid, Device)> {
        let drives = self.0.drives.borrow();
        Some((drives.get(number)?.uuid, drives.device(number)?))
    }

    /// Makes durable what was written to drive `number`; one that cannot is lost.
    pub async fn flush_drive(&self, number: u8) -> Result<(), DeviceFault> {
        let device = self.0.drives.borrow().device(number);
        let device = device.ok_or_else(|| DeviceFault::new(format!("drive {number} is not there")))?;
        let outcome = device.flush().await;
        if outcome.is_err() {
            self.0.drives.borrow_mut().lose(number, false);
            self.seal_incomplete();
            self.0.is_short.give();
        }
        outcome
    }

    /// What drive `number` is called, if it is there.
    pub fn device_name(&self, number: u8) -> Option<String> {
        self.0.drives.borrow().device(number).map(|device| device.name().to_string())
    }

    /// Nothing more is written to drive `number`: its groups are sealed.
    pub fn let_leave(&self, number: u8) {
        self.0.drives.borrow_mut().set_belongs(number, Belongs::Leaving);
        self.seal_incomplete();
    }

    /// Drive `number` is no part of it any more.
    pub fn forget(&self, number: u8) {
        self.0.drives.borrow_mut().set_belongs(number, Belongs::No);
    }

    /// The groups that have a zone on drive `number`, in the order in which they were opened.
    pub fn groups_on(&self, number: u8) -> Vec<u32> {
        let groups = self.0.groups.borrow();
        let on = groups.iter().filter(|(_, group)| group.layout.members.iter().any(|at| at.drive == number));
        let mut found: Vec<(u64, u32)> = on.map(|(group, it)| (it.layout.sequence, *group)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, group)| group).collect()
    }

    /// Where group `group` lies, if it is there.
    pub fn layout(&self, group: u32) -> Option<GroupLayout> {
        self.0.groups.borrow().get(&group).map(|group| group.layout.clone())
    }

    /// Begins to move what group `group` has on drive `from` to drive `to`: a zone is taken there, and its header
    /// written. `None` if `to` has no zone left, or the group none on `from`.
    pub async fn begin_move(&self, group: u32, from: u8, to: u8) -> Result<Option<Moving>, DeviceFault> {
        let Some(mut layout) = self.layout(group) else { return Ok(None) };
        let Some(column) = layout.members.iter().position(|at| at.drive == from) else { return Ok(None) };
        let Some(taken) = self.0.drives.borrow_mut().take_on(to) else { return Ok(None) };
        let left = std::mem::replace(&mut layout.members[column], taken);
        if let Err(fault) = self.begin_zone(group, &layout, column).await {
            self.0.drives.borrow_mut().fail_zone(taken);
            return Err(fault);
        }
        Ok(Some(Moving { group, column, layout, from: left, to: taken }))
    }

    /// Writes the moving column of whole rows with these data, from row `row` on; rows are written in order.
    pub async fn move_rows(&self, moving: &Moving, row: u64, data: &[u8]) -> Result<(), DeviceFault> {
        let bytes = columns_of(&moving.layout, data).swap_remove(moving.column);
        let rows = (bytes.len() / BLOCK_BYTES) as u64;
        let device = self.0.drives.borrow().device(moving.to.drive);
        let device = device.ok_or_else(|| DeviceFault::new(format!("drive {} is not there", moving.to.drive)))?;
        self.set_written(moving.to, 1 + row + rows);
        device.write(self.start_of(moving.to) + 1 + row, bytes).await
    }

    /// The column lies on its new drive now: its old zone is free, and the group is sealed.
    pub async fn finish_move(&self, moving: &Moving) {
        if let Some(group) = self.0.groups.borrow_mut().get_mut(&moving.group) {
            group.layout = moving.layout.clone();
            group.is_sealed = true;
        }
        self.0.drives.borrow_mut().give_back(moving.from);
        self.finish_zones(&moving.layout).await;
    }

    /// Gives up a move: the zone that the column was to go to is free.
    pub fn abandon_move(&self, moving: &Moving) {
        self.0.drives.borrow_mut().give_back(moving.to);
    }

    /// Whether all columns of the rows from `block` on, parity included, agree with `data`, which was read of these
    /// rows. An error where a column cannot be read.
    pub async fn has_right_columns(&self, block: u64, data: &[u8]) -> Result<bool, DeviceFault> {
        let stride = self.0.shape.stride();
        let layout = self.layout((block / stride) as u32);
        let layout = layout.ok_or_else(|| DeviceFault::new(format!("block {block} is in no stripe group")))?;
        let width = usize::from(layout.width);
        let row = block % stride / width as u64;
        let rows = (data.len() / BLOCK_BYTES / width) as u64;
        let (there, fault) = self.read_columns(&layout, row, rows).await;
        match fault {
            Some(fault) => Err(fault),
            None => {
                let made = columns_of(&layout, data);
                Ok(made.iter().enumerate().all(|(column, bytes)| there.get(&column) == Some(bytes)))
            }
        }
    }
}
