//! What an emulated drive holds, before a command writes all over it.

use std::io;

use imbrex_safety::{Peek, Survey, contents};

use super::EmulatedDrive;

impl Peek for EmulatedDrive {
    fn len(&self) -> u64 {
        self.capacity_bytes()
    }

    /// Sectors that cannot be read (never written on a caveat disk, destroyed, damaged) count as zeros.
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
    /// Looks for what the drive holds; `name` is what the user called its image. Who else uses the image was asked when it
    /// was opened.
    pub fn survey(&mut self, name: &str) -> io::Result<Survey> {
        let size_bytes = self.capacity_bytes();
        Ok(Survey { name: name.to_string(), size_bytes, contents: contents::found(self)?, ..Survey::default() })
    }
}
