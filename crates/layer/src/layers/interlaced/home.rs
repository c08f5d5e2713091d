//! Homes: the place of each LBA of an interlaced disk as long as no layer has moved it. LBAs run over all tracks in PBA
//! order and skip tracks that are set aside. Those are the bottom tracks of backup regions and caches, with the tops
//! beside them, which hold nothing; and the tops of write buffers, whose neighbouring bottoms keep their data.
//!
//! Invariants:
//! 1. [`Home::pba`] and [`Home::lba`] are exact inverses on the tracks that are not set aside.
//! 2. Only whole tracks are set aside.

use std::collections::BTreeMap;

use imbrex_disk::{Extent, Lba, Pba, Place, Sectors, SharedDisk};

use super::finder::Finder;
use super::run::{Span, Track, TrackRun, is_top};
use crate::parameters::ConfigError;

/// A run of neighbouring bottom tracks of one surface that is set aside for a cache or a backup region. The top tracks
/// between and beside these bottoms are set aside too, and hold no data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Area {
    /// Physical sectors of the bottom tracks of the area, which follow each other in PBA order. The top tracks beside
    /// them are not included.
    pub extent: Extent,
    /// Surface of the tracks of the area, counted from 0.
    pub surface: u8,
    /// Radial position of the first (outermost) bottom track of the area, counted in tracks from 0 at the outer
    /// diameter. It is even, as for all bottoms.
    pub radial_start: u32,
    /// Radial position of the last (innermost) bottom track of the area, counted in tracks from 0 at the outer
    /// diameter. It is included in the area, and equals the position of the first if the area has one bottom track.
    pub radial_last: u32,
}

impl Area {
    /// Returns the radial position of the area's middle, about half-way between the first and the last bottom track.
    pub fn middle(&self) -> u32 {
        self.radial_start / 2 + self.radial_last / 2
    }
}

/// Progress of a search for an area: at a smaller distance from `middle` than `distance`, no area of this size is free,
/// and none will become free.
#[derive(Clone, Copy, Debug)]
struct Searched {
    middle: u32,
    surface: u8,
    sectors: u64,
    distance: u32,
}

/// Chooses the tracks of an interlaced disk that are set aside for caches, backup regions and write buffers. The other
/// tracks become the homes of the logical sectors ([`Planner::finish`]).
pub struct Planner<'a> {
    disk: &'a SharedDisk,
    areas: Vec<Area>,
    /// The last bottom of each area, by surface and first bottom; areas share no track.
    taken: BTreeMap<(u8, u32), u32>,
    /// The last search, because areas of one size are mostly requested one after the other.
    searched: Option<Searched>,
    /// Tops set aside without their neighbours.
    tops: Vec<Extent>,
}

