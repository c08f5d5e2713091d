//! Tracks apart from the bands: those of the journal, of the spare and of the map. A run of regions is taken with the
//! guards between them, because writes pass over it in order and destroy only tracks that are written later.
//!
//! A track is left out if its write would destroy sectors of other users, as at the end of a stroke, or if their writes
//! would destroy it.
//!
//! Invariants:
//! 1. Tracks are disjoint, ordered by PBA, and whole tracks of the geometry except for the last.
//! 2. A write of track i destroys none but tracks i + 1 to i + `reach`, and no sector of another user.

use std::ops::Range;

use imbrex_disk::recording::HEAD_TRACKS_MAX;
use imbrex_disk::{Disk, Extent, Pba, Sectors};

use crate::map::run_map::RunMap;
use crate::region::{Regions, alike_tracks};

/// Number of tracks after a likely one that are examined before all are searched.
const NEAR_TRACKS: usize = 4;

/// The sectors that other parts of the layer (bands, map, spare, cache) use, which writes to the tracks must not
/// destroy.
pub(super) trait Others {
    /// Returns whether a sector of `extent` belongs to another part.
    fn touch(&self, extent: Extent) -> bool;
}

impl Others for RunMap<()> {
    fn touch(&self, extent: Extent) -> bool {
        self.first_overlap(extent.start.0, extent.sectors.0).is_some()
    }
}

/// A list of tracks in order of PBA. A sector on them is addressed by its offset: the number of sectors of the tracks
/// before it in the list.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracks {
    starts: Vec<u64>,
    /// Number of sectors before each track, and of all tracks at the end.
    offsets: Vec<u64>,
    /// Maximum number of following tracks of the list of which a write of one track can destroy sectors.
    pub(super) reach: usize,
}

impl Tracks {
    /// Returns the usable tracks from the start of the first to the end of the last region of `taken`. A track is left
    /// out if its write would destroy sectors of `others` (the sectors of other parts), or if their writes would
    /// destroy it.
    pub(super) fn between(disk: &Disk, taken: &Regions, others: &impl Others) -> Tracks {
        let area = Extent::between(taken.extent(0).start, taken.extent(taken.len() - 1).end());
        let (mut candidates, mut rows, mut next) = (Vec::new(), Vec::new(), area.start);
        while next < area.end() {
            let track = disk.geometry.track_of(next);
            let alike = tracks_alone(disk, area, track, others);
            if alike > 0 {
                let first = candidates.len();
                let at = |index: u64| Extent::new(track.start + Sectors(index * track.sectors.0), track.sectors);
                candidates.extend((0..alike).map(at));
                rows.push(first..candidates.len());
            } else {
                let is_free = !others.touch(track);
                if is_free && (taken.lba_at(track.start).is_some() || !is_destroyed(disk, track, others)) {
                    candidates.push(track);
                }
            }
            next = track.start + Sectors(alike.max(1) * track.sectors.0);
        }
        Tracks::kept(&reaches(disk, area, &candidates, &rows, others), &candidates)
    }

    fn kept(reaches: &[Option<usize>], candidates: &[Extent]) -> Tracks {
        let mut sorted: Vec<usize> = reaches.iter().flatten().copied().collect();
        sorted.sort_unstable();
        let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let mut tracks = Tracks { offsets: vec![0], ..Tracks::default() };
        for (track, reach) in candidates.iter().zip(reaches) {
            // A track with a longer reach than most lies at the end of a stroke: its write destroys the beginning of
            // another stroke.
            if let Some(reach) = reach.filter(|&reach| reach <= usual) {
                tracks.starts.push(track.start.0);
                tracks.offsets.push(tracks.sectors() + track.sectors.0);
                tracks.reach = tracks.reach.max(reach);
            }
        }
        tracks
    }

    /// Returns the number of tracks.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the total number of sectors in these tracks.
    pub(super) fn sectors(&self) -> u64 {
        *self.offsets.last().expect("begins with zero")
    }

