//! Tracks that lie apart from the bands: those of the journal, of the spare and of the map. A run of regions is taken
//! with the guards between its regions, since writes go over it in order and destroy only what they come to next.
//!
//! A track is left out if writing it would destroy something else, as at the end of a stroke, or if something else
//! destroys it.
//!
//! Invariants:
//! 1. Tracks are disjoint, ordered by PBA, and whole tracks of the geometry but for the last.
//! 2. A write of track i destroys none but tracks i + 1 to i + `reach`, and nothing that belongs to anyone else.

use imbrex_disk::{Disk, Extent, Pba, Sectors};

use crate::map::run_map::RunMap;
use crate::region::{HEAD_TRACKS_MAX, Regions};

/// Tracks behind a likely one that are looked at before all are searched.
const NEAR_TRACKS: usize = 4;

/// The sectors that belong to others: they must not be destroyed.
pub(super) trait Others {
    /// Whether a sector of `extent` belongs to others.
    fn touch(&self, extent: Extent) -> bool;
}

impl Others for RunMap<()> {
    fn touch(&self, extent: Extent) -> bool {
        self.first_overlap(extent.start.0, extent.sectors.0).is_some()
    }
}

/// Tracks in the order of their PBAs, addressed by sectors from the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracks {
    starts: Vec<u64>,
    /// Sectors before each track, and all of them at the end.
    offsets: Vec<u64>,
    /// Tracks after one that its write can destroy.
    pub(super) reach: usize,
}

impl Tracks {
    /// The usable tracks between the first and the last region of `taken`; `others` is what belongs to anyone else.
    pub(super) fn between(disk: &Disk, taken: &Regions, others: &impl Others) -> Tracks {
        let area = Extent::between(taken.extent(0).start, taken.extent(taken.len() - 1).end());
        let mut candidates = Vec::new();
        let mut next = area.start;
        while next < area.end() {
            let track = disk.geometry.track_of(next);
            let is_free = !others.touch(track);
            if is_free && (taken.lba_at(track.start).is_some() || !is_destroyed(disk, track, others)) {
                candidates.push(track);
            }
            next = track.end();
        }
        Tracks::kept(disk, area, &candidates, others)
    }

    fn kept(disk: &Disk, area: Extent, candidates: &[Extent], others: &impl Others) -> Tracks {
        let reaches: Vec<Option<usize>> =
            (0..candidates.len()).map(|index| reach(disk, area, candidates, index, others)).collect();
        let mut sorted: Vec<usize> = reaches.iter().flatten().copied().collect();
        sorted.sort_unstable();
        let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let mut tracks = Tracks { offsets: vec![0], ..Tracks::default() };
        for (track, reach) in candidates.iter().zip(&reaches) {
            // What reaches further than most ends a stroke: it destroys the beginning of another.
            if let Some(reach) = reach.filter(|&reach| reach <= usual) {
                tracks.starts.push(track.start.0);
                tracks.offsets.push(tracks.sectors() + track.sectors.0);
                tracks.reach = tracks.reach.max(reach);
            }
        }
        tracks
    }

    /// How many tracks there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Sectors of all of them together.
    pub(super) fn sectors(&self) -> u64 {
        *self.offsets.last().expect("begins with zero")
    }

    /// Keeps the first `sectors`; the last track is then cut.
    pub(super) fn truncate(&mut self, sectors: u64) {
        let count = self.index_at(sectors - 1) + 1;
        self.starts.truncate(count);
        self.offsets.truncate(count + 1);
        self.offsets[count] = sectors;
    }

    /// Sectors before track `index`.
    #[inline]
    pub(super) fn offset(&self, index: usize) -> u64 {
        self.offsets[index]
    }

    /// Sectors of track `index`.
    #[inline]
    pub(super) fn track_sectors(&self, index: usize) -> u64 {
        self.offsets[index + 1] - self.offsets[index]
    }

    /// The track that holds the sector at `offset`.
    #[inline]
    pub(super) fn index_at(&self, offset: u64) -> usize {
        self.offsets.partition_point(|&start| start <= offset) - 1
    }

    /// The same, looked for from track `near` on first.
    #[inline]
    fn index_near(&self, near: usize, offset: u64) -> usize {
        let ahead = &self.offsets[near..self.offsets.len().min(near + NEAR_TRACKS + 1)];
        match ahead.iter().position(|&start| start > offset) {
            Some(after) if after > 0 => near + after - 1,
            _ => self.index_at(offset),
        }
    }