impl<'a> Planner<'a> {
    /// Returns a planner that has set aside no tracks of `disk`.
    ///
    /// # Errors
    ///
    /// The disk has no interlaced tracks.
    pub fn new(disk: &'a SharedDisk) -> Result<Planner<'a>, ConfigError> {
        if !disk.geometry.is_interlaced() {
            return Err(ConfigError("the disk has no interlaced tracks: give it the layout bottom-then-top".into()));
        }
        Ok(Planner { disk, areas: Vec::new(), taken: BTreeMap::new(), searched: None, tops: Vec::new() })
    }

    /// Returns the number of sectors of the longest track of the disk, set aside or not, which is a bottom track.
    /// Sectors that a track lost by slipping are counted, so the result may exceed the length of every track.
    pub fn track_sectors_max(&self) -> u64 {
        self.disk.geometry.zones().iter().map(|zone| zone.track_sectors as u64).max().expect("a disk has a zone")
    }

    /// Sets aside consecutive bottom tracks on `surface` that have at least `sectors` together, with the top tracks
    /// beside them. Of the possible areas, takes the one whose first bottom track is nearest to `radial_track`; of two
    /// equally near, the inner one. Its bottom tracks follow each other in PBA order, and it shares no track with
    /// another area. Returns `None`, and sets aside nothing, if there is no such area.
    pub fn set_aside(&mut self, radial_track: u32, surface: u8, sectors: u64) -> Option<Area> {
        let tracks = self.disk.geometry.radial_tracks();
        let middle = radial_track.min(tracks - 1) / 2;
        let bottoms = tracks.div_ceil(2);
        let is_same = |last: &Searched| (last.middle, last.surface, last.sectors) == (middle, surface, sectors);
        let from = self.searched.filter(is_same).map_or(0, |last| last.distance);
        let found = (from..bottoms).find_map(|distance| {
            let inner = middle.checked_add(distance).filter(|&bottom| bottom < bottoms);
            let outer = middle.checked_sub(distance).filter(|_| distance > 0);
            let fitting = |bottom| Some((distance, self.fitting(2 * bottom, surface, sectors)?));
            [inner, outer].into_iter().flatten().find_map(fitting)
        });
        let distance = found.map_or(bottoms, |(distance, _)| distance);
        self.searched = Some(Searched { middle, surface, sectors, distance });
        let (_, area) = found?;
        self.areas.push(area);
        self.taken.insert((surface, area.radial_start), area.radial_last);
        Some(area)
    }

    /// Returns whether an area has a bottom within `margin` tracks of those from `radial_start` to `radial_last`.
    fn is_taken(&self, surface: u8, radial_start: u32, radial_last: u32, margin: u32) -> bool {
        // Areas share no track, so of the areas that begin early enough, the last one also ends last.
        let before = self.taken.range((surface, 0)..=(surface, radial_last + margin)).next_back();
        before.is_some_and(|(_, last)| radial_start <= last + margin)
    }

    /// Returns how many slots of `slot_sectors` sectors each fit into the bottom tracks that follow each other in PBA
    /// order around `radial_track` on surface 0: the bottom tracks of its group. Tracks that are set aside are counted
    /// too. A rest that is shorter than a slot is not counted. `radial_track` must lie on the disk, and `slot_sectors`
    /// must not be 0.
    pub fn slots_in_a_row(&self, radial_track: u32, slot_sectors: u64) -> u32 {
        let geometry = &self.disk.geometry;
        let follows = |bottom: u32| {
            let next = bottom + 2;
            next < geometry.radial_tracks() && geometry.track(bottom, 0).end() == geometry.track(next, 0).start
        };
        let bottom = radial_track / 2 * 2;
        let (mut first, mut last) = (bottom, bottom);
        while first >= 2 && follows(first - 2) {
            first -= 2;
        }
        while follows(last) {
            last += 2;
        }
        let sectors = geometry.track(last, 0).end() - geometry.track(first, 0).start;
        (sectors.0 / slot_sectors) as u32
    }

    /// Returns the area of at least `sectors` that begins at bottom `radial_start`, if its tracks follow each other and
    /// are free.
    fn fitting(&self, radial_start: u32, surface: u8, sectors: u64) -> Option<Area> {
        let geometry = &self.disk.geometry;
        // The next bottom is two tracks away: areas share no top.
        if self.is_taken(surface, radial_start, radial_start, 2) {
            return None;
        }
        let mut extent = geometry.track(radial_start, surface);
        let mut radial_last = radial_start;
        while extent.sectors.0 < sectors {
            radial_last += 2;
            if radial_last >= geometry.radial_tracks() {
                return None;
            }
            let next = geometry.track(radial_last, surface);
            if next.start != extent.end() {
                return None;
            }
            extent = Extent::new(extent.start, extent.sectors + next.sectors);
        }
        (!self.is_taken(surface, radial_start, radial_last, 2)).then_some(Area {
            extent,
            surface,
            radial_start,
            radial_last,
        })
    }

    /// Sets aside the single top track `top`; the bottom tracks beside it keep their data. Returns `false`, and does
    /// nothing, if the track lies beside a bottom track of an area. Must be called after all areas are set aside.
    pub fn set_aside_top(&mut self, top: Extent) -> bool {
        let place = self.disk.geometry.locate(top.start);
        let is_taken = self.is_taken(place.surface, place.radial_track, place.radial_track, 1);
        if !is_taken {
            self.tops.push(top);
        }
        !is_taken
    }

    /// Returns the disk whose tracks are set aside.
    pub fn disk(&self) -> &'a SharedDisk {
        self.disk
    }

