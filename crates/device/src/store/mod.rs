//! The store: executes plans on an image. It moves bytes, marks the sectors that writes destroy, appends to the journal
//! and executes barriers. It knows neither time nor queues.
//!
//! - `opening`: creates and opens images;
//! - `transfer`: host data for a plan; [`execute`](Store::execute) and its steps are in `execute`;
//! - `unreadable`: sectors that were lost, or made unreadable on request, until they are written;
//! - `inspect`: access to an image for checks and dumps.
//!
//! Invariants:
//! 1. A step is complete before the next begins. Before a write, the sectors that it destroys are durably marked. So
//!    after a power cut a destroyed sector reads as destroyed, never as its old contents.
//! 2. Reading a destroyed sector of data is an error. So is reading a sector whose checksum does not match: the host
//!    gets an error; a background plan that reads a sector with a wrong checksum marks the copy as unreadable, and
//!    continues.
//! 3. After a failed write or flush the store accepts no further plan, and no barrier succeeds: the layer in memory is
//!    ahead of the image, and only the image counts. Opening the image again recovers all acknowledged writes.
//! 4. Only data steps move bytes. Padding, maps and the records in packets can be rebuilt from the journal, so their
//!    sectors are marked as written and hold nothing.

mod execute;
mod inspect;
mod opening;
mod transfer;
mod unreadable;

use std::sync::Arc;

use imbrex_disk::{Extent, Sectors, SharedDisk};
use imbrex_layer::{Layer, Medium};
use imbrex_sim::Drive;

use crate::error::DeviceError;
use crate::image::journal::STORE_TAGS;
use crate::image::transfer::Fault;
use crate::image::{Header, Journal, Region, Space};
use crate::lost::Lost;
use crate::media::Media;
use crate::staging::Staging;

pub(crate) use execute::Held;
pub(crate) use opening::replay;
pub use transfer::{Data, Transfer};
pub(crate) use unreadable::Faults;

/// An open image: its stored bytes, its journal, and the faults of its drive. Executes the plans of a translation
/// layer.
#[derive(Debug)]
pub struct Store<M> {
    header: Header,
    disk: SharedDisk,
    keeps_trims: bool,
    pub(crate) space: Space<M>,
    pub(crate) journal: Journal,
    faults: Faults,
    /// Capacity of the drive, as the host sees it.
    capacity: Sectors,
    /// Staging buffers of host groups and of background groups, whose phases may be apart.
    staging: [Staging; 2],
    destroyed: Vec<Extent>,
    /// Faults of the latest read.
    unread: Vec<Fault>,
    /// Failed reads of the host in the current plan: the number of the transfer and the error.
    unserved: Vec<(usize, DeviceError)>,
    scratch: Vec<u8>,
    stopped: Option<String>,
    /// Whether writes destroy nothing, so that the search for destroyed sectors can be skipped.
    is_harmless: bool,
}

/// The simulator's drive that an image describes, and the open store with its contents.
pub type Opened<M> = (Drive, Store<M>);

impl<M: Media> Store<M> {
    /// Returns the header of the image, which describes the drive.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the storage of the image: its medium, its state, and the slots with contents, sector tables and
    /// journals.
    pub fn space(&self) -> &Space<M> {
        &self.space
    }

    /// Returns the storage of the image (its medium, its state, and the slots with contents, sector tables and
    /// journals), for tests that cut the power and for inspection.
    pub fn space_mut(&mut self) -> &mut Space<M> {
        &mut self.space
    }

    /// Lends blocks of memory to the medium until the next call ([`Media::lend`]): if the data of a write lies in such
    /// a block, the medium may keep the block instead of a copy.
    pub fn lend(&mut self, blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {
        self.space.lend(blocks);
    }

    /// Removes and returns a lent block that the medium has stopped using since the latest call of [`Store::lend`], or
    /// `None` if there is none.
    pub fn reclaim(&mut self) -> Option<Vec<u8>> {
        self.space.reclaim()
    }

    /// Returns the valid journal of the image.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Consumes the store and returns the medium, without a flush. Writes since the last [`Store::barrier`] may not be
    /// on the medium.
    pub fn into_media(self) -> M {
        self.space.into_media()
    }

    /// Returns the reason for which the store has stopped, or `None` if it works.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Stops the store for `reason`: later operations fail. If it has stopped already, the earlier reason stays.
    pub fn stop(&mut self, reason: &str) {
        self.stopped.get_or_insert_with(|| reason.into());
    }

    /// Makes all writes so far durable before any later write.
    ///
    /// # Errors
    /// The medium fails, or the store has stopped. A failure of the medium stops the store: writes since the last
    /// barrier may be lost, and a second barrier could wrongly report success, as a second `fsync` does on Linux.
    pub fn barrier(&mut self) -> Result<(), DeviceError> {
        self.check_running()?;
        let outcome = self.space.barrier(self.journal.records());
        self.stop_if_failed(outcome)?;
        self.journal.flushed();
        Ok(())
    }

    /// Makes all writes so far and the new state of the image durable. If the host's disk later loses data that this
    /// flush covered, the loss is detected as damage.
    ///
    /// # Errors
    /// The medium fails, or the store has stopped. A failure of the medium stops the store.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        self.barrier()?;
        let outcome = self.space.flush();
        self.stop_if_failed(outcome)
    }

