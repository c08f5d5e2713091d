//! Plays a schedule of faults on a drive at work: each comes with the first request that finds it due, before that request
//! enters.
//!
//! Invariants:
//! 1. Each fault comes once, in the order in which they fall due; of those that fall due together in the schedule's.
//! 2. The time that counts is the drive's, so a schedule plays alike at every pace.

use imbrex_disk::{Lba, Sectors, SimTime};
use imbrex_layer::Zones;

use super::{Due, Fault, FaultKind};
use crate::drive::EmulatedDrive;
use crate::error::DeviceError;

/// A fault that came, and whether the drive could still have it.
#[derive(Debug)]
pub struct Played {
    /// What.
    pub kind: FaultKind,
    /// Whether it came: a zone may have failed meanwhile.
    pub outcome: Result<(), DeviceError>,
}

/// A schedule being played.
#[derive(Debug, Default)]
pub(crate) struct Player {
    pending: Vec<Fault>,
    played: Vec<Played>,
}

impl Player {
    /// Whether a fault is due when `requests` have come and the next arrives at `now`.
    pub(crate) fn is_due(&self, requests: u64, now: SimTime) -> bool {
        self.pending.iter().any(|fault| is_due(fault, requests, now))
    }

    /// Takes the faults that are due.
    fn due(&mut self, requests: u64, now: SimTime) -> Vec<FaultKind> {
        let due = self.pending.extract_if(.., |fault| is_due(fault, requests, now));
        due.map(|fault| fault.kind).collect()
    }
}

fn is_due(fault: &Fault, requests: u64, now: SimTime) -> bool {
    match fault.due {
        Due::Now => true,
        Due::At(time) => time <= now,
        Due::AfterRequests(count) => count <= requests,
    }
}

impl EmulatedDrive {
    /// Plays `faults`, each at its time; what is due now comes at once. All are checked first: with one that the drive
    /// cannot have none is played.
    pub fn play_faults(&mut self, faults: impl IntoIterator<Item = Fault>) -> Result<(), DeviceError> {
        let faults: Vec<Fault> = faults.into_iter().collect();
        for fault in &faults {
            fault.kind.check(self.drive()).map_err(DeviceError::Refused)?;
        }
        self.player_mut().pending.extend(faults);
        self.play_due();
        Ok(())
    }

    /// Lets what is due come.
    pub(crate) fn play_due(&mut self) {
        let (requests, now) = self.requests_and_arrival();
        for kind in self.player_mut().due(requests, now) {
            let outcome = self.play(kind);
            self.take_slow_sectors();
            self.player_mut().played.push(Played { kind, outcome });
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
        std::mem::take(&mut self.player_mut().played)
    }
}
