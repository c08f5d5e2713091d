//! What a file system is and where its files lie, for programs that show it.

use super::Fs;
use crate::device::Device;
use crate::error::FsError;
use crate::format::change::{Extent, Inode};
use crate::format::superblock::Superblock;
use crate::journal::mirror::State;

impl Fs {
    /// What was written on its devices when it was made.
    pub fn superblock(&self) -> &Superblock {
        &self.0.superblock
    }

    /// How many drives its data lie on.
    pub fn drives(&self) -> usize {
        self.0.data.array().map_or(1, |array| array.drives_now())
    }

    /// Whether it uses `device`: as a drive, for its metadata, or as a spare.
    pub fn uses(&self, device: &Device) -> bool {
        let core = &self.0;
        let is_drive = core.data.array().is_some_and(|array| array.uses(device));
        let is_spare = core.spares.borrow().iter().any(|(_, spare)| spare.is(device));
        is_drive || is_spare || core.metadata.uses(device)
    }

    /// What the device called `name` is in it, in words; nothing if it uses none of that name.
    pub fn role_of(&self, name: &str) -> Option<String> {
        let core = &self.0;
        if let Some(number) = core.data.array().and_then(|array| array.named(name)) {
            return Some(format!("drive {number} of the array"));
        }
        let copies = core.metadata.copies();
        if let Some((slot, ..)) = copies.iter().find(|(_, copy, state)| copy == name && *state != State::Replaced) {
            return Some(format!("copy {slot} of the metadata"));
        }
        core.spares.borrow().iter().any(|(_, spare)| spare.name() == name).then(|| "a spare of the array".into())
    }

    /// Whether the drive called `name` was put in the place of drive `old`, and that goes on.
    pub fn is_replacing(&self, old: u8, name: &str) -> bool {
        let new = self.0.namespace.borrow().groups().replacement_of(old);
        new.is_some() && self.0.data.array().and_then(|array| array.named(name)) == new
    }

    /// Where what is stored of a file lies, in order of the file; what is still in memory lies nowhere.
    pub fn extents(&self, inode: Inode) -> Result<Vec<Extent>, FsError> {
        Ok(self.0.namespace.borrow().node(inode)?.extents.as_slice().to_vec())
    }

    /// The time of day of the file system's clock, in nanoseconds since 1970.
    pub fn time_ns(&self) -> i64 {
        self.0.time_ns()
    }
}
