//! Geometry: surfaces, recording zones, tracks, and the order in which PBAs run over the tracks.
//!
//! Each layout is a file of this folder; the enum `Layout` lists them. Angles are times: sector s of a track of n
//! begins to pass the head ⌊s·T/n⌋ + skew (mod T) nanoseconds after the index mark, where T is the time of a rotation.
//! So the transfer time of a run is a difference of floors, and rounding errors do not add up.
//!
//! Invariants:
//! 1. [`Geometry::locate`] and [`Geometry::pba`] are exact inverses (property-tested).
//! 2. Both take O(log zones) steps; O(log slipped tracks) more where tracks are slipped, and O(log gaps) more where a
//!    geometry is measured.
//! 3. Zones follow each other in PBA order as they do from the outer to the inner diameter.

mod bottom_then_top;
mod build;
mod config;
mod cylinder;
mod divide;
mod finder;
mod gaps;
mod horizontal;
mod measured;
mod slips;
#[cfg(test)]
mod tests;
mod zone_config;

pub use config::{GeometryConfig, HorizontalConfig, InterlacedConfig, LayoutName, SlipConfig, SlipsConfig, TopOrder};
pub(crate) use divide::Divider;
pub use measured::{MeasuredConfig, MeasuredZone, SpareScheme, SurfaceOrder};
pub use zone_config::ZoneConfig;

use crate::units::{Extent, Pba, Sectors, SimDuration};
use finder::Finder;
use gaps::Gaps;
use slips::Slips;

/// The place of a sector on the platters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Radial position of the track, counted from 0 at the outer diameter.
    pub radial_track: u32,
    /// Surface, counted from 0.
    pub surface: u8,
    /// Sector within the track, counted from 0 among the sectors with a PBA.
    pub sector: u32,
    /// Number of sectors of the track that have a PBA.
    pub track_sectors: u32,
    /// Time after the index mark at which the sector's first bit passes the head, skew included: 0 ≤ angle < rotation
    /// time, in nanoseconds.
    pub angle_ns: u32,
    /// PBA of the first sector of the track.
    pub track_start: Pba,
}

impl Place {
    /// Returns the PBA of the sector.
    pub fn pba(&self) -> Pba {
        self.track_start + Sectors(self.sector as u64)
    }

    /// Returns the extent of all sectors on the track of the sector.
    pub fn track(&self) -> Extent {
        Extent::new(self.track_start, Sectors(self.track_sectors as u64))
    }
}

/// A part of an extent that lies on one track and passes the head without a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackPiece {
    /// Place of the first sector of the piece.
    pub place: Place,
    /// Number of sectors of the piece, which lie on the track without a gap between them.
    pub sectors: u32,
    /// Time in which the sectors of the piece pass the head, in nanoseconds.
    pub transfer_ns: u32,
}

impl TrackPiece {
    /// Returns the sectors of the piece as an extent.
    pub fn extent(&self) -> Extent {
        Extent::new(self.place.pba(), Sectors(self.sectors as u64))
    }

    /// Returns the angle at which the piece has passed, in nanoseconds, on a disk that rotates in `rotation_ns`.
    #[inline]
    pub(crate) fn end_angle_ns(&self, rotation_ns: u32) -> u32 {
        let end_ns = self.place.angle_ns as u64 + self.transfer_ns as u64;
        (if end_ns >= rotation_ns as u64 { end_ns - rotation_ns as u64 } else { end_ns }) as u32
    }

    /// Returns whether the piece has all sectors of its track.
    pub fn is_whole_track(&self) -> bool {
        self.sectors == self.place.track_sectors
    }
}

/// A radial direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RadialDirection {
    /// Towards the inner diameter: rising track numbers.
    Inward,
    /// Towards the outer diameter: falling track numbers.
    Outward,
}

