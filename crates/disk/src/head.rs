//! The head's position: over which track, and behind which sector.

use crate::geometry::Place;
use crate::units::{Extent, Pba};
use crate::{Direction, Disk};

/// Where the head is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    radial_track: u32,
    surface: u8,
    /// One past the last sector accessed.
    next: Option<Pba>,
}

impl Head {
    /// Over the outermost track (radial position 0) of surface 0, with nothing accessed yet.
    pub(crate) const START: Head = Head { radial_track: 0, surface: 0, next: None };

    /// The radial position of the track that the head is over.
    #[inline]
    pub(crate) fn radial_track(&self) -> u32 {
        self.radial_track
    }

    /// The surface of that track.
    #[inline]
    pub(crate) fn surface(&self) -> u8 {
        self.surface
    }

    /// The sector behind the last one accessed.
    #[cfg(test)]
    pub(crate) fn next(&self) -> Option<Pba> {
        self.next
    }

    #[inline]
    pub(crate) fn distance(&self, place: &Place) -> u32 {
        self.radial_track.abs_diff(place.radial_track)
    }

    #[inline]
    pub(crate) fn changes_surface(&self, place: &Place) -> bool {
        self.surface != place.surface
    }

    /// Time to be over `place` by the seek model.
    #[inline]
    pub(crate) fn move_ns(&self, disk: &Disk, place: &Place, direction: Direction) -> u64 {
        disk.mechanics.move_ns(self.distance(place), self.changes_surface(place), direction)
    }

    #[inline]
    pub(crate) fn settle_on(&mut self, place: &Place) {
        self.radial_track = place.radial_track;
        self.surface = place.surface;
    }

    /// The last sector of `extent` has passed.
    #[inline]
    pub(crate) fn finish(&mut self, extent: Extent) {
        self.next = Some(extent.end());
    }

    /// Whether a transfer from `place` would go on where the last one ended.
    #[inline]
    pub(crate) fn continues_at(&self, place: &Place) -> bool {
        self.next == Some(place.pba())
    }

    /// Whether `extent` goes on where the last transfer ended.
    #[inline]
    pub(crate) fn continues(&self, extent: Extent) -> bool {
        self.next == Some(extent.start)
    }
}
