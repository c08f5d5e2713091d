//! Sectors that are unreadable whatever the medium returns: lost by damage, or made unreadable on request. They stay
//! unreadable until they are written. The journal records them beside the layer's map.
//!
//! Invariants:
//! 1. A fault is durable in the journal before the function that records it returns.
//! 2. A sector that the host has written is readable again once that write is durable.

use imbrex_disk::{Lba, Sectors};
use imbrex_layer::{Note, ReplayError};

use super::Store;
use super::transfer::Transfer;
use crate::error::DeviceError;
use crate::faults::known::Known;
use crate::lost::{Lost, NOTE_FOUND, NOTE_LOST};
use crate::media::Media;

/// Faults that make sectors unreadable or slow until an event ends them. They are recorded in the journal beside the
/// layer's map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Sectors lost by damage.
    pub(super) lost: Lost,
    /// Faults that were requested.
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
    /// Returns the logical sectors that were lost by damage to the image and not written since.
    pub fn lost(&self) -> &Lost {
        &self.faults.lost
    }

    /// Returns the injected faults that affect sectors. Faults of zones are stored with the zones.
    pub fn faults(&self) -> &Known {
        &self.faults.known
    }

    /// Marks the `sectors` logical sectors from `lba` on as lost by damage: reads fail until they are written. The mark
    /// is durable on return.
    ///
    /// # Errors
    /// The store has stopped, the medium fails, or the journal is full.
    pub fn lose(&mut self, lba: Lba, sectors: Sectors) -> Result<(), DeviceError> {
        self.record(&Note::new(NOTE_LOST, &[lba.0, sectors.0]))
    }

    /// Records a fault, or the end of one, durably.
    pub(crate) fn record(&mut self, note: &Note) -> Result<(), DeviceError> {
        self.check_running()?;
        self.faults.replay(note, self.capacity)?;
        let appended = self.journal.append(&mut self.space, note);
        self.stop_if_failed(appended)?;
        self.barrier()
    }

    /// Returns an error if any of the `sectors` logical sectors from `lba` on is lost or made unreadable by an injected
    /// fault. Sectors start..end for which `is_spared(start, end)` returns true are exempt, such as sectors in a cache.
    /// The contents are not read.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] or [`DeviceError::Unreadable`], with the first such sector; lost sectors are reported
    /// first.
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

    /// Makes the sectors that `transfers` changed readable again. The changes are made durable first.
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