/// A recording zone of a built geometry, over all surfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordingZone {
    /// PBAs of the zone, on all surfaces.
    pub extent: Extent,
    /// Radial position of the outermost track of the zone, counted from 0 at the outer diameter of the disk.
    pub radial_start: u32,
    /// Number of tracks of the zone on each surface.
    pub tracks: u32,
    /// Number of sectors for which a track has room, defects and spares included; on an interlaced disk, of a bottom
    /// track.
    pub track_sectors: u32,
    /// Direction in which shingled tracks overlap: a write on a track destroys the next one in this direction. Only
    /// shingled recording uses this value. It is `Inward` in layouts other than `horizontal`.
    pub shingling: RadialDirection,
    /// Whether the zone belongs to the conventional middle part of a horizontal layout, which is not shingled.
    pub conventional: bool,
}

/// Skews of a zone, in nanoseconds: the skew of its first track, and the skew that each next track and head adds.
#[derive(Clone, Copy, Debug)]
struct ZoneSkew {
    base_ns: u64,
    track_ns: u64,
    head_ns: u64,
}

/// Position of a sector within a run of tracks, as a layout computes it.
struct Spot {
    radial_offset: u32,
    surface: u8,
    sector: u32,
    /// Sectors of the track, prepared for division.
    length: Divider,
    /// Skew of the track, not yet reduced modulo a rotation.
    skew_ns: u64,
}

/// The layouts: orders of PBAs over tracks.
#[derive(Clone, Debug)]
enum Layout {
    Cylinder(cylinder::Cylinder),
    Horizontal(horizontal::Horizontal),
    BottomThenTop(bottom_then_top::BottomThenTop),
    Measured(measured::Measured),
}

impl Layout {
    // Always inlined: a caller works on the fields of a spot at once, and returning it through memory costs more than
    // computing it.
    #[inline(always)]
    fn spot(&self, offset: u64) -> Spot {
        match self {
            Layout::Cylinder(zone) => zone.spot(offset),
            Layout::Horizontal(zone) => zone.spot(offset),
            Layout::BottomThenTop(zone) => zone.spot(offset),
            Layout::Measured(zone) => zone.spot(offset),
        }
    }

    #[inline]
    fn track(&self, radial_offset: u32, surface: u8) -> (u64, Spot) {
        match self {
            Layout::Cylinder(zone) => zone.track(radial_offset, surface),
            Layout::Horizontal(zone) => zone.track(radial_offset, surface),
            Layout::BottomThenTop(zone) => zone.track(radial_offset, surface),
            Layout::Measured(zone) => zone.track(radial_offset, surface),
        }
    }
}

/// A run of tracks with one closed form: a recording zone, or the last, smaller group of an interlaced zone.
#[derive(Clone, Debug)]
struct Run {
    start: u64,
    radial_start: u32,
    layout: Layout,
}

/// The geometry of a disk: converts between PBAs and places on the platters.
#[derive(Clone, Debug)]
pub struct Geometry {
    runs: Vec<Run>,
    by_address: Finder,
    by_radius: Finder,
    zones: Vec<RecordingZone>,
    zones_by_radius: Finder,
    slips: Option<Slips>,
    gaps: Option<Gaps>,
    /// Whether there are slips or gaps.
    irregular: bool,
    sectors: u64,
    radial_tracks: u32,
    surfaces: u8,
    interlaced: bool,
    rotation: Divider,
}

impl Geometry {
    /// Builds the geometry that `config` describes.
    ///
    /// # Errors
    ///
    /// Returns the reason, as text, if a value of `config` is impossible or two keys exclude each other.
    pub fn new(config: &GeometryConfig) -> Result<Geometry, String> {
        build::build(config)
    }

    /// Returns the number of physical sectors of the disk: of its PBAs, which run from 0. Slipped, spare and reserved
    /// sectors have no PBA.
    pub fn sectors(&self) -> Sectors {
        Sectors(self.sectors)
    }

