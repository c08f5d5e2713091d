//! Creates an image and opens one: for writing, or only for inspection.

use imbrex_layer::{Layer, Plan};
use imbrex_sim::Drive;

use super::unreadable::Faults;
use super::{Opened, Store};
use crate::error::DeviceError;
use crate::image::journal::STORE_TAGS;
use crate::image::space::Blank;
use crate::image::{Bounds, Header, Journal, Space};
use crate::media::Media;
use crate::staging::Staging;

impl<M: Media> Store<M> {
    /// Creates an image of the drive that `header` describes on `media`, which must be empty, and opens it.
    ///
    /// # Errors
    /// The header does not describe a valid drive or is too long, or the medium fails.
    pub fn create(media: M, header: Header) -> Result<Opened<M>, DeviceError> {
        let drive = header.drive()?;
        Store::create_of(media, header, drive)
    }

    /// Creates an image of `drive` on `media`, which must be empty, and opens it. `drive` was built from `header` and
    /// is in its initial state; this saves the time to build a large drive again.
    ///
    /// # Errors
    /// The header is too long, or the medium fails.
    ///
    /// # Panics
    /// If the drive has another number of physical sectors than `header` says.
    pub fn create_of(media: M, header: Header, drive: Drive) -> Result<Opened<M>, DeviceError> {
        Store::create_bounded(media, header, drive, Bounds::default())
    }

    /// Creates an image of `drive` on `media`, which must be empty, and opens it with the limits `bounds` on caches,
    /// buffers and batches. `drive` was built from `header` and is in its initial state.
    ///
    /// # Errors
    /// The header is too long, or the medium fails.
    ///
    /// # Panics
    /// If the drive has another number of physical sectors than `header` says.
    pub fn create_bounded(
        mut media: M,
        header: Header,
        drive: Drive,
        bounds: Bounds,
    ) -> Result<Opened<M>, DeviceError> {
        assert_eq!(drive.disk.geometry.sectors().0, header.disk_sectors, "the header is of another drive");
        header.write(&mut media)?;
        let mut space = Space::create(media, &header, bounds)?;
        let journal = Journal::replay(&mut space, header.journal_bytes, &header.label, |_| {
            unreachable!("a new journal is empty")
        })?;
        let store = Store::over(header, &drive, space, journal, Faults::default());
        Ok((drive, store))
    }

    /// Opens an image for reading and writing: replays its journal, then completes or undoes operations that a power
    /// cut interrupted. `place` names the image in errors. Writes to the medium.
    ///
    /// # Errors
    /// The image has no valid header, is damaged, or is a copy of an image in use; or the medium fails.
    pub fn open(media: M, place: &str) -> Result<Opened<M>, DeviceError> {
        Store::open_prepared(media, place, |_| {})
    }

    /// Opens an image for reading and writing, and recovers it after a power cut. Calls `prepare` with the drive before
    /// its journal is replayed; tests use this to break a layer on purpose. `place` names the image in errors.
    ///
    /// # Errors
    /// The image has no valid header, is damaged, or is a copy of an image in use; or the medium fails.
    pub fn open_prepared(media: M, place: &str, prepare: impl FnOnce(&mut Drive)) -> Result<Opened<M>, DeviceError> {
        Store::open_bounded(media, place, Bounds::default(), prepare)
    }

    /// Opens an image for reading and writing with the limits `bounds` on caches, buffers and batches, and recovers it
    /// after a power cut. Calls `prepare` with the drive before its journal is replayed. `place` names the image in
    /// errors.
    ///
    /// # Errors
    /// The image has no valid header, is damaged, or is a copy of an image in use; or the medium fails.
    pub fn open_bounded(
        media: M,
        place: &str,
        bounds: Bounds,
        prepare: impl FnOnce(&mut Drive),
    ) -> Result<Opened<M>, DeviceError> {
        let (mut drive, mut store) = Store::replayed(media, place, bounds, prepare)?;
        store.space.refuse_copied_at_work(place)?;
        store.begin_work(drive.layer.as_mut())?;
        // The records of the repair must not make the journal longer with every opening.
        store.checkpoint_if_due(drive.layer.as_ref())?;
        Ok((drive, store))
    }

    /// Determines, after a power cut, whether the sectors written last are old or new ([`Space::settle`]).
    pub(crate) fn settle(&mut self) -> Result<(), DeviceError> {
        self.space.settle()
    }

    /// Recovers from an interrupted run: decides for sectors written last whether they are old or new, and lets `layer`
    /// repair interrupted operations.
    pub(crate) fn begin_work(&mut self, layer: &mut dyn Layer) -> Result<(), DeviceError> {
        self.space.mark_file()?;
        self.settle()?;
        self.journal.begin_epoch(&mut self.space)?;
        let mut plan = Plan::new();
        layer.repair(&mut plan);
        self.execute(&plan, &mut [])?;
        self.barrier()
    }

    /// Opens an image without writing to its medium. Operations that a power cut interrupted stay incomplete, so
    /// sectors of interrupted writes may hold mixed contents.
    ///
    /// # Errors
    /// The image has no valid header or is damaged, or the medium fails.
    pub fn open_to_look(media: M, place: &str) -> Result<Opened<M>, DeviceError> {
        Store::replayed(media, place, Bounds::default(), |_| {})
    }

    fn replayed(
        mut media: M,
        place: &str,
        bounds: Bounds,
        prepare: impl FnOnce(&mut Drive),
    ) -> Result<Opened<M>, DeviceError> {
        let header = Header::read(&mut media, place)?;
        let mut drive = header.drive()?;
        prepare(&mut drive);
        let mut space = Space::open(media, &header, place, bounds)?;
        let (journal, faults) = replay(&mut space, &header, drive.layer.as_mut(), place)?;
        let store = Store::over(header, &drive, space, journal, faults);
        Ok((drive, store))
    }

    pub(crate) fn over(
        header: Header,
        drive: &Drive,
        mut space: Space<M>,
        journal: Journal,
        faults: Faults,
    ) -> Store<M> {
        let disk = drive.disk.clone();
        let sector_bytes = disk.sector_bytes;
        let is_damaged = disk.recording.leaves_damage_to_host();
        space.set_blank(Blank { is_damaged, remembers_zeros: drive.layer.is_host_managed() });
        Store {
            keeps_trims: drive.layer.keeps_trims(),
            is_harmless: disk.recording.is_harmless() && !is_damaged,
            staging: [Staging::new(sector_bytes), Staging::new(sector_bytes)],
            destroyed: Vec::new(),
            unread: Vec::new(),
            unserved: Vec::new(),
            scratch: Vec::new(),
            stopped: None,
            header,
            disk,
            space,
            journal,
            faults,
            capacity: drive.layer.capacity(),
        }
    }
}

/// Replays the journal of `space` into `layer`. Returns the journal, and the faults from the store's own records.
pub(crate) fn replay<M: Media>(
    space: &mut Space<M>,
    header: &Header,
    layer: &mut dyn Layer,
    place: &str,
) -> Result<(Journal, Faults), DeviceError> {
    let (mut faults, capacity) = (Faults::default(), layer.capacity());
    let journal = Journal::replay(space, header.journal_bytes, place, |note| {
        let taken = if note.tag >= STORE_TAGS { faults.replay(note, capacity) } else { layer.replay(note) };
        taken.map_err(Into::into)
    })?;
    Ok((journal, faults))
}
