//! Lays out regions over a disk from its first sector to its last, with a guard behind each that is as long as the
//! recording demands.
//!
//! Equal regions in a row are laid out at once, so that the time to cut a drive into whole tracks is proportional to
//! its number of strokes.
//!
//! Invariants: those of [`super::regions`].

use imbrex_disk::{Disk, Extent, Pba, Sectors};

use super::footprint::Footprints;
use super::rows::Rows;
use crate::map::run_map::RunMap;

/// The size of each region that is laid out on a disk, without the guard behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionSize {
    /// A number of sectors. A region may begin and end within a track.
    Sectors(Sectors),
    /// A number of whole tracks that follow each other in order of PBA. Regions begin at the start of a track.
    Tracks(u32),
}

/// Lays out the regions of one disk.
pub(super) struct Carver<'a> {
    disk: &'a Disk,
    size: RegionSize,
    /// Sectors that a later region would destroy: no region may lie there, in any pass over the disk.
    pub(super) barred: RunMap<()>,
    footprints: Footprints<'a>,
}

/// Maximum number of passes over the disk. A pass lays out regions, except on sectors that an earlier pass found to be
/// destroyed by a later region. After the last pass, regions on such sectors are dropped.
pub(super) const PASSES_MAX: u32 = 4;

impl<'a> Carver<'a> {
    pub(super) fn new(disk: &'a Disk, size: RegionSize) -> Carver<'a> {
        Carver { disk, size, barred: RunMap::default(), footprints: Footprints::new(disk) }
    }

    pub(super) fn carve(mut self) -> Rows {
        for _ in 1..PASSES_MAX {
            let (regions, is_safe) = self.pass();
            if is_safe {
                return regions;
            }
        }
        let (regions, _) = self.pass();
        let (mut kept, mut next) = (Rows::default(), 0);
        for (start, sectors, ()) in self.barred.iter() {
            let hit = regions.overlapping(Extent::new(Pba(start), Sectors(sectors)));
            kept.push_slice(&regions, next..hit.start.max(next));
            next = next.max(hit.end);
        }
        kept.push_slice(&regions, next..regions.len());
        kept
    }

    /// Lays out regions from the first sector to the last. Returns them, and whether none of them destroys an earlier
    /// one.
    fn pass(&mut self) -> (Rows, bool) {
        // Regions are laid out in the order of their sectors, so barred sectors before the next region can be
        // forgotten.
        let mut taken = self.barred.clone();
        let mut regions = Rows::default();
        let mut is_safe = true;
        let mut next = Pba(0);
        while let Some(region) = self.region_at(next) {
            taken.forget_before(region.start.0);
            if let Some((_, end)) = taken.first().filter(|&(start, _)| start < region.end().0) {
                next = Pba(end);
                continue;
            }
            next = region.end();
            for extent in self.footprints.of(region) {
                // A guard right behind the region is skipped; one further on bars the regions there.
                if extent.start <= next {
                    next = next.max(extent.end());
                } else {
                    taken.insert(extent.start.0, extent.sectors.0, ());
                }
                if extent.start < region.start && !regions.overlapping(*extent).is_empty() {
                    self.barred.insert(extent.start.0, extent.sectors.0, ());
                    is_safe = false;
                }
            }
            regions.push(region);
            next = self.repeat(&mut regions, region, next, &mut taken);
        }
        (regions, is_safe)
    }

    /// Lays out the regions that follow `last` in its row of tracks, if each of them destroys only sectors right behind
    /// it, equally for all. `next` is the first sector after the guard of `last`. Returns the sector at which to
    /// continue.
    fn repeat(&mut self, regions: &mut Rows, last: Extent, next: Pba, taken: &mut RunMap<()>) -> Pba {
        if let RegionSize::Sectors(_) = self.size {
            return self.repeat_known(regions, last, next, taken);
        }
        let Some((left, track)) = self.row_from(last.start) else { return next };
        let is_behind = self.footprints.of(last).iter().all(|lost| lost.start >= last.end() && lost.end() <= next);
        let (step, end) = (next - last.start, last.start + Sectors(left * track.0));
        let is_free = taken.first().is_none_or(|(start, _)| start >= end.0);
        let is_alike = || self.disk.recording.is_alike_in_stroke(&self.disk.geometry, last.start);
        if next + step > end || !step.0.is_multiple_of(track.0) || !is_behind || !is_free || !is_alike() {
            return next;
        }
        let count = (end - next).0 / step.0;
        regions.push_many(Extent::new(next, last.sectors), step.0, count);
        next + Sectors(count * step.0)
    }

    /// Like [`Carver::repeat`], for regions that need not begin at the start of a track: lays out those that are known
    /// to need a guard as long as that of `last`.
    fn repeat_known(&mut self, regions: &mut Rows, last: Extent, next: Pba, taken: &mut RunMap<()>) -> Pba {
        let Some(guard) = self.footprints.guard(last) else { return next };
        let (next, step) = (last.end() + Sectors(guard), last.sectors.0 + guard);
        taken.forget_before(next.0);
        let (first, disk_end) = (Extent::new(next, last.sectors), self.disk.geometry.sectors().0);
        let free_end = taken.first().map_or(disk_end, |(start, _)| start.min(disk_end));
        let Some(room) = free_end.checked_sub(first.end().0) else { return next };
        let count = self.footprints.guarded(first, step, room / step + 1, |sectors| sectors == guard);
        regions.push_many(first, step, count);
        next + Sectors(count * step)
    }

    /// Returns the number and length of the equal whole tracks from the one that begins at `pba` on. They lie in one
    /// stroke; if writes destroy nothing, they may continue past it.
    fn row_from(&self, pba: Pba) -> Option<(u64, Sectors)> {
        match self.disk.recording.is_harmless() {
            true => self.disk.geometry.row_from(pba),
            false => self.disk.geometry.stroke_from(pba),
        }
    }

    /// Returns the region that begins at `start`, or `None` if it would reach past the end of the disk or its size is
    /// 0. A region of whole tracks begins at the next track if `start` is not the beginning of a track.
    pub(super) fn region_at(&self, start: Pba) -> Option<Extent> {
        let end = Pba(self.disk.geometry.sectors().0);
        match self.size {
            RegionSize::Sectors(sectors) => {
                (start.0 + sectors.0 <= end.0 && !sectors.is_zero()).then(|| Extent::new(start, sectors))
            }
            RegionSize::Tracks(tracks) => {
                if start >= end || tracks == 0 {
                    return None;
                }
                let track = self.disk.geometry.track_of(start);
                let first = if track.start == start { start } else { track.end() };
                if let Some((left, sectors)) = self.row_from(first)
                    && left >= tracks as u64
                {
                    return Some(Extent::new(first, Sectors(sectors.0 * tracks as u64)));
                }
                let mut last = first;
                for _ in 0..tracks {
                    if last >= end {
                        return None;
                    }
                    last = self.disk.geometry.track_of(last).end();
                }
                Some(Extent::between(first, last))
            }
        }
    }
}