    /// Of the `sectors` from `offset` on, those that follow each other on the medium.
    #[inline]
    pub(super) fn run(&self, offset: u64, sectors: u64) -> Extent {
        self.run_in(self.index_at(offset), offset, sectors)
    }

    /// The same, where `offset` lies in track `index`.
    #[inline]
    fn run_in(&self, mut index: usize, offset: u64, sectors: u64) -> Extent {
        let start = self.starts[index] + (offset - self.offsets[index]);
        let mut length = self.offsets[index + 1] - offset;
        while length < sectors && index + 1 < self.len() && self.starts[index + 1] == start + length {
            index += 1;
            length += self.track_sectors(index);
        }
        Extent::new(Pba(start), Sectors(length.min(sectors)))
    }

    /// Calls `visit(offset, extent)` with the parts of a run that follow each other on the medium; at the end the run
    /// goes on at the beginning.
    #[inline]
    pub(super) fn runs(&self, offset: u64, sectors: u64, visit: impl FnMut(u64, Extent)) {
        if sectors > 0 {
            self.runs_near(self.index_at(offset % self.sectors()), offset, sectors, visit);
        }
    }

    /// The same, where `offset` most likely lies in track `near` or soon behind it.
    #[inline]
    pub(super) fn runs_near(&self, near: usize, offset: u64, sectors: u64, mut visit: impl FnMut(u64, Extent)) {
        debug_assert!(sectors <= self.sectors(), "a run of {sectors} sectors of {}", self.sectors());
        let mut done = 0;
        while done < sectors {
            let at = (offset + done) % self.sectors();
            let extent = self.run_in(self.index_near(near, at), at, sectors - done);
            visit(done, extent);
            done += extent.sectors.0;
        }
    }

    /// The offset of `pba`, if it lies on one of them.
    pub(super) fn offset_of(&self, pba: Pba) -> Option<u64> {
        let index = self.starts.partition_point(|&start| start <= pba.0).checked_sub(1)?;
        let within = pba.0 - self.starts[index];
        (within < self.track_sectors(index)).then(|| self.offsets[index] + within)
    }

    /// The tracks, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        (0..self.len()).map(|index| Extent::new(Pba(self.starts[index]), Sectors(self.track_sectors(index))))
    }

    /// Bytes of memory that it takes now.
    pub(super) fn measured_bytes(&self) -> u64 {
        (self.starts.len() + self.offsets.len()) as u64 * 8
    }
}

/// How many of the tracks after number `index` its write can destroy; nothing if it destroys something else.
fn reach(disk: &Disk, area: Extent, tracks: &[Extent], index: usize, others: &impl Others) -> Option<usize> {
    let mut destroyed = Vec::new();
    disk.recording.destroys(&disk.geometry, tracks[index], &mut destroyed);
    let mut last = index;
    for extent in destroyed {
        let is_backward = extent.start < tracks[index].start && extent.end() > area.start;
        if is_backward || others.touch(extent) {
            return None;
        }
        last = last.max(tracks.partition_point(|track| track.start < extent.end()).saturating_sub(1));
    }
    Some(last - index)
}

/// Whether writing one of `others` destroys part of `track`.
pub(super) fn is_destroyed(disk: &Disk, track: Extent, others: &impl Others) -> bool {
    let place = disk.geometry.locate(track.start);
    let first = place.radial_track.saturating_sub(HEAD_TRACKS_MAX);
    let last = (place.radial_track + HEAD_TRACKS_MAX).min(disk.geometry.radial_tracks() - 1);
    let neighbour = |radial_track| disk.geometry.track(radial_track, place.surface);
    if in_one_run(disk, neighbour(first), neighbour(last), last - first).is_some_and(|all| !others.touch(all)) {
        return false;
    }
    let mut destroyed = Vec::new();
    (first..=last).map(neighbour).any(|neighbour| {
        destroyed.clear();
        if others.touch(neighbour) {
            disk.recording.destroys(&disk.geometry, neighbour, &mut destroyed);
        }
        destroyed.iter().any(|extent| extent.intersection(track).is_some())
    })
}

/// From one to the other of two tracks of a surface that lie `distance` apart, if the PBAs of those between them lie
/// between theirs.
fn in_one_run(disk: &Disk, one: Extent, other: Extent, distance: u32) -> Option<Extent> {
    let (first, last) = if one.start <= other.start { (one, other) } else { (other, one) };
    let (tracks, sectors) = disk.geometry.stroke_from(first.start)?;
    let is_in_it = u64::from(distance) < tracks && last.start == first.start + Sectors(sectors.0 * u64::from(distance));
    is_in_it.then(|| Extent::between(first.start, last.end()))
}