    /// Returns the homes of the logical sectors: LBAs run over all tracks that are not set aside, in PBA order, from
    /// LBA 0.
    pub fn finish(self) -> Home {
        let geometry = &self.disk.geometry;
        let mut tracks: Vec<Extent> = Vec::new();
        for area in &self.areas {
            let from = area.radial_start.saturating_sub(1);
            let to = (area.radial_last + 1).min(geometry.radial_tracks() - 1);
            tracks.extend((from..=to).map(|radial_track| geometry.track(radial_track, area.surface)));
        }
        tracks.extend(self.tops);
        tracks.sort_unstable();
        tracks.dedup();
        let mut gaps: Vec<Extent> = Vec::new();
        for track in tracks {
            match gaps.last_mut() {
                Some(last) if last.end() == track.start => last.sectors += track.sectors,
                _ => gaps.push(track),
            }
        }
        Home::new(self.disk.clone(), gaps)
    }
}

/// Division by a fixed number, as a multiplication and a correction: faster than the hardware's division.
#[derive(Clone, Copy, Debug)]
struct Reciprocal {
    divisor: u64,
    reciprocal: u64,
}

impl Reciprocal {
    fn new(divisor: u64) -> Reciprocal {
        Reciprocal { divisor, reciprocal: u64::MAX / divisor }
    }

    /// Returns ⌊dividend / divisor⌋; the estimate is the quotient or one less.
    #[inline]
    fn quotient(self, dividend: u64) -> u64 {
        let estimate = ((dividend as u128 * self.reciprocal as u128) >> 64) as u64;
        estimate + u64::from(dividend - estimate * self.divisor >= self.divisor)
    }
}

/// The mapping between logical sectors and their homes: the physical sectors at which they lie as long as no layer
/// moves them. LBAs run over all tracks in PBA order, and skip tracks that are set aside.
#[derive(Clone, Debug)]
pub struct Home {
    disk: SharedDisk,
    /// Gaps (tracks set aside), by the LBA at which each is skipped.
    by_lba: Finder,
    by_pba: Finder,
    gap_ends: Vec<u64>,
    /// Total sectors of the first n gaps.
    jumped: Vec<u64>,
    capacity: u64,
    surfaces: u32,
    rotation: Reciprocal,
}

impl Home {
    fn new(disk: SharedDisk, gaps: Vec<Extent>) -> Home {
        let mut jumped = vec![0];
        let mut starts = Vec::new();
        for gap in &gaps {
            let before = jumped[jumped.len() - 1];
            starts.push(gap.start.0 - before);
            jumped.push(before + gap.sectors.0);
        }
        let sectors = disk.geometry.sectors().0;
        let capacity = sectors - jumped[jumped.len() - 1];
        let (surfaces, rotation_ns) = (disk.geometry.surfaces() as u32, disk.geometry.rotation_ns() as u64);
        Home {
            disk,
            by_lba: Finder::new(starts, capacity),
            by_pba: Finder::new(gaps.iter().map(|gap| gap.start.0).collect(), sectors),
            gap_ends: gaps.iter().map(|gap| gap.end().0).collect(),
            jumped,
            capacity,
            surfaces,
            rotation: Reciprocal::new(rotation_ns),
        }
    }

    /// Returns the disk on which the homes lie.
    pub fn disk(&self) -> &SharedDisk {
        &self.disk
    }

    /// Returns the number of logical sectors: the sectors of all tracks that are not set aside.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    /// Returns the home of a logical sector: the physical sector at which it lies if no layer has moved it. `lba` must
    /// lie below the capacity.
    #[inline]
    pub fn pba(&self, lba: Lba) -> Pba {
        Pba(lba.0 + self.jumped[self.by_lba.before(lba.0)])
    }

    /// Returns the logical sector whose home (place as long as no layer moves it) is the physical sector `pba`. Returns
    /// `None` if the track of `pba` is set aside for a cache, a backup region or a write buffer.
    #[inline]
    pub fn lba(&self, pba: Pba) -> Option<Lba> {
        let gaps = self.by_pba.before(pba.0);
        let is_set_aside = gaps > 0 && pba.0 < self.gap_ends[gaps - 1];
        (!is_set_aside).then(|| Lba(pba.0 - self.jumped[gaps]))
    }

