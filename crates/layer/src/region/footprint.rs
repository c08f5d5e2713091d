//! The sectors that a write of a whole region destroys. They are computed once for all regions of one size that begin
//! at the same sector of a track, in strokes of one recording zone.
//!
//! Invariants:
//! 1. The cached answers are equal to the answers of the recording.

use imbrex_disk::recording::HEAD_TRACKS_MAX;
use imbrex_disk::{Disk, Extent, Pba, Sectors};

/// Returns a number of consecutive tracks, from the track that begins at sector `track` on, that destroy sectors at
/// equal distances from their own first sectors when they are written whole. All lie in one stroke: the tracks of one
/// recording zone on one surface of a `horizontal` layout. The last 32 tracks of the stroke are not counted, because
/// their writes may reach past its end. Returns 1 if fewer remain, in other layouts, on a disk with slipped tracks, or
/// if the recording promises no equal distances.
pub fn alike_tracks(disk: &Disk, track: Pba) -> u64 {
    let stroke = disk.geometry.stroke_from(track);
    let alike = stroke.filter(|_| disk.recording.is_alike_in_stroke(&disk.geometry, track));
    alike.map_or(1, |(left, _)| left.saturating_sub(u64::from(HEAD_TRACKS_MAX)).max(1))
}

/// Marker in `guards`: the guard is unknown, or the destroyed sectors do not lie right behind the region.
const NO_GUARD: u32 = u32::MAX;

/// Whole tracks of equal length, from the track in which a region began.
#[derive(Clone, Copy)]
struct Stroke {
    extent: Extent,
    track_sectors: u64,
    is_alike: bool,
}

/// Computes and caches the sectors that writes of whole regions destroy. It is fast for regions of one size in order of
/// PBA.
pub(super) struct Footprints<'a> {
    disk: &'a Disk,
    stroke: Stroke,
    /// First sector of the recording zone, and length of the regions, for which the cache is valid.
    kept_for: (Pba, Sectors),
    /// Extents that a region destroys, relative to the region's start; the index is the sector of the track at which
    /// the region begins.
    kept: Vec<Option<Box<[Extent]>>>,
    /// Length of the guard of a region, with the index of `kept`; [`NO_GUARD`] if there is none.
    guards: Vec<u32>,
    destroyed: Vec<Extent>,
}

