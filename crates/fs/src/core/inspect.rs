//! Description of a mounted file system, its devices and the extents of its files, for programs that display them.

use super::Fs;
use crate::device::Device;
use crate::error::FsError;
use crate::format::change::{Extent, Inode};
use crate::format::superblock::Superblock;
use crate::journal::mirror::State;

impl Fs {
    /// Returns the superblock as it was read at the mount. It does not change while the file system is mounted.
    pub fn superblock(&self) -> &Superblock {
        &self.0.superblock
    }

    /// Returns the number of drives that belong to the array, missing and failed ones included; 1 without an array. A
    /// drive that is being replaced counts only if it is missing or has failed. The drive that replaces it counts in
    /// any case.
    pub fn drives(&self) -> usize {
        self.0.data.array().map_or(1, |array| array.drives_now())
    }

    /// Returns whether the file system uses `device` as a drive of an array, as a spare, or for a current or outdated
    /// copy of the metadata. Failed and replaced drives of the array count, too. A single data drive counts only if it
    /// has the metadata.
    pub fn uses(&self, device: &Device) -> bool {
        let core = &self.0;
        let is_drive = core.data.array().is_some_and(|array| array.uses(device));
        let is_spare = core.spares.uses(device);
        is_drive || is_spare || core.metadata.uses(device)
    }

    /// Returns the role of the device called `name` as English text: `drive N of the array`, `copy N of the metadata`,
    /// counted from 0, or `a spare of the array`. Failed and replaced drives of the array have their role still.
    /// Returns `None` if the device has none of these roles.
    pub fn role_of(&self, name: &str) -> Option<String> {
        let core = &self.0;
        if let Some(number) = core.data.array().and_then(|array| array.named(name)) {
            return Some(format!("drive {number} of the array"));
        }
        let copies = core.metadata.copies();
        if let Some((slot, ..)) = copies.iter().find(|(_, copy, state)| copy == name && *state != State::Replaced) {
            return Some(format!("copy {slot} of the metadata"));
        }
        core.spares.names().iter().any(|spare| spare == name).then(|| "a spare of the array".into())
    }

    /// Returns whether the drive called `name` was put in the place of drive `old`, and the replacement is not
    /// complete.
    pub fn is_replacing(&self, old: u8, name: &str) -> bool {
        let new = self.0.namespace.borrow().groups().replacement_of(old);
        new.is_some() && self.0.data.array().and_then(|array| array.named(name)) == new
    }

    /// Returns the stored extents of file `inode`, in the order of the file's blocks. Data that are only in memory have
    /// none. A `start` is a block of the data device; behind the last one it is a block of the hot zone, for a file
    /// stored only there.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file does not exist.
    pub fn extents(&self, inode: Inode) -> Result<Vec<Extent>, FsError> {
        Ok(self.0.namespace.borrow().node(inode)?.extents.as_slice().to_vec())
    }

    /// Returns the time of day of the file system's clock, in nanoseconds since 1970.
    pub fn time_ns(&self) -> i64 {
        self.0.time_ns()
    }
}