    /// Returns the number of logical sectors whose homes lie in `extent`, which must begin and end at track boundaries.
    /// Tracks that are set aside for caches, backup regions or write buffers have none.
    pub fn lbas_in(&self, extent: Extent) -> u64 {
        self.lbas_before(extent.end()) - self.lbas_before(extent.start)
    }

    fn lbas_before(&self, pba: Pba) -> u64 {
        match self.by_pba.before(pba.0).checked_sub(1) {
            Some(gap) if pba.0 < self.gap_ends[gap] => self.by_pba.starts()[gap] - self.jumped[gap],
            gap => pba.0 - self.jumped[gap.map_or(0, |gap| gap + 1)],
        }
    }

    /// Returns the position of a physical sector: its track, its surface, its number on the track and its angle.
    ///
    /// # Panics
    ///
    /// If `pba` is not on the disk.
    #[inline]
    pub fn locate(&self, pba: Pba) -> Place {
        self.disk.geometry.locate(pba)
    }

    /// Returns the position of the first sector of a track, or `None` if `radial_track` lies past the innermost track.
    ///
    /// # Panics
    ///
    /// If the disk has no such `surface`, and `radial_track` is on the disk.
    #[inline]
    pub fn track(&self, radial_track: u32, surface: u8) -> Option<Place> {
        let geometry = &self.disk.geometry;
        (radial_track < geometry.radial_tracks()).then(|| geometry.track_place(radial_track, surface))
    }

    /// Returns whether the track at this radial position is a top track, so that a write to it destroys no data. Tracks
    /// with odd positions are tops.
    #[inline]
    pub fn is_top(radial_track: u32) -> bool {
        is_top(radial_track)
    }

    /// Returns the number of a track among all tracks, counted from 0: `radial_track` times the number of surfaces,
    /// plus `surface`.
    #[inline]
    pub fn track_index(&self, radial_track: u32, surface: u8) -> u32 {
        radial_track * self.surfaces + surface as u32
    }

    /// Returns the radial position and the surface of the track with the number `index`. Inverse of
    /// [`Home::track_index`].
    #[inline]
    pub fn track_at(&self, index: u32) -> (u32, u8) {
        (index / self.surfaces, (index % self.surfaces) as u8)
    }

    /// Returns the number of a bottom track among the bottom tracks, counted from 0: half of `radial_track`, which is
    /// even, times the number of surfaces, plus `surface`.
    #[inline]
    pub fn bottom_index(&self, radial_track: u32, surface: u8) -> u32 {
        (radial_track >> 1) * self.surfaces + surface as u32
    }

    /// Returns the radial position and the surface of the bottom track with the number `index`. Inverse of
    /// [`Home::bottom_index`].
    pub fn bottom_at(&self, index: u32) -> (u32, u8) {
        (2 * (index / self.surfaces), (index % self.surfaces) as u8)
    }

    /// Returns the number of bottom tracks of the disk, on all surfaces together. Bottoms that are set aside for caches
    /// or backup regions are counted too.
    pub fn bottoms(&self) -> u32 {
        self.disk.geometry.radial_tracks().div_ceil(2) * self.surfaces
    }

    /// Returns the number of tracks of the disk, bottoms and tops, on all surfaces together. Tracks that are set aside
    /// are counted too.
    pub fn tracks(&self) -> u64 {
        self.disk.geometry.radial_tracks() as u64 * self.surfaces as u64
    }

    /// Returns the run of logical sectors that have their homes on the whole track of `place`. `lba` is the logical
    /// sector whose home is the sector at `place`.
    #[inline]
    pub fn track_run(place: &Place, lba: Lba) -> TrackRun {
        TrackRun::on(&Track::of(place), 0, place.track_sectors, Lba(lba.0 - place.sector as u64))
    }

