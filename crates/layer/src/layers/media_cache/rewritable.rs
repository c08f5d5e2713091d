//! Search for tracks that can be overwritten in place: those whose write destroys nothing, and which no write by
//! another user destroys.
//!
//! Tracks of a stroke are mostly alike, so few of them are examined. A stroke in a conventional part of the disk is
//! taken whole if no other user has sectors in it. Of a shingled stroke, only the end can be of use.
//!
//! Invariants:
//! 1. The result equals that of a search that examines every track.

use imbrex_disk::recording::HEAD_TRACKS_MAX;
use imbrex_disk::{Disk, Extent, Pba, Sectors};

use super::tracks::{Others, is_destroyed};
use crate::region::Regions;

/// A search from the first to the last of some regions.
struct Search<'a, O: Others> {
    disk: &'a Disk,
    taken: &'a Regions,
    others: &'a O,
    destroyed: Vec<Extent>,
    runs: Vec<Extent>,
}

/// Returns the tracks from the start of the first to the end of the last region of `taken` that can be overwritten in
/// place, because no write destroys their sectors or sectors of `others` (the sectors of other parts). Tracks that are
/// contiguous on the disk form one run.
pub(super) fn between(disk: &Disk, taken: &Regions, others: &impl Others) -> Vec<Extent> {
    let mut search = Search { disk, taken, others, destroyed: Vec::new(), runs: Vec::new() };
    let (mut next, end) = (taken.extent(0).start, taken.extent(taken.len() - 1).end());
    while next < end {
        next = match disk.geometry.stroke_from(next) {
            Some((left, track)) if disk.recording.is_alike_in_stroke(&disk.geometry, next) => {
                let tracks = left.min((end - next).0.div_ceil(track.0));
                search.stroke(next, tracks, left, track);
                next + Sectors(tracks * track.0)
            }
            _ => {
                let track = disk.geometry.track_of(next);
                search.track(track);
                track.end()
            }
        };
    }
    search.runs
}

impl<O: Others> Search<'_, O> {
    /// Examines one track.
    fn track(&mut self, track: Extent) {
        self.destroyed.clear();
        self.disk.recording.destroys(&self.disk.geometry, track, &mut self.destroyed);
        let is_free = self.destroyed.is_empty() && !self.others.touch(track);
        if is_free && (self.taken.lba_at(track.start).is_some() || !is_destroyed(self.disk, track, self.others)) {
            self.add(track);
        }
    }

    fn add(&mut self, tracks: Extent) {
        match self.runs.last_mut() {
            Some(run) if run.end() == tracks.start => *run = Extent::between(run.start, tracks.end()),
            _ => self.runs.push(tracks),
        }
    }

    /// Examines `tracks` tracks of a stroke that has `left` tracks from `first` on. Tracks are alike if they are so far
    /// from both ends that all tracks that they destroy, or that destroy them, lie in the stroke.
    fn stroke(&mut self, first: Pba, tracks: u64, left: u64, track: Sectors) {
        let at = |index: u64| first + Sectors(index * track.0);
        let reach = u64::from(HEAD_TRACKS_MAX);
        let begin = reach.min(tracks);
        let end = left.saturating_sub(reach).min(tracks).max(begin);
        for index in (0..begin).chain(end..tracks) {
            if index == end && begin < end {
                self.alike(Extent::between(at(begin), at(end)), track);
            }
            self.track(Extent::new(at(index), track));
        }
        if begin < end && end == tracks {
            self.alike(Extent::between(at(begin), at(end)), track);
        }
    }

    /// Examines tracks that are alike, mostly by examining one of them.
    fn alike(&mut self, tracks: Extent, track: Sectors) {
        self.destroyed.clear();
        let one = Extent::new(tracks.start, track);
        self.disk.recording.destroys(&self.disk.geometry, one, &mut self.destroyed);
        if !self.destroyed.is_empty() {
            return;
        }
        let reach = Sectors(u64::from(HEAD_TRACKS_MAX) * track.0);
        if !self.others.touch(Extent::between(tracks.start - reach, tracks.end() + reach)) {
            return self.add(tracks);
        }
        for index in 0..tracks.sectors.0 / track.0 {
            self.track(Extent::new(tracks.start + Sectors(index * track.0), track));
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1. Method: a search of every track, on disks in strokes with and without a conventional part, at
    //! all positions, with other users' sectors beside and amid the tracks.

    use super::*;
    use crate::map::run_map::RunMap;
    use crate::region::{Position, RegionSize};
    use crate::verify::toy;

    fn disk(recording: &str) -> imbrex_disk::SharedDisk {
        let conventional = "horizontal.conventional_from = 0.4\nhorizontal.conventional_to = 0.6";
        toy::in_strokes(&format!("{}\n{conventional}", toy::LONG_STROKES), recording)
    }

    fn each(disk: &Disk, taken: &Regions, others: &RunMap<()>) -> Vec<Extent> {
        let mut search = Search { disk, taken, others, destroyed: Vec::new(), runs: Vec::new() };
        let (mut next, end) = (taken.extent(0).start, taken.extent(taken.len() - 1).end());
        while next < end {
            let track = disk.geometry.track_of(next);
            search.track(track);
            next = track.end();
        }
        search.runs
    }

    #[test]
    fn finds_what_looking_at_every_track_finds() {
        let mut found = 0;
        for recording in [
            "kind = \"shingled\"\nhead_tracks = 2",
            "kind = \"shingled\"\nhead_tracks = 3\nhead_steps = [{ from_share = 0.45, head_tracks = 1 }, { from_share = 0.8, head_tracks = 2 }]",
            "kind = \"conventional\"",
            "kind = \"block-interference\"\ninterference_sectors = 200",
        ] {
            let disk = disk(recording);
            let regions = Regions::carve(&disk, RegionSize::Tracks(3));
            for position in Position::WORDS.iter().filter_map(|word| Position::named(word)) {
                for count in [1, 40, 700, regions.len() / 2 + 7, regions.len() - 1] {
                    let (taken, rest) = regions.take(&disk, count, position);
                    let mut others: RunMap<()> = RunMap::default();
                    let far_in = taken.extent(count / 3).start;
                    (0..rest.len())
                        .for_each(|index| others.insert(rest.extent(index).start.0, rest.sectors(index).0, ()));
                    others.insert(far_in.0, 1, ());
                    let runs = between(&disk, &taken, &others);
                    assert_eq!(runs, each(&disk, &taken, &others), "{recording}, {count} regions");
                    found += runs.len();
                }
            }
        }
        assert!(found > 50, "{found} runs");
    }
}
