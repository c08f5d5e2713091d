//! Survey of the contents of an emulated drive, before a command overwrites it.

use std::io;

use imbrex_safety::{Peek, Survey, contents};

use super::EmulatedDrive;

impl Peek for EmulatedDrive {
    fn len(&self) -> u64 {
        self.capacity_bytes()
    }

    /// Reads bytes; unreadable sectors (never written on a caveat disk, destroyed, damaged) read as zeros.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let sector = self.sector_bytes() as usize;
        if self.read(offset, into).is_ok() {
            return Ok(());
        }
        for (index, part) in into.chunks_mut(sector).enumerate() {
            if self.read(offset + (index * sector) as u64, part).is_err() {
                part.fill(0);
            }
        }
        Ok(())
    }
}

impl EmulatedDrive {
    /// Returns a survey of the known file systems, partition tables and other contents of the drive, for a warning
    /// before they are overwritten. `name` is the name of the drive in the survey. Unreadable sectors count as zeros.
    /// Users of the image file are not looked for.
    ///
    /// # Errors
    /// The contents cannot be examined.
    pub fn survey(&mut self, name: &str) -> io::Result<Survey> {
        let size_bytes = self.capacity_bytes();
        Ok(Survey { name: name.to_string(), size_bytes, contents: contents::found(self)?, ..Survey::default() })
    }
}
