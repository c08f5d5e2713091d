//! Adding and replacing drives: a replaced drive's column of each group is written to another drive.

use uuid::Uuid;

use super::drives::Drive;
use super::rows::columns_of;
use super::{Array, Belongs, Part, drive_of};
use crate::device::{BLOCK_BYTES, Device, DeviceFault};
use crate::format::change::{GroupLayout, ZoneOf};

/// Move of one column of a stripe group, in progress: the blocks of one of its zones are written to a zone of another
/// drive.
pub struct Moving {
    group: u32,
    column: usize,
    /// Layout that the stripe group has once the column is moved: the new zone takes the place of the old one.
    pub layout: GroupLayout,
    from: ZoneOf,
    to: ZoneOf,
}

impl Array {
    /// Adds drive `uuid` to the array and returns its number, counted from 0. Its zones from number `first` on become
    /// free zones for stripe groups. The caller has prepared the drive before, and records it in the metadata. A drive
    /// that cannot report its zones is added as a missing drive.
    pub async fn add_drive(&self, uuid: Uuid, device: Device, first: u32) -> u8 {
        let geometry = device.geometry();
        let part = Part { uuid, device: Some(device), geometry, first, belongs: Belongs::Yes };
        let drive = drive_of(part, self.0.shape.zone_blocks).await;
        self.0.drives.borrow_mut().add(drive)
    }

    /// Returns the number of drives that the array ever had, including missing and replaced ones. The drives have the
    /// numbers from 0 up to, and without, this number.
    pub fn drives(&self) -> usize {
        self.0.drives.borrow().all().len()
    }

    /// Returns the number of drives that belong to the array, missing and failed ones included. A drive that is being
    /// replaced counts only if it is missing or has failed. The drive that replaces it counts in any case.
    pub fn drives_now(&self) -> usize {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter(|drive| drive.is_there() || drive.is_missing()).count()
    }

    /// Returns whether drive `number` can be written: it is present, has not failed, was not replaced and is not being
    /// replaced. Returns false if there is no such drive.
    pub fn is_there(&self, number: u8) -> bool {
        self.0.drives.borrow().get(number).is_some_and(Drive::is_there)
    }

    /// Returns the devices of the drives that can be written, in the order of the drives' numbers. Failed drives and a
    /// drive that is being replaced are left out.
    pub fn devices(&self) -> Vec<Device> {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter(|drive| drive.is_there()).filter_map(|drive| drive.device.clone()).collect()
    }

    /// Returns whether `device` is one of the array's opened drives. Failed and replaced drives count too.
    pub fn uses(&self, device: &Device) -> bool {
        let drives = self.0.drives.borrow();
        drives.all().iter().filter_map(|drive| drive.device.as_ref()).any(|other| other.is(device))
    }

    /// Returns the number of the first drive whose device is called `name`, or `None` if there is none. Failed and
    /// replaced drives count too.
    pub fn named(&self, name: &str) -> Option<u8> {
        let drives = self.0.drives.borrow();
        let is_it = |drive: &Drive| drive.device.as_ref().is_some_and(|device| device.name() == name);
        drives.all().iter().position(is_it).map(|number| number as u8)
    }

    /// Returns UUID and device of drive `number`, or `None` if the drive cannot be written or does not exist.
    pub fn device(&self, number: u8) -> Option<(Uuid, Device)> {
        let drives = self.0.drives.borrow();
        Some((drives.get(number)?.uuid, drives.device(number)?))
    }

    /// Makes the completed writes to drive `number` durable. A drive that fails to flush is no longer written, and its
    /// groups are closed to appends.
    ///
    /// # Errors
    /// The drive does not exist, cannot be written or fails to flush. Unlike in [`Array::flush`], parity does not
    /// prevent the error.
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

    /// Returns the name of the device of drive `number`, or `None` if the drive cannot be written or does not exist.
    pub fn device_name(&self, number: u8) -> Option<String> {
        self.0.drives.borrow().device(number).map(|device| device.name().to_string())
    }

