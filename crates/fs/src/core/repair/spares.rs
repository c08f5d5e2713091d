//! Spares: idle drives, each of which replaces a drive of the array that fails while the file system is in use. Also
//! continues replacements that a power cut interrupted.
//!
//! A drive that is already missing at the mount is not replaced by a spare, as it may only be late.

use std::cell::RefCell;

use uuid::Uuid;

use super::Repair;
use crate::array::Array;
use crate::core::{CoreParts, Fs};
use crate::device::Device;
use crate::error::FsError;
use crate::executor::select;
use crate::format::superblock::Role;

/// Spares of a mounted file system.
pub(in crate::core) struct SparesState {
    /// UUID and device of each spare that waits for a drive of the array to fail.
    waiting: RefCell<Vec<(Uuid, Device)>>,
    /// Spares that were missing when the file system was mounted.
    missing: Vec<String>,
}

impl SparesState {
    pub(in crate::core) fn new(waiting: Vec<(Uuid, Device)>, missing: Vec<String>) -> SparesState {
        SparesState { waiting: RefCell::new(waiting), missing }
    }

    /// Returns the names of the devices that wait.
    pub(in crate::core) fn names(&self) -> Vec<String> {
        self.waiting.borrow().iter().map(|(_, device)| device.name().to_string()).collect()
    }

    /// Returns the names of the spares that were missing at the mount.
    pub(in crate::core) fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    /// Returns whether `device` is a spare.
    pub(in crate::core) fn uses(&self, device: &Device) -> bool {
        self.waiting.borrow().iter().any(|(_, spare)| spare.is(device))
    }
}

impl Fs {
    /// Keeps `device` as a spare of the array, under the UUID `uuid`: it replaces the next drive that fails, if the
    /// mount replaces drives by itself
    /// ([`MountOptions::replaces_by_itself`](crate::core::MountOptions::replaces_by_itself)). The previous contents of
    /// `device` are lost. A device that holds a file system of Imbrex is refused unless `overwrite`.
    ///
    /// # Errors
    /// [`FsError::NotSupported`] without an array, or if the array has no parity, [`FsError::ReadOnly`] on a read-only
    /// mount, [`FsError::Format`] if the device does not suit the array or is refused, or the error of the device.
    pub async fn add_spare(&self, device: &Device, uuid: Uuid, overwrite: bool) -> Result<(), FsError> {
        self.0.begin_task().await?;
        let array = self.0.repair().array()?;
        if array.shape().parity == 0 {
            return Err(FsError::NotSupported("a spare is for an array with parity, which can reconstruct a drive"));
        }
        super::check_drive::check_drive(device, array.shape().zone_blocks)?;
        if !overwrite {
            crate::core::mount::make::refuse_used(device).await?;
        }
        self.0.repair().prepare_drive(device, uuid, Role::Spare, None).await?;
        self.0.spares.waiting.borrow_mut().push((uuid, device.clone()));
        array.tell_short();
        Ok(())
    }
}

impl Repair<'_> {
    /// Replaces drives that fail by spares, and continues interrupted replacements, until the file system is unmounted.
    pub(in crate::core) async fn replace_by_itself(self) {
        let core = self.0.clone();
        let Ok(array) = self.array() else { return };
        while !core.shutdown.has_begun() {
            let short = array.until_short();
            let goes_on = |_| !core.shutdown.has_begun();
            let mut has_gone_on = false;
            if let Some(old) = self.begun(&array) {
                has_gone_on |= self.replace_drive(old, None, false, goes_on).await.is_ok();
            }
            if let Some(old) = self.lost_drive(&array) {
                let spare = core.spares.waiting.borrow_mut().pop();
                if let Some((uuid, device)) = spare {
                    // A spare that fails, or does not fit, is dropped, and the next one is tried.
                    let _ = self.replace_drive(old, Some((&device, uuid)), true, goes_on).await;
                    has_gone_on = true;
                }
            }
            if has_gone_on {
                continue;
            }
            select(short, core.shutdown.next()).await;
        }
    }

    /// Returns a drive whose replacement was begun, and whose new drive is present.
    fn begun(self, array: &Array) -> Option<u8> {
        let namespace = self.0.namespace.borrow();
        let groups = namespace.groups();
        let numbers = 0..array.drives() as u8;
        let is_there = |old: &u8| groups.replacement_of(*old).is_some_and(|new| array.is_there(new));
        numbers.filter(|old| !groups.is_gone(*old)).find(is_there)
    }

    /// Returns a drive that failed while it was in use, and whose replacement was not begun.
    fn lost_drive(self, array: &Array) -> Option<u8> {
        let namespace = self.0.namespace.borrow();
        let groups = namespace.groups();
        array.lost().into_iter().find(|old| !groups.is_gone(*old) && groups.replacement_of(*old).is_none())
    }
}