    /// Returns the place of `pba` on the platters. In a measured geometry, a remapped sector has the place of the
    /// sector used instead, and counts as a track of its own with one sector.
    ///
    /// # Panics
    ///
    /// Panics if `pba` is not on the disk.
    #[inline]
    pub fn locate(&self, pba: Pba) -> Place {
        self.locate_with_length(pba).0
    }

    // Always inlined, so that a caller that uses only the track does not compute the angle.
    #[inline(always)]
    fn locate_with_length(&self, pba: Pba) -> (Place, Divider) {
        assert!(pba.0 < self.sectors, "{pba} is not on a disk of {} sectors", self.sectors);
        if self.irregular {
            return self.locate_irregular(pba.0);
        }
        let (run, spot) = self.spot(pba.0);
        let track_start = pba.0 - spot.sector as u64;
        (self.place(run, &spot, track_start), spot.length)
    }

    #[inline(always)]
    fn spot(&self, address: u64) -> (&Run, Spot) {
        let run = &self.runs[self.by_address.find(address)];
        (run, run.layout.spot(address - run.start))
    }

    #[inline(always)]
    fn place(&self, run: &Run, spot: &Spot, track_start: u64) -> Place {
        let passed_ns = spot.length.quotient(spot.sector as u64 * self.rotation.divisor());
        let angle_ns = passed_ns + spot.skew_ns;
        Place {
            radial_track: run.radial_start + spot.radial_offset,
            surface: spot.surface,
            sector: spot.sector,
            track_sectors: spot.length.divisor() as u32,
            angle_ns: self.rotation.remainder(angle_ns) as u32,
            track_start: Pba(track_start),
        }
    }

    #[inline(never)]
    fn locate_irregular(&self, pba: u64) -> (Place, Divider) {
        match &self.gaps {
            Some(gaps) => {
                let (place, length, _, _) = self.locate_among_gaps(gaps, pba);
                (place, length)
            }
            None => self.locate_among_slips(pba),
        }
    }

    /// Returns the place of a PBA among gaps, its track's length with spares and defects, its sector counted among all
    /// of these, and the number of sectors from it on without a gap. The place counts only the user's sectors; a
    /// remapped sector counts as a track of its own.
    fn locate_among_gaps(&self, gaps: &Gaps, pba: u64) -> (Place, Divider, u32, u64) {
        let found = gaps.find(pba);
        let (run, spot) = self.spot(found.address);
        let track_address = found.address - spot.sector as u64;
        let (first, end) = if found.is_remapped {
            (pba, pba + 1)
        } else {
            (gaps.rank(track_address), gaps.rank(track_address + spot.length.divisor()))
        };
        let mut place = self.place(run, &spot, first);
        place.sector = (pba - first) as u32;
        place.track_sectors = (end - first) as u32;
        (place, spot.length, spot.sector, found.together)
    }

    fn locate_among_slips(&self, pba: u64) -> (Place, Divider) {
        let slips = self.slips.as_ref().expect("called only where tracks are slipped");
        let index = slips.index_at_pba(pba);
        let address = pba + slips.missing_before(index);
        let (run, spot) = self.spot(address);
        self.place_among_slips(slips, index, run, spot, address)
    }

    fn place_among_slips(
        &self,
        slips: &Slips,
        index: usize,
        run: &Run,
        mut spot: Spot,
        address: u64,
    ) -> (Place, Divider) {
        let ideal_start = address - spot.sector as u64;
        let missing = slips.missing_on(index, ideal_start);
        if missing > 0 {
            spot.length = Divider::new(spot.length.divisor() - missing as u64);
        }
        (self.place(run, &spot, ideal_start - slips.missing_before(index)), spot.length)
    }

