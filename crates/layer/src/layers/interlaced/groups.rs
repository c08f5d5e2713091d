//! The groups of an interlaced disk: bottom tracks that follow each other in PBA order, then the top tracks between
//! them. Tracks are kept as rows of equally long tracks. A group mostly has one row of each kind, so a disk with
//! millions of tracks is traversed group by group.
//!
//! Invariants:
//! 1. The tracks of all groups together are those of the disk, in PBA order, each once.

use imbrex_disk::{Extent, Pba, Sectors, SharedDisk};

use super::home::Home;

/// Tracks of equal length that follow each other in PBA order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    start: Pba,
    tracks: u64,
    track: Sectors,
}

/// A list of tracks in PBA order, stored as rows of tracks of equal length.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TrackRows {
    rows: Vec<Row>,
}

impl TrackRows {
    /// Returns the number of tracks.
    pub fn count(&self) -> u64 {
        self.rows.iter().map(|row| row.tracks).sum()
    }

    /// Returns the physical sectors of the first track, or `None` if there are no tracks.
    pub fn first(&self) -> Option<Extent> {
        self.iter().next()
    }

    /// Returns the physical sectors of each track, in PBA order.
    pub fn iter(&self) -> impl Iterator<Item = Extent> + '_ {
        let track = |row: Row, index: u64| Extent::new(row.start + Sectors(index * row.track.0), row.track);
        self.rows.iter().flat_map(move |&row| (0..row.tracks).map(move |index| track(row, index)))
    }

    /// Returns the number of sectors of the longest track, or `None` if there are no tracks.
    pub fn longest(&self) -> Option<Sectors> {
        self.rows.iter().map(|row| row.track).max()
    }

    /// Splits the tracks into parts of `tracks_max` tracks each; the last part has the rest. Returns the extents of
    /// each part in PBA order; one extent covers consecutive tracks of equal length. Returns no parts if there are no
    /// tracks. `tracks_max` must not be 0.
    pub fn parts(&self, tracks_max: u64) -> Vec<Vec<Extent>> {
        let (mut parts, mut room) = (Vec::new(), 0);
        for row in &self.rows {
            let mut done = 0;
            while done < row.tracks {
                if room == 0 {
                    parts.push(Vec::new());
                    room = tracks_max;
                }
                let taken = room.min(row.tracks - done);
                let extent = Extent::new(row.start + Sectors(done * row.track.0), Sectors(taken * row.track.0));
                parts.last_mut().expect("one was pushed before there was room").push(extent);
                (done, room) = (done + taken, room - taken);
            }
        }
        parts
    }
}

/// A group of an interlaced disk: bottom tracks that follow each other in PBA order, then the top tracks between them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Group {
    /// The bottom tracks of the group, in PBA order. Writes to them destroy sectors of the top tracks between them.
    pub bottoms: TrackRows,
    /// The top tracks of the group, which lie between its bottom tracks, in PBA order. They follow the bottom tracks in
    /// PBA order.
    pub tops: TrackRows,
}

/// Returns the groups of an interlaced disk in PBA order. A group is a number of bottom tracks that follow each other
/// in PBA order, then the top tracks between them. Together the groups hold every track of the disk once.
pub fn groups(disk: &SharedDisk) -> impl Iterator<Item = Group> + '_ {
    let geometry = &disk.geometry;
    let mut next = Pba(0);
    std::iter::from_fn(move || {
        if next.0 >= geometry.sectors().0 {
            return None;
        }
        let mut group = Group::default();
        while next.0 < geometry.sectors().0 {
            let place = geometry.locate(next);
            let is_top = Home::is_top(place.radial_track);
            if !is_top && !group.tops.rows.is_empty() {
                break;
            }
            let (tracks, track) = geometry.row_from(next).unwrap_or((1, place.track().sectors));
            let tracks_of_kind = if is_top { &mut group.tops } else { &mut group.bottoms };
            tracks_of_kind.rows.push(Row { start: next, tracks, track });
            next += Sectors(tracks * track.0);
        }
        Some(group)
    })
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1, and parts of the right size. Method: every toy, compared with a walk over its tracks.

    use super::*;
    use crate::verify::toy;

    #[test]
    fn groups_hold_every_track_once() {
        for toy in toy::disks("interlaced") {
            let (geometry, mut next, mut rows) = (&toy.disk.geometry, Pba(0), 0);
            for group in groups(&toy.disk) {
                rows += group.bottoms.rows.len() + group.tops.rows.len();
                for (is_top, tracks) in [(false, &group.bottoms), (true, &group.tops)] {
                    for track in tracks.iter() {
                        assert_eq!(track, geometry.track_of(next), "{}", toy.name);
                        assert_eq!(Home::is_top(geometry.locate(next).radial_track), is_top, "{}", toy.name);
                        next = track.end();
                    }
                    let parts = tracks.parts(3);
                    assert_eq!(parts.len() as u64, tracks.count().div_ceil(3));
                    let held: u64 = parts.iter().flatten().map(|part| part.sectors.0).sum();
                    assert_eq!(held, tracks.iter().map(|track| track.sectors.0).sum::<u64>());
                    assert_eq!(parts.first().map(|part| part[0].start), tracks.first().map(|track| track.start));
                }
            }
            assert_eq!(next.0, geometry.sectors().0, "{}", toy.name);
            assert!(rows > 0);
        }
    }
}