    /// Appends to `faced` the sectors of the neighbouring top tracks that a write of the runs `written` destroys; all
    /// runs must lie on bottom tracks. Goes through the runs in order, and for each through the outer, then the inner
    /// neighbour. Spans may overlap. Sectors around the start of a top track make two spans: one at its end and one at
    /// its start.
    #[inline]
    pub fn push_faced(&self, written: &[TrackRun], faced: &mut Vec<Span>) {
        let track_of = |run: &TrackRun| (run.radial_track, run.surface);
        for parts in written.chunk_by(|one, next| track_of(one) == track_of(next)) {
            let (radial_track, surface) = track_of(&parts[0]);
            let (own, tops) = self.disk.geometry.bottom_and_tops(radial_track, surface);
            for run in parts {
                debug_assert!(!run.harmless, "this write destroys nothing: {run:?}");
                tops.iter().flatten().for_each(|top| self.push_faced_on(&own, run, top, faced));
            }
        }
    }

    /// Appends the sectors of `top` that a write of `run` on the bottom `own` destroys. Positions are compared as
    /// fractions of a rotation with the common denominator of both tracks, so a boundary that two tracks share is
    /// exactly equal.
    #[inline]
    fn push_faced_on(&self, own: &Place, run: &TrackRun, top: &Place, faced: &mut Vec<Span>) {
        let (own_sectors, top_sectors) = (own.track_sectors as u64, top.track_sectors as u64);
        if run.sectors as u64 == own_sectors {
            faced.push(Span { track: Track::of(top), first: 0, end: top.track_sectors });
            return;
        }
        let rotation_ns = self.rotation.divisor;
        let ahead_ns = own.angle_ns as u64 + if own.angle_ns < top.angle_ns { rotation_ns } else { 0 };
        let skew_ns = ahead_ns - top.angle_ns as u64;
        let (first, end) = if own_sectors == top_sectors {
            // The unit is a nanosecond divided by the number of sectors of a track; a sector is as many units as a
            // rotation has nanoseconds.
            let start = skew_ns * own_sectors + run.sector as u64 * rotation_ns;
            let end = start + run.sectors as u64 * rotation_ns;
            (self.rotation.quotient(start), self.rotation.quotient(end + rotation_ns - 1))
        } else {
            let start = skew_ns * own_sectors * top_sectors + run.sector as u64 * rotation_ns * top_sectors;
            let end = start + run.sectors as u64 * rotation_ns * top_sectors;
            let sector = rotation_ns * own_sectors;
            (start / sector, end.div_ceil(sector))
        };
        push_wrapped(top, first, end, faced);
    }

    /// Returns the bytes of heap memory that the tables of set-aside tracks take now.
    pub fn measured_bytes(&self) -> u64 {
        let gaps = self.gap_ends.capacity() + self.jumped.capacity();
        self.by_lba.measured_bytes() + self.by_pba.measured_bytes() + (gaps * size_of::<u64>()) as u64
    }
}