    /// Returns the place of the first sector of the track at `radial_track` on `surface`, both counted from 0. In a
    /// measured geometry the track may have 0 sectors with a PBA.
    ///
    /// # Panics
    ///
    /// Panics if the track is not on the disk.
    #[inline]
    pub fn track_place(&self, radial_track: u32, surface: u8) -> Place {
        assert!(
            radial_track < self.radial_tracks && surface < self.surfaces,
            "track {radial_track} of surface {surface} is not on a disk of {} tracks and {} surfaces",
            self.radial_tracks,
            self.surfaces
        );
        let run = &self.runs[self.by_radius.find(radial_track as u64)];
        let (offset, spot) = run.layout.track(radial_track - run.radial_start, surface);
        let address = run.start + offset;
        if let Some(gaps) = &self.gaps {
            let (first, end) = (gaps.rank(address), gaps.rank(address + spot.length.divisor()));
            let mut place = self.place(run, &spot, first);
            place.track_sectors = (end - first) as u32;
            return place;
        }
        match &self.slips {
            None => self.place(run, &spot, address),
            Some(slips) => self.place_among_slips(slips, slips.index_at_track(address), run, spot, address).0,
        }
    }

    /// Returns the places of the first sectors of a bottom track of an interlaced disk and of the top tracks beside it.
    /// The array holds the outer top, then the inner top; `None` where there is none. The track must be a bottom track;
    /// only debug builds check this.
    ///
    /// # Panics
    ///
    /// Panics if the track is not on the disk.
    #[inline]
    pub fn bottom_and_tops(&self, radial_track: u32, surface: u8) -> (Place, [Option<Place>; 2]) {
        debug_assert!(self.is_bottom(radial_track), "track {radial_track} is no bottom");
        if !self.irregular && radial_track < self.radial_tracks && surface < self.surfaces {
            let run = &self.runs[self.by_radius.find(radial_track as u64)];
            if let Layout::BottomThenTop(zone) = &run.layout {
                let place = |(offset, spot): (u64, Spot)| self.place(run, &spot, run.start + offset);
                let (own, inner, outer) = zone.bottom_and_tops(radial_track - run.radial_start, surface);
                // The top outside the first bottom of a group belongs to the group before.
                let outer = outer.map(place).or_else(|| Some(self.track_place(radial_track.checked_sub(1)?, surface)));
                return (place(own), [outer, Some(place(inner))]);
            }
        }
        let top =
            |radial_track: u32| (radial_track < self.radial_tracks).then(|| self.track_place(radial_track, surface));
        (self.track_place(radial_track, surface), [radial_track.checked_sub(1).and_then(top), top(radial_track + 1)])
    }

    /// Returns the PBA of a sector, given its track, surface and number within the track, each counted from 0. This is
    /// the inverse of [`Geometry::locate`], except for remapped sectors. `sector` must lie on the track; only debug
    /// builds check this.
    ///
    /// # Panics
    ///
    /// Panics if the track is not on the disk.
    #[inline]
    pub fn pba(&self, radial_track: u32, surface: u8, sector: u32) -> Pba {
        let track = self.track_place(radial_track, surface);
        debug_assert!(sector < track.track_sectors, "sector {sector} of a track of {}", track.track_sectors);
        track.track_start + Sectors(sector as u64)
    }

    /// Returns the extent of all sectors on the track of `pba`.
    ///
    /// # Panics
    ///
    /// Panics if `pba` is not on the disk.
    pub fn track_of(&self, pba: Pba) -> Extent {
        self.locate(pba).track()
    }

    /// Returns the number of tracks from the one that begins at `pba` to the last of its stroke, and the number of
    /// sectors of each. A stroke, in the `horizontal` layout, is the tracks of one recording zone on one surface; each
    /// lies beside the one before it in PBA order.
    ///
    /// Returns `None` in other layouts, on a disk with slipped tracks, or if no track begins at `pba`.
    pub fn stroke_from(&self, pba: Pba) -> Option<(u64, Sectors)> {
        if self.irregular || pba.0 >= self.sectors {
            return None;
        }
        let run = &self.runs[self.by_address.find(pba.0)];
        match &run.layout {
            Layout::Horizontal(zone) => zone.stroke_from(pba.0 - run.start),
            Layout::Cylinder(_) | Layout::BottomThenTop(_) | Layout::Measured(_) => None,
        }
    }

