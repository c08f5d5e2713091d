//! The `cylinder` layout: all surfaces of a cylinder, surface 0 first, then the next cylinder inward. This is the
//! layout of conventional drives in its simplest form; serpentine cylinders are not modelled.

use super::divide::Divider;
use super::{Spot, ZoneSkew};
use crate::units::Sectors;

/// A recording zone laid out by cylinders.
#[derive(Clone, Debug)]
pub(super) struct Cylinder {
    track: Divider,
    surfaces: Divider,
    skew: ZoneSkew,
}

impl Cylinder {
    /// Creates a zone whose tracks hold `track_sectors`.
    pub(super) fn new(track_sectors: u32, surfaces: u8, skew: ZoneSkew) -> Cylinder {
        Cylinder { track: Divider::new(track_sectors as u64), surfaces: Divider::new(surfaces as u64), skew }
    }

    /// Returns the spot of the sector at `offset` from the zone's first sector.
    #[inline]
    pub(super) fn spot(&self, offset: u64) -> Spot {
        let (track, sector) = self.track.divide(offset);
        let (cylinder, surface) = self.surfaces.divide(track);
        self.spot_on(cylinder, surface, sector as u32)
    }

    /// Returns the number of tracks from the one that begins at `offset` up to offset `end`, the end of the zone, and
    /// the sectors of each. Returns `None` if no track begins at `offset`.
    pub(super) fn row_from(&self, offset: u64, end: u64) -> Option<(u64, Sectors)> {
        let (track, sector) = self.track.divide(offset);
        (sector == 0).then(|| (self.track.quotient(end) - track, Sectors(self.track.divisor())))
    }

    /// Returns the offset and the spot of a track's first sector.
    #[inline]
    pub(super) fn track(&self, radial_offset: u32, surface: u8) -> (u64, Spot) {
        let track = radial_offset as u64 * self.surfaces.divisor() + surface as u64;
        (track * self.track.divisor(), self.spot_on(radial_offset as u64, surface as u64, 0))
    }

    #[inline]
    fn spot_on(&self, cylinder: u64, surface: u64, sector: u32) -> Spot {
        let cylinder_ns = (self.surfaces.divisor() - 1) * self.skew.head_ns + self.skew.track_ns;
        Spot {
            radial_offset: cylinder as u32,
            surface: surface as u8,
            sector,
            length: self.track,
            skew_ns: self.skew.base_ns + cylinder * cylinder_ns + surface * self.skew.head_ns,
        }
    }

    /// Returns the skew of the first track of the next zone, after this zone of `tracks` cylinders, in nanoseconds.
    pub(super) fn next_base_ns(&self, tracks: u32) -> u64 {
        self.spot_on(tracks as u64, 0, 0).skew_ns
    }
}