/// Appends the sectors from `first` up to `end` of a track. Numbers past the end of the track wrap to its beginning.
#[inline]
fn push_wrapped(place: &Place, first: u64, end: u64, faced: &mut Vec<Span>) {
    let (track, sectors) = (Track::of(place), place.track_sectors as u64);
    if end - first >= sectors {
        faced.push(Span { track, first: 0, end: place.track_sectors });
        return;
    }
    let (first, end) = if first >= sectors { (first - sectors, end - sectors) } else { (first, end) };
    faced.push(Span { track, first: first as u32, end: end.min(sectors) as u32 });
    if end > sectors {
        faced.push(Span { track, first: 0, end: (end - sectors) as u32 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::toy;

    /// Checks that `push_faced` names exactly the sectors that the recording destroys. Method: both are run for every
    /// part of every bottom track of every toy, including skewed and slipped ones.
    #[test]
    fn what_is_faced_is_what_is_destroyed() {
        for toy in toy::disks("interlaced") {
            let (geometry, recording) = (&toy.disk.geometry, &toy.disk.recording);
            let home = Planner::new(&toy.disk).expect("it is interlaced").finish();
            for index in 0..home.bottoms() {
                let (radial_track, surface) = home.bottom_at(index);
                let track = Track::of(&home.track(radial_track, surface).expect("every bottom is on the disk"));
                for first in 0..track.sectors {
                    for end in first + 1..=track.sectors {
                        let run = TrackRun::on(&track, first, end, Lba(0));
                        let (mut faced, mut destroyed) = (Vec::new(), Vec::new());
                        home.push_faced(&[run], &mut faced);
                        recording.destroys(geometry, run.extent(), &mut destroyed);
                        let sectors = |extents: Vec<Extent>| -> Vec<u64> {
                            let mut sectors: Vec<u64> = extents.iter().flat_map(|e| e.start.0..e.end().0).collect();
                            sectors.sort_unstable();
                            sectors
                        };
                        let faced = sectors(faced.iter().map(Span::extent).collect());
                        assert_eq!(faced, sectors(destroyed), "{}: {run:?}", toy.name);
                    }
                }
            }
        }
    }

    /// Checks invariant 1. Method: every LBA and every sector of every toy with areas set aside.
    #[test]
    fn lbas_and_sectors_lead_to_each_other() {
        for toy in toy::disks("interlaced") {
            let mut planner = Planner::new(&toy.disk).expect("it is interlaced");
            let areas = [0, 30, 3].map(|track| planner.set_aside(track, 0, 12).expect("there is room"));
            let home = planner.finish();
            let held: Vec<u64> = (0..home.capacity().0).map(|lba| home.pba(Lba(lba)).0).collect();
            assert!(held.is_sorted_by(|a, b| a < b), "{}", toy.name);
            for pba in 0..toy.disk.geometry.sectors().0 {
                let lba = held.binary_search(&pba).ok().map(|lba| Lba(lba as u64));
                assert_eq!(home.lba(Pba(pba)), lba, "{}: sector {pba}", toy.name);
                let place = home.locate(Pba(pba));
                let beside = |area: &Area| {
                    area.surface == place.surface
                        && (area.radial_start.saturating_sub(1)..=area.radial_last + 1).contains(&place.radial_track)
                };
                assert_eq!(lba.is_none(), areas.iter().any(beside), "{}: sector {pba}", toy.name);
            }
        }
    }

    /// Checks that the area set aside is the nearest free one, regardless of earlier searches. Method: areas of several
    /// sizes around several tracks, until there is no more room, compared with a search of all bottoms without short
    /// cuts.
    #[test]
    fn the_nearest_free_area_is_set_aside() {
        for toy in toy::disks("interlaced") {
            let geometry = &toy.disk.geometry;
            let mut planner = Planner::new(&toy.disk).expect("it is interlaced");
            let naive = |areas: &[Area], track: u32, surface: u8, sectors: u64| -> Option<u32> {
                let fits = |start: u32| {
                    let (mut extent, mut last) = (geometry.track(start, surface), start);
                    while extent.sectors.0 < sectors {
                        last += 2;
                        let next = (last < geometry.radial_tracks()).then(|| geometry.track(last, surface))?;
                        extent = (next.start == extent.end())
                            .then(|| Extent::new(extent.start, extent.sectors + next.sectors))?;
                    }
                    let meets =
                        |it: &Area| it.surface == surface && it.radial_start <= last + 2 && start <= it.radial_last + 2;
                    (!areas.iter().any(meets)).then_some(start)
                };
                let mut starts: Vec<u32> = (0..geometry.radial_tracks()).step_by(2).collect();
                let middle = track.min(geometry.radial_tracks() - 1) / 2 * 2;
                starts.sort_by_key(|start| (start.abs_diff(middle), *start < middle));
                starts.into_iter().find_map(fits)
            };
            let sizes = [12, 12, 5, 12, 30, 5, 1];
            let mut failed = 0;
            for (number, sectors) in sizes.into_iter().cycle().enumerate().take(200) {
                let (track, surface) = ([0, 0, 30, 7][number % 4], (number / 2 % geometry.surfaces() as usize) as u8);
                let expected = naive(&planner.areas, track, surface, sectors);
                let found = planner.set_aside(track, surface, sectors).map(|area| area.radial_start);
                assert_eq!(found, expected, "{}: {sectors} sectors at {track} of {surface}", toy.name);
                failed += u32::from(found.is_none());
            }
            assert!(failed > 0, "{}: it was never full", toy.name);
        }
    }
}
