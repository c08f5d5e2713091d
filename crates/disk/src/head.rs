//! The head's position: its track, and the sector after the last one that it accessed.

use crate::geometry::Place;
use crate::units::{Extent, Pba};
use crate::{Direction, Disk};

/// Position of the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    radial_track: u32,
    surface: u8,
    /// One past the last sector accessed; `None` before the first access.
    next: Option<Pba>,
}

impl Head {
    /// A head over the outermost track (radial position 0) of surface 0, before its first access.
    pub(crate) const START: Head = Head { radial_track: 0, surface: 0, next: None };

    /// Returns the radial position of the track that the head is over.
    #[inline]
    pub(crate) fn radial_track(&self) -> u32 {
        self.radial_track
    }

    /// Returns the surface of the track that the head is over.
    #[inline]
    pub(crate) fn surface(&self) -> u8 {
        self.surface
    }

    /// Returns the sector after the last one accessed.
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

    /// Returns the time to move over the track of `place`, by the seek model, in nanoseconds.
    #[inline]
    pub(crate) fn move_ns(&self, disk: &Disk, place: &Place, direction: Direction) -> u64 {
        disk.mechanics.move_ns(self.distance(place), self.changes_surface(place), direction)
    }

    #[inline]
    pub(crate) fn settle_on(&mut self, place: &Place) {
        self.radial_track = place.radial_track;
        self.surface = place.surface;
    }

    /// Records that the last sector of `extent` has passed.
    #[inline]
    pub(crate) fn finish(&mut self, extent: Extent) {
        self.next = Some(extent.end());
    }

    /// Returns whether a transfer from `place` would continue where the last transfer ended.
    #[inline]
    pub(crate) fn continues_at(&self, place: &Place) -> bool {
        self.next == Some(place.pba())
    }

    /// Returns whether `extent` begins where the last transfer ended.
    #[inline]
    pub(crate) fn continues(&self, extent: Extent) -> bool {
        self.next == Some(extent.start)
    }
}
