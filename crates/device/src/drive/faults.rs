//! Fault injection into the emulated drive by a schedule: [`crate::faults::player`] determines the faults that are
//! due, and this module applies them.

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::Zones;

use super::EmulatedDrive;
use crate::error::DeviceError;
use crate::faults::player::Played;
use crate::faults::{Fault, FaultKind};

impl EmulatedDrive {
    /// Adds `faults` to the faults that are to occur, and applies those that are due now.
    /// [`EmulatedDrive::faults_played`] returns the outcomes.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the drive cannot have one of the faults; then none is added.
    pub fn play_faults(&mut self, faults: impl IntoIterator<Item = Fault>) -> Result<(), DeviceError> {
        let faults: Vec<Fault> = faults.into_iter().collect();
        for fault in &faults {
            fault.kind.check(self.drive()).map_err(DeviceError::Refused)?;
        }
        self.player_mut().add(faults);
        self.play_due();
        Ok(())
    }

    /// Applies the faults that are due.
    pub(crate) fn play_due(&mut self) {
        let (requests, now) = self.requests_and_arrival();
        for kind in self.player_mut().due(requests, now) {
            let outcome = self.play(kind);
            self.take_slow_sectors();
            self.player_mut().has_played(Played { kind, outcome });
        }
    }

    /// Applies a fault. Requests in flight to a zone are completed before the zone fails or its pointer moves.
    fn play(&mut self, kind: FaultKind) -> Result<(), DeviceError> {
        if let FaultKind::Zone { zone, .. } | FaultKind::Pointer { zone, .. } = kind {
            let size = self.drive().layer.zones().map_or(Sectors::ZERO, Zones::zone_sectors);
            let start = Lba(u64::from(zone) * size.0);
            let sectors = start..start + size;
            self.settle(&sectors);
            self.write_back(&sectors)?;
        }
        let (drive, store) = self.drive_and_store();
        kind.apply(drive, store)
    }

    /// Removes and returns the faults applied since the previous call, with their outcomes, in the order in which they
    /// were applied.
    pub fn faults_played(&mut self) -> Vec<Played> {
        self.player_mut().take_played()
    }
}
