//! The `bottom-then-top` layout of interlaced disks (Hajkazemi 2019 §2.1): groups of N bottom and N top tracks, bottoms
//! at even and tops at odd radial positions. PBAs run over the bottoms of a group, then over its tops: back
//! (`serpentine`) or from the first again (`zig-zag`). With several surfaces a group is laid out on each surface in
//! turn.
//!
//! Invariants:
//! 1. A zone begins at a bottom track and holds as many tops as bottoms, so an odd radial position means a top track.

use super::config::TopOrder;
use super::divide::Divider;
use super::{Spot, ZoneSkew};
use crate::units::Sectors;

/// The first sector of a track: its offset from the zone's first sector, and its spot.
type First = (u64, Spot);

/// A zone of whole groups.
#[derive(Clone, Debug)]
pub(super) struct BottomThenTop {
    bottom: Divider,
    top: Divider,
    /// Bottom tracks of a group on one surface; a group has as many top tracks.
    half_tracks: u32,
    /// Bottom and top tracks of a group on one surface, prepared for division.
    group_tracks: Divider,
    /// Sectors of a group's bottoms on one surface.
    bottoms_sectors: u64,
    /// Sectors of a group on one surface.
    group_sectors: Divider,
    surfaces: Divider,
    order: TopOrder,
    skew: ZoneSkew,
}

impl BottomThenTop {
    /// Creates a zone of groups of `half_tracks` bottom tracks and as many top tracks.
    pub(super) fn new(
        bottom_sectors: u32,
        top_sectors: u32,
        half_tracks: u32,
        surfaces: u8,
        order: TopOrder,
        skew: ZoneSkew,
    ) -> BottomThenTop {
        let bottoms_sectors = half_tracks as u64 * bottom_sectors as u64;
        BottomThenTop {
            bottom: Divider::new(bottom_sectors as u64),
            top: Divider::new(top_sectors as u64),
            half_tracks,
            group_tracks: Divider::new(2 * half_tracks as u64),
            bottoms_sectors,
            group_sectors: Divider::new(bottoms_sectors + half_tracks as u64 * top_sectors as u64),
            surfaces: Divider::new(surfaces as u64),
            order,
            skew,
        }
    }

    /// Returns the spot of the sector at `offset` from the zone's first sector.
    #[inline(always)]
    pub(super) fn spot(&self, offset: u64) -> Spot {
        let (visit, rest) = self.group_sectors.divide(offset);
        let (group, surface) = self.surfaces.divide(visit);
        if rest < self.bottoms_sectors {
            let (index, sector) = self.bottom.divide(rest);
            self.spot_on(group, surface, 2 * index as u32, index, sector as u32, self.bottom)
        } else {
            let (index, sector) = self.top.divide(rest - self.bottoms_sectors);
            let position = 2 * self.turned(index as u32) + 1;
            self.spot_on(group, surface, position, self.half_tracks as u64 + index, sector as u32, self.top)
        }
    }

    /// Returns the number of tracks from the one that begins at `offset` to the last bottom, or top, of its group on
    /// its surface, and the sectors of each. Returns `None` if no track begins at `offset`.
    pub(super) fn row_from(&self, offset: u64) -> Option<(u64, Sectors)> {
        let rest = self.group_sectors.remainder(offset);
        let (length, offset) = match rest.checked_sub(self.bottoms_sectors) {
            None => (self.bottom, rest),
            Some(offset) => (self.top, offset),
        };
        let (index, sector) = length.divide(offset);
        (sector == 0).then(|| (self.half_tracks as u64 - index, Sectors(length.divisor())))
    }

    /// Returns the offset and the spot of a track's first sector.
    #[inline]
    pub(super) fn track(&self, radial_offset: u32, surface: u8) -> First {
        let (group, position) = self.group_tracks.divide(radial_offset as u64);
        self.track_in(group, position as u32, surface)
    }

    /// Returns the offsets and spots of the first sectors of a bottom track, of the top inside it, and of the top
    /// outside it if that is in the same group.
    #[inline]
    pub(super) fn bottom_and_tops(&self, radial_offset: u32, surface: u8) -> (First, First, Option<First>) {
        let (group, position) = self.group_tracks.divide(radial_offset as u64);
        let track = |position: u32| self.track_in(group, position, surface);
        let position = position as u32;
        (track(position), track(position + 1), position.checked_sub(1).map(track))
    }

    #[inline(always)]
    fn track_in(&self, group: u64, position: u32, surface: u8) -> First {
        let surface = surface as u64;
        let start = (group * self.surfaces.divisor() + surface) * self.group_sectors.divisor();
        if position.is_multiple_of(2) {
            let index = (position / 2) as u64;
            let spot = self.spot_on(group, surface, position, index, 0, self.bottom);
            (start + index * self.bottom.divisor(), spot)
        } else {
            let index = self.turned(position / 2) as u64;
            let spot = self.spot_on(group, surface, position, self.half_tracks as u64 + index, 0, self.top);
            (start + self.bottoms_sectors + index * self.top.divisor(), spot)
        }
    }

    /// Converts the index of a top track in PBA order to its index by radius, or back.
    #[inline]
    fn turned(&self, index: u32) -> u32 {
        match self.order {
            TopOrder::Serpentine => self.half_tracks - 1 - index,
            TopOrder::ZigZag => index,
        }
    }

    #[inline]
    fn spot_on(&self, group: u64, surface: u64, position: u32, index: u64, sector: u32, length: Divider) -> Spot {
        let visit = group * self.surfaces.divisor() + surface;
        let track = visit * self.group_tracks.divisor() + index;
        Spot {
            radial_offset: group as u32 * 2 * self.half_tracks + position,
            surface: surface as u8,
            sector,
            length,
            skew_ns: self.skew.base_ns + track * self.skew.track_ns + visit * self.skew.head_ns,
        }
    }

    /// Returns the skew of the first track of the next zone, after this zone of `tracks` tracks on each surface, in
    /// nanoseconds.
    pub(super) fn next_base_ns(&self, tracks: u32) -> u64 {
        self.spot_on(self.group_tracks.quotient(tracks as u64), 0, 0, 0, 0, self.bottom).skew_ns
    }
}
