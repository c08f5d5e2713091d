//! A view of an emulated drive as a zoned drive. Operations go through the drive's queue, cache and clock, and take
//! simulated time ([`EmulatedDrive::now`]). Between commands, time passes only if the owner lets it pass.
//!
//! Invariants:
//! 1. A refused command changes neither the image nor the zones.
//! 2. Resets, finishes and faults are durable when they return; writes are durable after a flush.

use imbrex_disk::{Lba, Sectors};

use super::{Condition, Zone, ZoneAction, ZonedDevice, ZonedMode, whole_sectors};
use crate::drive::EmulatedDrive;
use crate::error::DeviceError;

/// A view of an emulated drive as a zoned drive. Reads, writes and flushes take simulated time.
pub struct EmulatedZoned {
    drive: EmulatedDrive,
    mode: ZonedMode,
}

impl EmulatedZoned {
    /// Returns a view of `drive` as a zoned drive.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the drive has no zones.
    pub fn new(drive: EmulatedDrive) -> Result<EmulatedZoned, DeviceError> {
        let Some(mode) = drive.zoned_mode() else {
            let layer = drive.drive().layer.name();
            let reason = format!("layer '{layer}' has no zones; make the drive with hm-zoned or +zoned");
            return Err(DeviceError::Refused(reason));
        };
        Ok(EmulatedZoned { drive, mode })
    }

    /// Returns the drive, for example to read its clock and its metrics.
    pub fn drive(&self) -> &EmulatedDrive {
        &self.drive
    }

    /// Returns the drive for changes, for example to let simulated time pass.
    pub fn drive_mut(&mut self) -> &mut EmulatedDrive {
        &mut self.drive
    }

    /// Returns the drive and drops the view.
    pub fn into_drive(self) -> EmulatedDrive {
        self.drive
    }

    /// Makes zone `index` read-only or offline, as after a fault of the medium; for tests of hosts that must handle
    /// this.
    ///
    /// # Errors
    /// The zone does not exist, or the drive fails or has stopped.
    ///
    /// # Panics
    /// If `condition` is neither read-only nor offline.
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
