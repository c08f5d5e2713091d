//! An emulated drive as a zoned one: a view, through the drive's queue, cache and clock. What it does takes simulated time,
//! which [`EmulatedDrive::now`] tells; between its commands no time passes but what its owner lets pass.
//!
//! Invariants:
//! 1. What is refused leaves image and zones alone.
//! 2. Resets, finishes and faults are durable when they return; writes after a flush.

use imbrex_disk::{Lba, Sectors};

use super::{Condition, Zone, ZoneAction, ZonedDevice, ZonedMode, whole_sectors};
use crate::drive::EmulatedDrive;
use crate::error::DeviceError;

/// The view.
pub struct EmulatedZoned {
    drive: EmulatedDrive,
    mode: ZonedMode,
}

impl EmulatedZoned {
    /// That of `drive`, if it has zones.
    pub fn new(drive: EmulatedDrive) -> Result<EmulatedZoned, DeviceError> {
        let Some(mode) = drive.zoned_mode() else {
            let layer = drive.drive().layer.name();
            let reason = format!("layer '{layer}' has no zones; make the drive with hm-zoned or +zoned");
            return Err(DeviceError::Refused(reason));
        };
        Ok(EmulatedZoned { drive, mode })
    }

    /// The drive: its clock and its figures.
    pub fn drive(&self) -> &EmulatedDrive {
        &self.drive
    }

    /// The same, to let time pass.
    pub fn drive_mut(&mut self) -> &mut EmulatedDrive {
        &mut self.drive
    }

    /// Takes the view away.
    pub fn into_drive(self) -> EmulatedDrive {
        self.drive
    }

    /// A fault of the medium: zone `index` becomes read-only or goes offline. For tests of who lives with it.
    pub fn fail_zone(&mut self, index: u32, condition: Condition) -> Result<(), DeviceError> {
        self.drive.change_zone(ZoneAction::Fail(index, condition))
    }

    fn offset(&self, lba: Lba) -> u64 {
        lba.0.saturating_mul(u64::from(self.mode.sector_bytes))
    }
}

impl ZonedDevice for EmulatedZoned {
    fn mode_sense(&self) -> ZonedMode {
        self.mode
    }

    fn report(&mut self, first: u32, count: u32, reported: &mut Vec<Zone>) -> Result<(), DeviceError> {
        self.drive.report_zones(first, count, reported);
        Ok(())
    }

    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), DeviceError> {
        whole_sectors(into.len(), self.mode.sector_bytes)?;
        self.drive.read(self.offset(lba), into)
    }

    fn write(&mut self, lba: Lba, from: &[u8]) -> Result<(), DeviceError> {
        whole_sectors(from.len(), self.mode.sector_bytes)?;
        self.drive.write(self.offset(lba), from, false)
    }

    fn reset(&mut self, index: u32) -> Result<(), DeviceError> {
        self.drive.change_zone(ZoneAction::Reset(index))
    }

    fn reset_all(&mut self) -> Result<(), DeviceError> {
        self.drive.change_zone(ZoneAction::ResetAll)
    }

    fn open(&mut self, index: u32) -> Result<(), DeviceError> {
        self.drive.change_zone(ZoneAction::Open(index))
    }

    fn close(&mut self, index: u32) -> Result<(), DeviceError> {
        self.drive.change_zone(ZoneAction::Close(index))
    }

    fn finish(&mut self, index: u32) -> Result<(), DeviceError> {
        self.drive.change_zone(ZoneAction::Finish(index))
    }

    fn set_pointer(&mut self, index: u32, to: Sectors) -> Result<(), DeviceError> {
        self.drive.change_zone(ZoneAction::SetPointer(index, to))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.drive.flush()
    }
}