    /// Returns an error if the store has stopped.
    fn check_running(&self) -> Result<(), DeviceError> {
        self.stopped.as_ref().map_or(Ok(()), |reason| Err(DeviceError::Stopped(reason.clone())))
    }

    /// Returns `outcome`; an error stops the store.
    fn stop_if_failed(&mut self, outcome: Result<(), DeviceError>) -> Result<(), DeviceError> {
        outcome.inspect_err(|error| self.stop(&error.to_string()))
    }

    /// Begins an empty journal, for a drive whose map is lost. Marks all sectors as never written; `drive` is in its
    /// initial state. Only for repair.
    pub(crate) fn start_anew(&mut self, drive: &Drive) -> Result<(), DeviceError> {
        self.journal = Journal::begin_anew(&mut self.space, self.header.journal_bytes)?;
        self.space.forget_sectors()?;
        self.faults.lost = Lost::default();
        self.stopped = None;
        assert_eq!(drive.disk.geometry.sectors().0, self.header.disk_sectors, "the drive is another");
        let mut notes = Vec::new();
        drive.layer.checkpoint(&mut notes);
        notes.iter().try_for_each(|note| self.journal.append(&mut self.space, note))?;
        self.barrier()
    }

    /// Marks the image as closed cleanly, so that a later loss of journal records is detected. All data survives a
    /// crash of the host on return, even if flushes of the medium do not reach the disk.
    ///
    /// # Errors
    /// The medium fails, or the store has stopped. A failure stops the store.
    pub fn seal(&mut self) -> Result<(), DeviceError> {
        self.check_running()?;
        let sealed = self.space.sync().and_then(|()| self.journal.seal(&mut self.space));
        let synced = sealed.and_then(|()| self.space.sync());
        self.stop_if_failed(synced)
    }

    /// Makes all writes so far survive a crash of the host, even if flushes of the medium do not reach the disk.
    ///
    /// # Errors
    /// The medium fails, or the store has stopped. A failure stops the store.
    pub fn sync(&mut self) -> Result<(), DeviceError> {
        self.check_running()?;
        let synced = self.space.sync();
        self.stop_if_failed(synced)
    }

    /// Calls [`Store::checkpoint`], which shortens the journal, if the journal is long enough
    /// ([`Journal::wants_checkpoint`]). Does nothing if the store has stopped. To be called only between plans.
    ///
    /// # Errors
    /// The medium fails, or the map has more records than a journal can hold. A failure stops the store.
    pub fn checkpoint_if_due(&mut self, layer: &dyn Layer) -> Result<(), DeviceError> {
        if self.stopped.is_some() || !self.journal.wants_checkpoint() {
            return Ok(());
        }
        self.checkpoint(layer)
    }

    /// Replaces the journal by one with only the records that describe the current map of `layer` and the faults of the
    /// drive, durably. To be called only between plans.
    ///
    /// # Errors
    /// The medium fails, or the map has more records than a journal can hold. A failure stops the store.
    ///
    /// # Panics
    /// If the layer uses a record tag that belongs to the store.
    pub fn checkpoint(&mut self, layer: &dyn Layer) -> Result<(), DeviceError> {
        let mut notes = Vec::new();
        layer.checkpoint(&mut notes);
        assert!(notes.iter().all(|note| note.tag < STORE_TAGS), "a layer's tag is one of the store's own");
        self.faults.lost.checkpoint(&mut notes);
        self.faults.known.checkpoint(&mut notes);
        let outcome = self.journal.checkpoint(&mut self.space, &notes);
        self.stop_if_failed(outcome)
    }
}

fn region_of(medium: Medium) -> Region {
    match medium {
        Medium::Disk => Region::Disk,
        Medium::Flash => Region::Flash,
    }
}

#[cfg(test)]
pub(crate) mod tests;
