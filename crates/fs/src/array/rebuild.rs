//! Adding and replacing drives: a replaced drive's column of each group is written to another drive.

use uuid::Uuid;

use super::drives::Drive;
use super::rows::columns_of;
use super::{Array, Belongs, Part, drive_of};
use crate::device::{BLOCK_BYTES, Device, DeviceFault};
use crate::format::change::{GroupLayout, ZoneOf};

/// Column of a group that is being moved to another drive.
pub struct Moving {
    group: u32,
    column: usize,
    /// Layout of the group once the column is moved.
    pub layout: GroupLayout,
    from: ZoneOf,
    to: ZoneOf,
}

impl Array {
    /// Adds a prepared drive `uuid`, of which the zones from `first` on belong to the array. Returns its number.
    pub async fn add_drive(&self, uuid: Uuid, device: Device, first: u32) -> u8 {
        let geometry = device.geometry();
        let part = Part { uuid, device: Some(device), geometry, first, belongs: Belongs::Yes };
        let drive = drive_of(part, self.0.shape.zone_blocks).await;
        self.0.drives.borrow_mut().add(drive)
    }

    /// Returns how many drives the array has and had; all numbers of drives are below.
    pub fn drives(&self) -> usize {
        self.0.drives.borrow().all().len()
    }

    /// Returns how many drives belong to the array.
    pub fn drives_now(&self) -> usize {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter(|drive| drive.is_there() || drive.is_missing()).count()
    }

    /// Returns whether drive `number` is present and can be written.
    pub fn is_there(&self, number: u8) -> bool {
        self.0.drives.borrow().get(number).is_some_and(Drive::is_there)
    }

    /// Returns the devices of the drives that can be written.
    pub fn devices(&self) -> Vec<Device> {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter(|drive| drive.is_there()).filter_map(|drive| drive.device.clone()).collect()
    }

    /// Returns whether `device` is one of the array's drives.
    pub fn uses(&self, device: &Device) -> bool {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter_map(|drive| drive.device.as_ref()).any(|other| other.is(device))
    }

    /// Returns the number of the drive whose device is called `name`.
    pub fn named(&self, name: &str) -> Option<u8> {
        let drives = self.0.drives.borrow();
        let is_it = |drive: &Drive| drive.device.as_ref().is_some_and(|device| device.name() == name);
        drives.all().iter().position(is_it).map(|number| number as u8)
    }

    /// Returns UUID and device of drive `number`, if it can be written.
    pub fn device(&self, number: u8) -> Option<(Uuid, Device)> {
        let drives = self.0.drives.borrow();
        Some((drives.get(number)?.uuid, drives.device(number)?))
    }

    /// Makes completed writes to drive `number` durable. A drive that fails to flush is lost.
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

    /// Returns the device name of drive `number`, if it can be written.
    pub fn device_name(&self, number: u8) -> Option<String> {
        self.0.drives.borrow().device(number).map(|device| device.name().to_string())
    }

    /// Starts the replacement of drive `number`: it is no longer written, and its groups are sealed.
    pub fn start_removal(&self, number: u8) {
        self.0.drives.borrow_mut().set_belongs(number, Belongs::Leaving);
        self.seal_incomplete();
    }

    /// Removes drive `number` from the array.
    pub fn forget(&self, number: u8) {
        self.0.drives.borrow_mut().set_belongs(number, Belongs::No);
    }

    /// Returns the groups that have a zone on drive `number`, in the order in which they were opened.
    pub fn groups_on(&self, number: u8) -> Vec<u32> {
        let groups = self.0.groups.borrow();
        let on = groups.iter().filter(|(_, group)| group.layout.members.iter().any(|at| at.drive == number));
        let mut found: Vec<(u64, u32)> = on.map(|(group, it)| (it.layout.sequence, *group)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, group)| group).collect()
    }

    /// Returns the zones of group `group`, if there is such a group.
    pub fn layout(&self, group: u32) -> Option<GroupLayout> {
        self.0.groups.borrow().get(&group).map(|group| group.layout.clone())
    }

    /// Starts to move the column of group `group` from drive `from` to drive `to`: takes a zone there, and writes its
    /// header. `None` if `to` has no free zone, or the group has no zone on `from`.
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

    /// Writes the moving column of whole rows, computed from their `data`, from row `row` on. Rows must be written in
    /// order.
    pub async fn move_rows(&self, moving: &Moving, row: u64, data: &[u8]) -> Result<(), DeviceFault> {
        let bytes = columns_of(&moving.layout, data).swap_remove(moving.column);
        let rows = (bytes.len() / BLOCK_BYTES) as u64;
        let device = self.0.drives.borrow().device(moving.to.drive);
        let device = device.ok_or_else(|| DeviceFault::new(format!("drive {} is not there", moving.to.drive)))?;
        self.set_written(moving.to, 1 + row + rows);
        device.write(self.start_of(moving.to) + 1 + row, bytes).await
    }

    /// Completes a move: the column is on its new drive, its old zone is freed and the group is sealed.
    pub async fn finish_move(&self, moving: &Moving) {
        if let Some(group) = self.0.groups.borrow_mut().get_mut(&moving.group) {
            group.layout = moving.layout.clone();
            group.is_sealed = true;
        }
        self.0.drives.borrow_mut().give_back(moving.from);
        self.finish_zones(&moving.layout).await;
    }

    /// Cancels a move: the new zone of the column is freed.
    pub fn abandon_move(&self, moving: &Moving) {
        self.0.drives.borrow_mut().give_back(moving.to);
    }

    /// Returns whether all columns of the rows from `block` on, parity included, agree with `data`, which was read from
    /// these rows.
    ///
    /// # Errors
    /// A column cannot be read.
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
