//! A schedule of faults on the emulated drive: [`crate::faults::player`] says what is due, this lets it come.

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::Zones;

use super::EmulatedDrive;
use crate::error::DeviceError;
use crate::faults::player::Played;
use crate::faults::{Fault, FaultKind};

impl EmulatedDrive {
    /// Plays `faults`, each at its time; what is due now comes at once. All are checked first: with one that the drive
    /// cannot have none is played.
    pub fn play_faults(&mut self, faults: impl IntoIterator<Item = Fault>) -> Result<(), DeviceError> {
        let faults: Vec<Fault> = faults.into_iter().collect();
        for fault in &faults {
            fault.kind.check(self.drive()).map_err(DeviceError::Refused)?;
        }
        self.player_mut().add(faults);
        self.play_due();
        Ok(())
    }

    /// Lets what is due come.
    pub(crate) fn play_due(&mut self) {
        let (requests, now) = self.requests_and_arrival();
        for kind in self.player_mut().due(requests, now) {
            let outcome = self.play(kind);
            self.take_slow_sectors();
            self.player_mut().has_played(Played { kind, outcome });
        }
    }

    /// What is on its way to a zone arrives before the zone fails or its pointer moves.
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

    /// The faults that have come since this was last asked.
    pub fn faults_played(&mut self) -> Vec<Played> {
        self.player_mut().take_played()
    }
}