    /// Keeps only the first `sectors` of the tracks, which may cut the last track. `sectors` must not be 0 or more than
    /// all.
    pub(super) fn truncate(&mut self, sectors: u64) {
        let count = self.index_at(sectors - 1) + 1;
        self.starts.truncate(count);
        self.offsets.truncate(count + 1);
        self.offsets[count] = sectors;
    }

    /// Returns the offset of the first sector of the track at `index`; for the index after the last track, the total
    /// number of sectors.
    #[inline]
    pub(super) fn offset(&self, index: usize) -> u64 {
        self.offsets[index]
    }

    /// Returns the number of sectors of the track at `index`.
    #[inline]
    pub(super) fn track_sectors(&self, index: usize) -> u64 {
        self.offsets[index + 1] - self.offsets[index]
    }

    /// Returns the index of the track that contains the sector at `offset`.
    #[inline]
    pub(super) fn index_at(&self, offset: u64) -> usize {
        self.offsets.partition_point(|&start| start <= offset) - 1
    }

    /// Like [`Tracks::index_at`], but examines track `near` and the next few first.
    #[inline]
    fn index_near(&self, near: usize, offset: u64) -> usize {
        let ahead = &self.offsets[near..self.offsets.len().min(near + NEAR_TRACKS + 1)];
        match ahead.iter().position(|&start| start > offset) {
            Some(after) if after > 0 => near + after - 1,
            _ => self.index_at(offset),
        }
    }

    /// Returns the physical sectors of the `sectors` from `offset` on, as far as they are contiguous on the disk from
    /// the first one on.
    #[inline]
    pub(super) fn run(&self, offset: u64, sectors: u64) -> Extent {
        self.run_in(self.index_at(offset), offset, sectors)
    }

    /// Like [`Tracks::run`], for an `offset` in track `index`.
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

    /// Splits the `sectors` from `offset` on into parts that are contiguous on the disk. Calls `visit(done, extent)`
    /// with each part in order; `done` is the number of sectors before it. After the last track the sectors continue at
    /// the first.
    #[inline]
    pub(super) fn runs(&self, offset: u64, sectors: u64, visit: impl FnMut(u64, Extent)) {
        if sectors > 0 {
            self.runs_near(self.index_at(offset % self.sectors()), offset, sectors, visit);
        }
    }

    /// Like [`Tracks::runs`], but faster if `offset` lies in the track with the index `near` or in one of the next
    /// four.
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

    /// Returns the offset of the physical sector `pba`, or `None` if it lies on none of the tracks.
    pub(super) fn offset_of(&self, pba: Pba) -> Option<u64> {
        let index = self.starts.partition_point(|&start| start <= pba.0).checked_sub(1)?;
        let within = pba.0 - self.starts[index];
        (within < self.track_sectors(index)).then(|| self.offsets[index] + within)
    }

    /// Returns the physical sectors of each track, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        (0..self.len()).map(|index| Extent::new(Pba(self.starts[index]), Sectors(self.track_sectors(index))))
    }

    /// Returns the bytes of memory that the tables take now.
    pub(super) fn measured_bytes(&self) -> u64 {
        (self.starts.len() + self.offsets.len()) as u64 * 8
    }
}

/// Returns how many tracks from `track` on have only tracks like themselves near them. Those are far enough from the
/// ends of their stroke, from those of `area`, and from all sectors of other users.
fn tracks_alone(disk: &Disk, area: Extent, track: Extent, others: &impl Others) -> u64 {
    let (reach, near) = (u64::from(HEAD_TRACKS_MAX), Sectors(u64::from(HEAD_TRACKS_MAX) * track.sectors.0));
    if track.start < area.start + near {
        return 0;
    }
    let first = track.start - near;
    let is_one_stroke = |&(_, sectors): &(u64, Sectors)| sectors == track.sectors;
    if disk.geometry.stroke_from(first).filter(is_one_stroke).is_none() {
        return 0;
    }
    let in_area = (area.end() - track.start).0 / track.sectors.0;
    let count = alike_tracks(disk, first).saturating_sub(reach).min(in_area.saturating_sub(reach));
    let around = Extent::between(first, track.start + Sectors((count + reach) * track.sectors.0));
    if count <= reach || others.touch(around) { 0 } else { count }
}