    /// Returns the number of tracks from the one that begins at `pba` to the last of its row, and the number of sectors
    /// of each. The tracks of a row follow each other in PBA order and have the same length. The row ends with the
    /// recording zone (`cylinder`), with the zone's tracks on the surface (`horizontal`), or with the bottom tracks or
    /// the top tracks of a group on the surface (`bottom-then-top`).
    ///
    /// Returns `None` in a measured geometry, on a disk with slipped tracks, or if no track begins at `pba`.
    pub fn row_from(&self, pba: Pba) -> Option<(u64, Sectors)> {
        if self.irregular || pba.0 >= self.sectors {
            return None;
        }
        let index = self.by_address.find(pba.0);
        let (run, end) = (&self.runs[index], self.runs.get(index + 1).map_or(self.sectors, |next| next.start));
        match &run.layout {
            Layout::Horizontal(zone) => zone.stroke_from(pba.0 - run.start),
            Layout::Cylinder(zone) => zone.row_from(pba.0 - run.start, end - run.start),
            Layout::BottomThenTop(zone) => zone.row_from(pba.0 - run.start),
            Layout::Measured(_) => None,
        }
    }

    /// Returns the extent of all sectors on the track at `radial_track` on `surface`, both counted from 0.
    ///
    /// # Panics
    ///
    /// Panics if the track is not on the disk.
    pub fn track(&self, radial_track: u32, surface: u8) -> Extent {
        self.track_place(radial_track, surface).track()
    }

    /// Returns the first piece of the `sectors` sectors from `pba` on: those that lie on the track of `pba`, up to the
    /// first gap (spares, defects) in a measured geometry. The piece has the time in which it passes the head.
    ///
    /// # Panics
    ///
    /// Panics if `pba` is not on the disk.
    #[inline]
    pub fn piece(&self, pba: Pba, sectors: Sectors) -> TrackPiece {
        if self.irregular {
            return self.piece_irregular(pba, sectors);
        }
        let (place, length) = self.locate_with_length(pba);
        let count = sectors.0.min((place.track_sectors - place.sector) as u64);
        let passed_ns = |sector: u64| length.quotient(sector * self.rotation.divisor());
        let (first, end) = (place.sector as u64, place.sector as u64 + count);
        TrackPiece { place, sectors: count as u32, transfer_ns: (passed_ns(end) - passed_ns(first)) as u32 }
    }

    #[inline(never)]
    fn piece_irregular(&self, pba: Pba, sectors: Sectors) -> TrackPiece {
        let (place, length, sector, together) = match &self.gaps {
            Some(gaps) => self.locate_among_gaps(gaps, pba.0),
            None => {
                let (place, length) = self.locate_among_slips(pba.0);
                (place, length, place.sector, u64::MAX)
            }
        };
        let count = sectors.0.min((place.track_sectors - place.sector) as u64).min(together);
        let passed_ns = |sector: u64| length.quotient(sector * self.rotation.divisor());
        let (first, end) = (sector as u64, sector as u64 + count);
        TrackPiece { place, sectors: count as u32, transfer_ns: (passed_ns(end) - passed_ns(first)) as u32 }
    }

    /// Returns whether `extent`, whose first piece is `first`, is made of whole tracks.
    #[inline]
    pub(crate) fn is_whole_tracks(&self, extent: Extent, first: &TrackPiece) -> bool {
        if first.place.sector != 0 || !first.is_whole_track() {
            return false;
        }
        first.sectors as u64 == extent.sectors.0 || {
            let last = self.locate(extent.end() - Sectors(1));
            last.sector + 1 == last.track_sectors
        }
    }

