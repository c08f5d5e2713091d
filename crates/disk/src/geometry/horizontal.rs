//! The `horizontal` layout of shingled drives (Aghayev 2015 §4.9, figs. 18 and 19): a recording zone is one wide radial
//! stroke of thousands of tracks on each surface. Zones follow each other from the outer to the inner diameter. Strokes
//! run inward in the outer part and outward in the inner part, so that shingling points at the middle from both sides.
//! Surfaces are taken 0 … H−1 in one zone and H−1 … 0 in the next. Zones of the conventional middle part are
//! serpentine: strokes run inward and outward in turn.

use super::divide::Divider;
use super::{Spot, ZoneSkew};
use crate::units::Sectors;

/// The direction of the strokes of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Strokes {
    /// All from the outer to the inner edge.
    Inward,
    /// All from the inner to the outer edge.
    Outward,
    /// Inward and outward in turn.
    Serpentine,
}

/// A recording zone laid out in strokes.
#[derive(Clone, Debug)]
pub(super) struct Horizontal {
    track: Divider,
    tracks: Divider,
    surfaces: u8,
    strokes: Strokes,
    /// Whether the surfaces are taken from the last to the first.
    surfaces_fall: bool,
    skew: ZoneSkew,
}

impl Horizontal {
    /// Creates a zone of `tracks` tracks on each surface, each of `track_sectors` sectors.
    pub(super) fn new(
        track_sectors: u32,
        tracks: u32,
        surfaces: u8,
        strokes: Strokes,
        surfaces_fall: bool,
        skew: ZoneSkew,
    ) -> Horizontal {
        let (track, tracks) = (Divider::new(track_sectors as u64), Divider::new(tracks as u64));
        Horizontal { track, tracks, surfaces, strokes, surfaces_fall, skew }
    }

    /// Returns the spot of the sector at `offset` from the zone's first sector.
    #[inline]
    pub(super) fn spot(&self, offset: u64) -> Spot {
        let (track, sector) = self.track.divide(offset);
        let (stroke, step) = self.tracks.divide(track);
        let stroke = stroke as u8;
        self.spot_on(self.turned(stroke, step as u32), self.surface_of(stroke), stroke, track, sector as u32)
    }

    /// Returns the number of tracks from the one that begins at `offset` to the end of its stroke, and the sectors of
    /// each. Returns `None` if no track begins at `offset`.
    pub(super) fn stroke_from(&self, offset: u64) -> Option<(u64, Sectors)> {
        let (track, sector) = self.track.divide(offset);
        let left = self.tracks.divisor() - self.tracks.remainder(track);
        (sector == 0).then_some((left, Sectors(self.track.divisor())))
    }

    /// Returns the offset and the spot of a track's first sector.
    #[inline]
    pub(super) fn track(&self, radial_offset: u32, surface: u8) -> (u64, Spot) {
        // `surface_of` and `turned` are their own inverses, so `surface_of` also gives the stroke of a surface.
        let stroke = self.surface_of(surface);
        let track = stroke as u64 * self.tracks.divisor() + self.turned(stroke, radial_offset) as u64;
        (track * self.track.divisor(), self.spot_on(radial_offset, surface, stroke, track, 0))
    }

    #[inline]
    fn surface_of(&self, stroke: u8) -> u8 {
        if self.surfaces_fall { self.surfaces - 1 - stroke } else { stroke }
    }

    /// Converts a step within a stroke to a radial offset, or back.
    #[inline]
    fn turned(&self, stroke: u8, step: u32) -> u32 {
        let outward = match self.strokes {
            Strokes::Inward => false,
            Strokes::Outward => true,
            Strokes::Serpentine => stroke % 2 == 1,
        };
        if outward { self.tracks.divisor() as u32 - 1 - step } else { step }
    }

    #[inline]
    fn spot_on(&self, radial_offset: u32, surface: u8, stroke: u8, track: u64, sector: u32) -> Spot {
        let skew_ns = self.skew.base_ns + track * self.skew.track_ns + stroke as u64 * self.skew.head_ns;
        Spot { radial_offset, surface, sector, length: self.track, skew_ns }
    }

    /// Returns the skew of the first track of the next zone, in nanoseconds.
    pub(super) fn next_base_ns(&self) -> u64 {
        let tracks = self.tracks.divisor() * self.surfaces as u64;
        self.skew.base_ns + tracks * self.skew.track_ns + self.surfaces as u64 * self.skew.head_ns
    }
}
