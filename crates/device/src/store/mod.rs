//! The store: carries plans out on an image. It moves bytes, marks what writes destroy, appends the journal and keeps the
//! order that barriers demand; it knows no time and no queue.
//!
//! - `opening`: making an image, opening one;
//! - `transfer`: what a host gives and wants; [`execute`](Store::execute) and its steps are in `execute`;
//! - `unreadable`: sectors that were lost, or made unreadable, until they are written;
//! - `inspect`: what an image holds, for whoever looks at it.
//!
//! Invariants:
//! 1. A step is done before the next begins. What a write destroys is durably marked before its bytes are written, so that a
//!    power cut leaves what was destroyed destroyed, never old bytes.
//! 2. Reading a destroyed sector of data is an error. So is reading what does not match its checksum: the host is told;
//!    a background plan that comes upon such sectors makes them [`Lost`] ones, and goes on.
//! 3. After a failed write or flush the store takes no further plan, and no barrier succeeds: the layer in memory is ahead of
//!    the image, which alone counts. Opening the image again recovers what was acknowledged.
//! 4. Only data steps move bytes. Padding, maps and packets' own records are made from the journal, so their places are
//!    marked as written and hold nothing.

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

pub(crate) use opening::replay;
pub use transfer::{Data, Transfer};
pub(crate) use unreadable::Faults;

/// An image at work.
#[derive(Debug)]
pub struct Store<M> {
    header: Header,
    disk: SharedDisk,
    keeps_trims: bool,
    pub(crate) space: Space<M>,
    pub(crate) journal: Journal,
    faults: Faults,
    /// What the host sees.
    capacity: Sectors,
    /// Staging of host groups and of the others, whose phases may be apart.
    staging: [Staging; 2],
    destroyed: Vec<Extent>,
    /// What the latest read came upon.
    unread: Vec<Fault>,
    /// Which of the host's reads of the plan that is carried out fail, by number of their transfer, and why.
    unserved: Vec<(usize, DeviceError)>,
    scratch: Vec<u8>,
    stopped: Option<String>,
    /// Whether no write destroys anything, so that there is no damage to look for.
    is_harmless: bool,
}

/// A drive and the store that holds its contents.
pub type Opened<M> = (Drive, Store<M>);

impl<M: Media> Store<M> {
    /// What the drive is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The space of the image.
    pub fn space(&self) -> &Space<M> {
        &self.space
    }

    /// The space of the image, for whoever cuts or inspects it.
    pub fn space_mut(&mut self) -> &mut Space<M> {
        &mut self.space
    }

    /// Until the next call, what the host gives lies in these blocks: the medium may keep them.
    pub fn lend(&mut self, blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {
        self.space.lend(blocks);
    }

    /// A block that the medium has left since this loan began.
    pub fn reclaim(&mut self) -> Option<Vec<u8>> {
        self.space.reclaim()
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Takes it apart; what is not durable on the medium may be lost with the power.
    pub fn into_media(self) -> M {
        self.space.into_media()
    }

    /// Why it has stopped, if it has.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Stops it: the layer planned what was not carried out.
    pub fn stop(&mut self, reason: &str) {
        self.stopped.get_or_insert_with(|| reason.into());
    }

    /// All so far is durable before anything that follows. If that fails the store stops: what was written since the last barrier
    /// may be lost, and no second try would say so.
    pub fn barrier(&mut self) -> Result<(), DeviceError> {
        self.check_running()?;
        let outcome = self.space.barrier(self.journal.records());
        self.stop_if_failed(outcome)?;
        self.journal.flushed();
        Ok(())
    }

    /// All so far is durable, and so is the mark that says so: what a barrier that was answered covered, and the host's disk dropped, is
    /// damage from then on, whatever cut follows. Fails as a barrier does.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        self.barrier()?;
        let outcome = self.space.flush();
        self.stop_if_failed(outcome)
    }

    /// Fails if it has stopped.
    fn check_running(&self) -> Result<(), DeviceError> {
        self.stopped.as_ref().map_or(Ok(()), |reason| Err(DeviceError::Stopped(reason.clone())))
    }

    /// The same outcome; an error stops the store.
    fn stop_if_failed(&mut self, outcome: Result<(), DeviceError>) -> Result<(), DeviceError> {
        outcome.inspect_err(|error| self.stop(&error.to_string()))
    }

    /// Begins the journal anew, for a drive whose map is lost: `drive` is as new. For repair alone.
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

    /// Closes the books, for a drive that is switched off: what is lost of its journal from now on will show. All of it
    /// outlives the host from now on, however far flushes reached before; so nobody finds an image closed that is not whole.
    pub fn seal(&mut self) -> Result<(), DeviceError> {
        self.check_running()?;
        let sealed = self.space.sync().and_then(|()| self.journal.seal(&mut self.space));
        let synced = sealed.and_then(|()| self.space.sync());
        self.stop_if_failed(synced)
    }

    /// Makes all that was written outlive the host, however far flushes reach.
    pub fn sync(&mut self) -> Result<(), DeviceError> {
        self.check_running()?;
        let synced = self.space.sync();
        self.stop_if_failed(synced)
    }

    /// Replaces the journal by a checkpoint of `layer` once it has grown long. Between plans only.
    pub fn checkpoint_if_due(&mut self, layer: &dyn Layer) -> Result<(), DeviceError> {
        if self.stopped.is_some() || !self.journal.wants_checkpoint() {
            return Ok(());
        }
        self.checkpoint(layer)
    }

    /// Replaces the journal by a checkpoint of `layer`. Between plans only.
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