    /// Starts the replacement of drive `number`: nothing is written to the drive any more, and every group with a zone
    /// on it is closed to appends. The drive can still be read.
    ///
    /// # Panics
    /// There is no drive `number`.
    pub fn start_removal(&self, number: u8) {
        self.0.drives.borrow_mut().set_belongs(number, Belongs::Leaving);
        self.seal_incomplete();
    }

    /// Marks drive `number` as replaced: it no longer belongs to the array, and is not counted as missing.
    ///
    /// # Panics
    /// There is no drive `number`.
    pub fn forget(&self, number: u8) {
        self.0.drives.borrow_mut().set_belongs(number, Belongs::No);
    }

    /// Returns the numbers of the stripe groups that have a zone on drive `number`, in the order in which the groups
    /// were opened.
    pub fn groups_on(&self, number: u8) -> Vec<u32> {
        let groups = self.0.groups.borrow();
        let on = groups.iter().filter(|(_, group)| group.layout.members.iter().any(|at| at.drive == number));
        let mut found: Vec<(u64, u32)> = on.map(|(group, it)| (it.layout.sequence, *group)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, group)| group).collect()
    }

    /// Returns the layout of stripe group `group`, or `None` if there is no such group.
    pub fn layout(&self, group: u32) -> Option<GroupLayout> {
        self.0.groups.borrow().get(&group).map(|group| group.layout.clone())
    }

    /// Starts to move the column of group `group` from drive `from` to drive `to`: takes a free zone of `to`, resets it
    /// and writes its header. Returns `None` if the group does not exist or has no zone on `from`, or if `to` has no
    /// free zone or cannot be written.
    ///
    /// # Errors
    /// The zone cannot be reset, or its header cannot be written. The zone is then marked as bad.
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

    /// Writes rows of the moving column to its new zone, from row `row` on, counted from 0. `data` are the data blocks
    /// of whole rows of the group, in order; the column is computed from them, also if it is a parity column. The rows
    /// must be written without gaps, from row 0 on.
    ///
    /// # Errors
    /// The new drive cannot be written, or the write fails.
    pub async fn move_rows(&self, moving: &Moving, row: u64, data: &[u8]) -> Result<(), DeviceFault> {
        let bytes = columns_of(&moving.layout, data).swap_remove(moving.column);
        let rows = (bytes.len() / BLOCK_BYTES) as u64;
        let device = self.0.drives.borrow().device(moving.to.drive);
        let device = device.ok_or_else(|| DeviceFault::new(format!("drive {} is not there", moving.to.drive)))?;
        self.set_written(moving.to, 1 + row + rows);
        device.write(self.start_of(moving.to) + 1 + row, bytes).await
    }

    /// Completes a move in memory: from now on the group has the new zone in place of the old one, and is closed to
    /// appends. The old zone is freed, and partly written zones of the group are finished. The caller has written all
    /// rows before, and records the new layout in the metadata afterwards.
    pub async fn finish_move(&self, moving: &Moving) {
        if let Some(group) = self.0.groups.borrow_mut().get_mut(&moving.group) {
            group.layout = moving.layout.clone();
            group.is_sealed = true;
        }
        self.0.drives.borrow_mut().give_back(moving.from);
        self.finish_zones(&moving.layout).await;
    }

    /// Cancels a move: the new zone is freed, and the column stays in its old zone. No write to the new zone may be in
    /// flight.
    pub fn abandon_move(&self, moving: &Moving) {
        self.0.drives.borrow_mut().give_back(moving.to);
    }

    /// Reads all columns of a run of rows, parity included, and returns whether they equal the columns computed from
    /// `data`. The rows begin at block `block`, the first block of a row. `data` are the data blocks of these rows, as
    /// read before.
    ///
    /// # Errors
    /// A column cannot be read, or `block` is in no stripe group.
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
