//! Sectors that cannot be read whatever the medium says: lost by damage, or made so on request. Both last until they are
//! written, and lie in the journal beside the layer's map.
//!
//! Invariants:
//! 1. What is recorded here is durable before anybody is told.
//! 2. A sector that the host has written is readable again once that write is durable.

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::{Note, ReplayError};

use super::Store;
use super::transfer::Transfer;
use crate::error::DeviceError;
use crate::faults::known::Known;
use crate::lost::{Lost, NOTE_FOUND, NOTE_LOST};
use crate::media::Media;

/// What keeps sectors from being read, or slows them, until something ends it: kept in the journal beside the layer's map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Lost by damage.
    pub(super) lost: Lost,
    /// Asked for.
    pub(super) known: Known,
}

impl Faults {
    pub(super) fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.known.unreadable().next().is_none()
    }

    pub(super) fn replay(&mut self, note: &Note, capacity: Sectors) -> Result<(), ReplayError> {
        if Known::owns(note) { self.known.replay(note, capacity) } else { self.lost.replay(note) }
    }
}

impl<M: Media> Store<M> {
    /// The logical sectors that damage has taken until they are written.
    pub fn lost(&self) -> &Lost {
        &self.faults.lost
    }

    /// The faults that were asked for, but for those of zones.
    pub fn faults(&self) -> &Known {
        &self.faults.known
    }

    /// Makes logical sectors unreadable, durably, until they are written: damage has taken them.
    pub fn lose(&mut self, lba: Lba, sectors: Sectors) -> Result<(), DeviceError> {
        self.record(&Note::new(NOTE_LOST, &[lba.0, sectors.0]))
    }

    /// Takes the record of a fault, or of the end of one, durably.
    pub(crate) fn record(&mut self, note: &Note) -> Result<(), DeviceError> {
        self.check_running()?;
        self.faults.replay(note, self.capacity)?;
        let appended = self.journal.append(&mut self.space, note);
        self.stop_if_failed(appended)?;
        self.barrier()
    }

    /// Refuses to read sectors that are lost or unreadable, but for those that `is_spared(start, end)`, as those are whose
    /// contents a cache holds.
    pub fn check_readable(
        &self,
        lba: Lba,
        sectors: Sectors,
        is_spared: impl Fn(u64, u64) -> bool,
    ) -> Result<(), DeviceError> {
        if self.faults.is_empty() {
            return Ok(());
        }
        if let Some(lba) = self.faults.lost.first_unspared(lba, sectors, &is_spared) {
            return Err(DeviceError::Lost { lba });
        }
        match self.faults.known.first_unreadable(lba, sectors, &is_spared) {
            Some(lba) => Err(DeviceError::Unreadable { lba }),
            None => Ok(()),
        }
    }

    /// What `transfers` have written can be read again, once it is durable.
    pub(super) fn end_faults(&mut self, transfers: &[Transfer<'_>]) -> Result<(), DeviceError> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let sector_bytes = u64::from(self.disk.sector_bytes);
        for transfer in transfers {
            let Some(sectors) = transfer.data.changed(self.keeps_trims, sector_bytes).map(Sectors) else { continue };
            let lba = Lba(transfer.lba);
            let is_lost = self.faults.lost.first(lba, sectors).is_some();
            let found = is_lost.then(|| Note::new(NOTE_FOUND, &[lba.0, sectors.0]));
            for note in found.into_iter().chain(self.faults.known.written(lba, sectors)) {
                self.barrier()?;
                self.faults.replay(&note, self.capacity)?;
                self.journal.append(&mut self.space, &note)?;
            }
        }
        Ok(())
    }
}