impl<'a> Footprints<'a> {
    /// Returns an empty cache for regions of `disk`.
    pub(super) fn new(disk: &'a Disk) -> Footprints<'a> {
        let stroke = Stroke { extent: Extent::new(Pba(0), Sectors::ZERO), track_sectors: 1, is_alike: false };
        let kept_for = (Pba(0), Sectors::ZERO);
        Footprints { disk, stroke, kept_for, kept: Vec::new(), guards: Vec::new(), destroyed: Vec::new() }
    }

    /// Returns the extents that a write of all of `region` destroys.
    pub(super) fn of(&mut self, region: Extent) -> &[Extent] {
        self.destroyed.clear();
        let Some(sector) = self.sector_among_alike(region) else {
            self.disk.recording.destroys(&self.disk.geometry, region, &mut self.destroyed);
            return &self.destroyed;
        };
        if let Some(kept) = &self.kept[sector] {
            let moved = |lost: &Extent| Extent::new(region.start + Sectors(lost.start.0), lost.sectors);
            self.destroyed.extend(kept.iter().map(moved));
            return &self.destroyed;
        }
        self.disk.recording.destroys(&self.disk.geometry, region, &mut self.destroyed);
        let is_in_stroke = |lost: &Extent| lost.start >= region.start && lost.end() <= self.stroke.extent.end();
        if self.destroyed.iter().all(is_in_stroke) {
            let moved = |lost: &Extent| Extent::new(Pba(lost.start.0 - region.start.0), lost.sectors);
            self.kept[sector] = Some(self.destroyed.iter().map(moved).collect());
            self.guards[sector] = guard(region, &self.destroyed).unwrap_or(NO_GUARD);
        }
        &self.destroyed
    }

    /// Returns the length of the guard behind `region`, in sectors: a write of the region destroys only sectors of the
    /// guard, so a region of equal length may begin behind it. Returns `None` if the length is not in the cache, or if
    /// the write destroys sectors elsewhere.
    pub(super) fn guard(&mut self, region: Extent) -> Option<u64> {
        let sector = self.sector_among_alike(region)?;
        Some(self.guards[sector]).filter(|&guard| guard != NO_GUARD).map(u64::from)
    }

    /// Returns how many regions of a row, from the first on, have a guard whose length is in the cache and for which
    /// `fits` returns `true`. The row has `count` regions as long as `first`, which is the first of them; each of the
    /// others begins `step` sectors after the start of the one before it.
    pub(super) fn guarded(&mut self, first: Extent, step: u64, count: u64, fits: impl Fn(u64) -> bool) -> u64 {
        let Some(mut sector) = self.sector_among_alike(first) else { return 0 };
        let track = self.stroke.track_sectors as usize;
        let (room, ahead) = (self.alike_end() - first.end().0, (step % self.stroke.track_sectors) as usize);
        let known = count.min(room / step + 1);
        for number in 0..known {
            let guard = self.guards[sector];
            if guard == NO_GUARD || !fits(u64::from(guard)) {
                return number;
            }
            sector += ahead;
            sector -= if sector >= track { track } else { 0 };
        }
        known
    }

    /// Returns the PBA up to which a region may reach without destroying sectors outside of the stroke.
    fn alike_end(&self) -> u64 {
        let Stroke { extent, track_sectors, .. } = self.stroke;
        extent.end().0.saturating_sub(u64::from(HEAD_TRACKS_MAX) * track_sectors)
    }

    /// Returns the sector of its track at which `region` begins. `None` if the tracks of the stroke are not alike, or
    /// if the region may destroy sectors outside of it.
    fn sector_among_alike(&mut self, region: Extent) -> Option<usize> {
        if !self.stroke.extent.contains(region.start) {
            self.enter_stroke(region.start);
        }
        let Stroke { extent, track_sectors, is_alike } = self.stroke;
        if !is_alike || region.end().0 > self.alike_end() {
            return None;
        }
        if self.kept_for.1 != region.sectors {
            self.kept_for.1 = region.sectors;
            self.forget();
        }
        self.kept.resize(track_sectors as usize, None);
        self.guards.resize(track_sectors as usize, NO_GUARD);
        Some(((region.start - extent.start).0 % track_sectors) as usize)
    }

    fn enter_stroke(&mut self, start: Pba) {
        let (geometry, recording) = (&self.disk.geometry, &self.disk.recording);
        let place = geometry.locate(start);
        let own = place.track();
        let stroke = geometry.stroke_from(own.start).filter(|_| recording.is_alike_in_stroke(geometry, own.start));
        let (tracks, sectors) = stroke.unwrap_or((1, own.sectors));
        let extent = Extent::new(own.start, Sectors(tracks * sectors.0));
        self.stroke = Stroke { extent, track_sectors: sectors.0, is_alike: stroke.is_some() };
        let zone = geometry.zone_of(place.radial_track).extent.start;
        if zone != self.kept_for.0 {
            self.kept_for.0 = zone;
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.kept.clear();
        self.guards.clear();
    }
}

/// Returns the length of the guard: the sectors right behind `region` that hold all it destroys. `None` if the region
/// destroys sectors elsewhere, or if a region of equal length would fit between `region` and the destroyed sectors.
fn guard(region: Extent, destroyed: &[Extent]) -> Option<u32> {
    let behind = |end: Pba, lost: &Extent| {
        (region.end() <= lost.start && lost.start < end + region.sectors).then(|| end.max(lost.end()))
    };
    let end = destroyed.iter().try_fold(region.end(), behind)?;
    u32::try_from((end - region.end()).0).ok().filter(|&guard| guard != NO_GUARD)
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1, and that few answers are computed by the recording. Method: regions of many sizes from every
    //! sector on, on disks in strokes whose tracks are skewed, compared with the recording.

    use super::*;
    use crate::verify::toy;

    const SKEWED_STROKES: &str = "tracks = 400\nstroke_tracks_od = 90\nstroke_tracks_id = 50\ntrack_sectors_od = 16\n\
         track_sectors_id = 7\ntrack_skew_ns = 1700000\nhead_skew_ns = 300000";

    #[test]
    fn what_is_kept_is_what_the_recording_says() {
        for recording in [
            "kind = \"shingled\"\nhead_tracks = 2",
            "kind = \"shingled\"\nhead_tracks = 3\nwidening_ns = 900000",
            "kind = \"shingled\"\nhead_tracks = 3\nhead_steps = [{ from_share = 0.45, head_tracks = 1 }, { from_share = 0.8, head_tracks = 2 }]",
            "kind = \"block-interference\"\ninterference_sectors = 20",
        ] {
            let disk = toy::in_strokes(SKEWED_STROKES, recording);
            let (mut footprints, mut kept, mut in_rows) = (Footprints::new(&disk), 0, 0);
            for sectors in [1, 5, 16, 39, 100] {
                for start in 0..disk.geometry.sectors().0 - sectors {
                    let region = Extent::new(Pba(start), Sectors(sectors));
                    let mut destroyed = Vec::new();
                    disk.recording.destroys(&disk.geometry, region, &mut destroyed);
                    assert_eq!(footprints.of(region), destroyed, "{recording}: {region:?}");
                    kept += footprints.kept.iter().flatten().count();
                }
                // Rows of every step, checked against the recording's answer for each region.
                for (start, step) in (0..200).flat_map(|start| (sectors..sectors + 40).map(move |step| (start, step))) {
                    let first = Extent::new(Pba(start), Sectors(sectors));
                    let guard = step - sectors;
                    // Fills the cache with the regions of the first stroke.
                    (start..800).step_by(step as usize).for_each(|start| {
                        footprints.of(Extent::new(Pba(start), first.sectors));
                    });
                    let told = footprints.guarded(first, step, 30, |sectors| sectors == guard);
                    for region in (0..told).map(|number| Extent::new(Pba(start + number * step), first.sectors)) {
                        let mut destroyed = Vec::new();
                        disk.recording.destroys(&disk.geometry, region, &mut destroyed);
                        let is_clear = |start| {
                            let next = Extent::new(Pba(start), region.sectors);
                            destroyed.iter().all(|lost| lost.intersection(next).is_none())
                        };
                        let next = (region.end().0..).find(|&start| is_clear(start));
                        assert_eq!(next, Some(region.end().0 + guard), "{recording}: behind {region:?}");
                        let is_behind =
                            |lost: &Extent| lost.start >= region.end() && lost.end().0 <= region.end().0 + guard;
                        assert!(destroyed.iter().all(is_behind), "{recording}: {region:?} destroys {destroyed:?}");
                    }
                    in_rows += told;
                }
            }
            assert!(in_rows > 0, "{recording}");
            assert!(kept > 0, "{recording}");
        }
    }
}
