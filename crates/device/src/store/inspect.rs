//! Access to the contents of an image for inspection: checks, dumps, maps of holes.

use imbrex_disk::{Extent, Pba, Sectors};
use imbrex_layer::Medium;

use super::{Store, region_of};
use crate::error::DeviceError;
use crate::image::Region;
use crate::image::regions::Used;
use crate::image::transfer::Class;
use crate::media::Media;

impl<M: Media> Store<M> {
    /// Calls `each` with every range of bytes of the image that has a purpose of [`Use`](crate::image::regions::Use),
    /// such as header, sector table or contents. Ranges do not overlap, and are not sorted. The unused journal, the
    /// file mark and the area of copies for torn sectors are left out.
    ///
    /// # Errors
    /// The medium fails.
    pub fn for_each_used(&mut self, each: &mut dyn FnMut(Used)) -> Result<(), DeviceError> {
        self.space.for_each_used(&self.header, &self.journal, each)
    }

    /// Returns messages about damage that was found when the image was opened and did not prevent the opening.
    pub fn notices(&self) -> &[String] {
        self.space.notices()
    }

    /// Calls `each`, in ascending order, with every run of physical sectors of `extent` on the platters that the tables
    /// of the image mark as unreadable: destroyed, lost by damage to the image, or, on a caveat disk, never written.
    /// The contents of the sectors are not read.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn for_each_damage(&mut self, extent: Extent, mut each: impl FnMut(Extent)) -> Result<(), DeviceError> {
        let absent_is_damage = self.disk.recording.leaves_damage_to_host();
        let mut run: Option<Extent> = None;
        self.space.for_each_class(Region::Disk, extent, |part, class| {
            let is_damaged = match class {
                Class::Destroyed | Class::Spoilt => true,
                Class::Absent => absent_is_damage,
                Class::Zero | Class::Stored => false,
            };
            match &mut run {
                Some(run) if is_damaged && run.end() == part.start => run.sectors += part.sectors,
                _ if is_damaged => run.replace(part).into_iter().for_each(&mut each),
                _ => {}
            }
        })?;
        run.into_iter().for_each(each);
        Ok(())
    }

    /// Returns the first physical sector of `extent` on the platters that the tables of the image mark as unreadable,
    /// or `None` if there is none. Unreadable are destroyed sectors, sectors lost by damage to the image and, on a
    /// caveat disk, sectors that were never written.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn first_damaged(&mut self, extent: Extent) -> Result<Option<Pba>, DeviceError> {
        let mut first = None;
        self.for_each_damage(extent, |run| {
            first.get_or_insert(run.start);
        })?;
        Ok(first)
    }

    /// Calls `each`, in ascending order, with the runs that make up the `sectors` physical sectors of `medium` from
    /// `pba` on. The arguments are the length of the run in bytes, and false if the run certainly reads as zeros.
    /// Consecutive runs may have the same value.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn for_each_stored(
        &mut self,
        medium: Medium,
        pba: Pba,
        sectors: Sectors,
        each: &mut impl FnMut(u64, bool),
    ) -> Result<(), DeviceError> {
        let region = region_of(medium);
        let absent_is_damage = self.disk.recording.leaves_damage_to_host() && region == Region::Disk;
        let sector_bytes = u64::from(self.disk.sector_bytes);
        self.space.for_each_class(region, Extent::new(pba, sectors), |extent, class| {
            let is_stored = match class {
                Class::Absent => absent_is_damage,
                Class::Zero => false,
                Class::Stored | Class::Destroyed | Class::Spoilt => true,
            };
            each(extent.sectors.0 * sector_bytes, is_stored);
        })
    }

    /// Fills `into`, whole sectors, with the physical sectors of `medium` from `pba` on, for inspection. Unreadable
    /// sectors read as zeros.
    ///
    /// # Errors
    /// The medium fails.
    pub fn peek(&mut self, medium: Medium, pba: Pba, into: &mut [u8]) -> Result<(), DeviceError> {
        let mut faults = Vec::new();
        self.space.read(region_of(medium), pba, into, &mut faults)
    }
}