/// Returns the [`reach`] of each of `tracks`. In each of `rows`, tracks are alike, so the first of a row is examined
/// for all that have enough tracks of the row after them.
fn reaches(
    disk: &Disk,
    area: Extent,
    tracks: &[Extent],
    rows: &[Range<usize>],
    others: &impl Others,
) -> Vec<Option<usize>> {
    let mut reaches = Vec::with_capacity(tracks.len());
    for row in rows.iter().cloned().chain(std::iter::once(tracks.len()..tracks.len())) {
        reaches.extend((reaches.len()..row.start).map(|index| reach(disk, area, tracks, index, others)));
        let alike = row.end.saturating_sub(HEAD_TRACKS_MAX as usize);
        let one = if row.start < alike { reach(disk, area, tracks, row.start, others) } else { None };
        if one.is_some_and(|one| one <= HEAD_TRACKS_MAX as usize) {
            reaches.resize(alike, one);
        }
    }
    reaches
}

/// Returns how many of the tracks after track `index` its write can destroy; `None` if the write destroys anything
/// else.
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

/// Returns whether a write of a neighbouring track with sectors of `others` destroys a sector of `track`.
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

/// Returns the extent from one to the other of two tracks of a surface that lie `distance` tracks apart. Returns `None`
/// if the tracks between them do not also lie between them by PBA.
fn in_one_run(disk: &Disk, one: Extent, other: Extent, distance: u32) -> Option<Extent> {
    let (first, last) = if one.start <= other.start { (one, other) } else { (other, one) };
    let (tracks, sectors) = disk.geometry.stroke_from(first.start)?;
    let is_in_it = u64::from(distance) < tracks && last.start == first.start + Sectors(sectors.0 * u64::from(distance));
    is_in_it.then(|| Extent::between(first.start, last.end()))
}

#[cfg(test)]
mod tests {
    //! Goal: tracks taken to be alike have the results of examining each. Method: both, on disks in strokes, at all
    //! positions, with other users' sectors beside and amid the tracks.

    use super::*;
    use crate::region::{Position, RegionSize};
    use crate::verify::toy;

    fn disk(head: &str) -> imbrex_disk::SharedDisk {
        toy::in_strokes(toy::LONG_STROKES, &format!("kind = 'shingled'\n{head}"))
    }

    fn each(disk: &Disk, taken: &Regions, others: &RunMap<()>) -> Tracks {
        let area = Extent::between(taken.extent(0).start, taken.extent(taken.len() - 1).end());
        let (mut candidates, mut next) = (Vec::new(), area.start);
        while next < area.end() {
            let track = disk.geometry.track_of(next);
            let is_wanted = taken.lba_at(track.start).is_some() || !is_destroyed(disk, track, others);
            candidates.extend((!others.touch(track) && is_wanted).then_some(track));
            next = track.end();
        }
        Tracks::kept(&reaches(disk, area, &candidates, &[], others), &candidates)
    }

    #[test]
    fn finds_what_looking_at_every_track_finds() {
        let mut found = 0;
        for head in ["head_tracks = 2", "head_tracks = 5\nhead_steps = [{ from_share = 0.7, head_tracks = 1 }]"] {
            let disk = disk(head);
            let regions = Regions::carve(&disk, RegionSize::Tracks(3));
            for position in Position::WORDS.iter().filter_map(|word| Position::named(word)) {
                for count in [1, 40, 200, 700, regions.len() / 2 + 7, regions.len() - 1] {
                    let (taken, rest) = regions.take(&disk, count, position);
                    let mut others: RunMap<()> = RunMap::default();
                    (0..rest.len())
                        .for_each(|index| others.insert(rest.extent(index).start.0, rest.sectors(index).0, ()));
                    others.insert(taken.extent(count / 3).start.0, 1, ());
                    let (got, expected) = (Tracks::between(&disk, &taken, &others), each(&disk, &taken, &others));
                    assert_eq!(got.starts, expected.starts, "{head}, {count} regions");
                    assert_eq!((got.offsets, got.reach), (expected.offsets, expected.reach));
                    found += got.starts.len();
                }
            }
        }
        assert!(found > 5000, "{found} tracks");
    }
}