    /// Returns an iterator over the pieces of `extent` in PBA order: one for each track, or for each part without a gap
    /// in a measured geometry. The iterator panics when it reaches a sector that is not on the disk.
    pub fn tracks(&self, extent: Extent) -> Tracks<'_> {
        Tracks { geometry: self, rest: extent }
    }

    /// Returns the number of tracks of one surface.
    pub fn radial_tracks(&self) -> u32 {
        self.radial_tracks
    }

    /// Returns the number of surfaces.
    pub fn surfaces(&self) -> u8 {
        self.surfaces
    }

    /// Returns the time of one rotation in nanoseconds.
    #[inline]
    pub fn rotation_ns(&self) -> u32 {
        self.rotation.divisor() as u32
    }

    /// Returns the time of one rotation.
    pub fn rotation(&self) -> SimDuration {
        SimDuration(self.rotation.divisor())
    }

    /// Returns the time of one rotation in nanoseconds, prepared for division.
    #[inline]
    pub(crate) fn rotation_divider(&self) -> Divider {
        self.rotation
    }

    /// Returns whether the disk is interlaced: then every track is either a top track, which overlaps both neighbours,
    /// or a bottom track.
    pub fn is_interlaced(&self) -> bool {
        self.interlaced
    }

    /// Returns whether the track at `radial_track`, counted from 0 at the outer diameter, is a top track of an
    /// interlaced disk, which overlaps its neighbours: every track of odd number. Always false on other disks.
    #[inline]
    pub fn is_top(&self, radial_track: u32) -> bool {
        self.interlaced && !radial_track.is_multiple_of(2)
    }

    /// Returns whether the track at `radial_track`, counted from 0 at the outer diameter, is a bottom track of an
    /// interlaced disk, which its neighbours overlap: every track of even number. Always false on other disks.
    #[inline]
    pub fn is_bottom(&self, radial_track: u32) -> bool {
        self.interlaced && radial_track.is_multiple_of(2)
    }

    /// Returns the recording zones, from the outer to the inner diameter.
    pub fn zones(&self) -> &[RecordingZone] {
        &self.zones
    }

    /// Returns the recording zone of the track at `radial_track`, counted from 0 at the outer diameter. The track must
    /// be on the disk.
    #[inline]
    pub fn zone_of(&self, radial_track: u32) -> &RecordingZone {
        &self.zones[self.zones_by_radius.find(radial_track as u64)]
    }

    /// Returns the direction in which shingled tracks overlap at `radial_track`, which must be on the disk: a write on
    /// a track destroys the next one in this direction.
    #[inline]
    pub fn shingling_direction(&self, radial_track: u32) -> RadialDirection {
        self.zone_of(radial_track).shingling
    }

    /// Returns whether the track at `radial_track`, which must be on the disk, lies in the conventional part of a
    /// `horizontal` layout, which is not shingled. Always false in other layouts, even if the recording is
    /// conventional.
    #[inline]
    pub fn is_conventional(&self, radial_track: u32) -> bool {
        self.zone_of(radial_track).conventional
    }
}

/// Iterator over the pieces of an extent in PBA order, returned by [`Geometry::tracks`].
#[derive(Clone, Debug)]
pub struct Tracks<'a> {
    geometry: &'a Geometry,
    rest: Extent,
}

impl Tracks<'_> {
    /// Skips the next piece, which the caller has already.
    #[inline]
    pub(crate) fn pass_over(&mut self, piece: &TrackPiece) {
        let count = Sectors(piece.sectors as u64);
        self.rest = Extent::new(self.rest.start + count, self.rest.sectors - count);
    }
}

impl Iterator for Tracks<'_> {
    type Item = TrackPiece;

    #[inline]
    fn next(&mut self) -> Option<TrackPiece> {
        if self.rest.is_empty() {
            return None;
        }
        let piece = self.geometry.piece(self.rest.start, self.rest.sectors);
        self.pass_over(&piece);
        Some(piece)
    }
}
