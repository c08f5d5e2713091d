//! Zones of pseudo-tracks (Hajkazemi 2019 §2.4). The bottoms of a group are laid end to end and cut into pieces as long
//! as the group's longest track, or into shorter pieces (blocks). The tops of the group are cut likewise. A group of
//! more than 128 bottoms makes several zones. The rest at the end of the bottoms or tops, shorter than a piece, belongs
//! to no zone.
//!
//! Homes are expressed as LBAs here: a zone is two stretches of LBAs, and home n of a zone is the n-th piece of these
//! stretches, bottoms first.
//!
//! Invariants:
//! 1. Stretches cover all LBAs, in order, without gap.
//! 2. A zone has at most 256 pseudo-tracks, or 65,536 blocks.

use imbrex_disk::{Extent, Lba, Sectors};

use super::finder::Finder;
use super::groups::{Group, groups};
use super::home::Home;

/// Maximum number of bottoms in a zone, and of tops.
const STRETCH_TRACKS: u64 = 128;

/// Consecutive LBAs of the bottoms, or of the tops, of a zone.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: u64,
    zone: u32,
    /// Number of sectors in a piece.
    piece_sectors: u32,
    /// Home number of the stretch's first piece.
    first: u16,
    pieces: u16,
}

/// A zone: pieces (pseudo-tracks or blocks) of equal length that a layer permutes among themselves. The pieces on
/// bottom tracks have the lowest home numbers, those on top tracks the others.
#[derive(Clone, Copy, Debug)]
pub struct MapZone {
    /// First LBA of the bottoms, and of the tops.
    starts: [u64; 2],
    /// Number of sectors in each piece (pseudo-track or block) of the zone; all pieces of a zone have an equal length.
    pub piece_sectors: u32,
    /// Number of pieces (pseudo-tracks or blocks) of the zone that lie on bottom tracks if nothing was moved. Their
    /// home numbers are 0 to `bottoms` − 1.
    pub bottoms: u16,
    /// Total number of pieces (pseudo-tracks or blocks) of the zone, on bottom and top tracks. Their home numbers are 0
    /// to `pieces` − 1, those of bottoms first.
    pub pieces: u16,
}

/// The piece in which an LBA has its home, and the LBA's position in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZonePiece {
    /// Number of the zone that contains the piece, counted from 0 over the whole disk.
    pub zone: u32,
    /// Home number of the piece: its number in the zone if nothing was moved, counted from 0. Pieces on bottom tracks
    /// have the lowest numbers.
    pub home: u16,
    /// Number of the sector of the LBA within the piece, counted from 0 at the start of the piece.
    pub sector: u32,
    /// Total number of sectors in the piece.
    pub sectors: u32,
}

/// The zones of an interlaced disk, with a search by LBA. A zone has the pieces (pseudo-tracks or blocks) of up to 128
/// bottom and 128 top tracks of one group. A few LBAs, at the end of the bottoms and of the tops of a zone, belong to
/// no piece.
#[derive(Clone, Debug)]
pub struct MapZones {
    by_lba: Finder,
    stretches: Vec<Stretch>,
    zones: Vec<MapZone>,
    /// Number of pieces that the longest track takes, rounded up.
    pieces_of_track: u64,
}

impl MapZones {
    /// Returns the zones of the disk of `home`, cut into pseudo-tracks: pieces as long as the longest track of their
    /// group, which need not begin at the start of a track.
    pub fn new(home: &Home) -> MapZones {
        MapZones::of_pieces(home, u32::MAX)
    }

    /// Returns the zones of the disk of `home`, cut into pieces of `piece_sectors_max` sectors, or as long as the
    /// longest track of their group if that is less. `piece_sectors_max` must not be 0.
    pub fn of_pieces(home: &Home, piece_sectors_max: u32) -> MapZones {
        let longest =
            home.disk().geometry.zones().iter().map(|zone| zone.track_sectors).max().expect("a disk has a zone");
        let pieces_of_track = longest.div_ceil(piece_sectors_max) as u64;
        let mut builder = Builder { home, piece_sectors_max, next_lba: 0, stretches: Vec::new(), zones: Vec::new() };
        groups(home.disk()).for_each(|group| builder.group(&group));
        let (mut stretches, mut zones) = (builder.stretches, builder.zones);
        stretches.shrink_to_fit();
        zones.shrink_to_fit();
        let starts = stretches.iter().map(|stretch| stretch.start).collect();
        MapZones { by_lba: Finder::new(starts, home.capacity().0), stretches, zones, pieces_of_track }
    }

    /// Returns the number of zones.
    pub fn count(&self) -> usize {
        self.zones.len()
    }

    /// Returns the length of the longest track of the disk, divided by the maximum length of a piece and rounded up.
    /// The maximum is the one given to [`MapZones::of_pieces`]; the result is 1 for pseudo-tracks.
    pub fn pieces_of_track(&self) -> u64 {
        self.pieces_of_track
    }

    /// Returns the zone with the number `index`, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such zone.
    pub fn zone(&self, index: u32) -> &MapZone {
        &self.zones[index as usize]
    }

    /// Returns the piece in which `lba` has its home (its place if nothing was moved), or `None` if `lba` belongs to no
    /// piece. `lba` must lie below the capacity.
    #[inline]
    pub fn piece_of(&self, lba: Lba) -> Option<ZonePiece> {
        let stretch = &self.stretches[self.by_lba.before(lba.0) - 1];
        let offset = (lba.0 - stretch.start) as u32;
        let (index, sector) = (offset / stretch.piece_sectors, offset % stretch.piece_sectors);
        (index < stretch.pieces as u32).then(|| ZonePiece {
            zone: stretch.zone,
            home: stretch.first + index as u16,
            sector,
            sectors: stretch.piece_sectors,
        })
    }

    /// Returns the first LBA of the piece with the home number `home` of the zone with the number `zone`, both counted
    /// from 0. The zone and the piece must exist.
    #[inline]
    pub fn start(&self, zone: u32, home: u16) -> Lba {
        let zone = &self.zones[zone as usize];
        let (start, index) = match home < zone.bottoms {
            true => (zone.starts[0], home),
            false => (zone.starts[1], home - zone.bottoms),
        };
        Lba(start + index as u64 * zone.piece_sectors as u64)
    }

    /// Returns the run of LBAs around `lba` that belong to no piece, as (start, exclusive end). `lba` must belong to no
    /// piece; `capacity` is the capacity of the drive.
    pub fn left_over(&self, lba: Lba, capacity: Sectors) -> (Lba, Lba) {
        let index = self.by_lba.before(lba.0) - 1;
        let stretch = &self.stretches[index];
        let end = self.stretches.get(index + 1).map_or(capacity.0, |next| next.start);
        (Lba(stretch.start + stretch.pieces as u64 * stretch.piece_sectors as u64), Lba(end))
    }

    /// Returns the bytes of heap memory that the tables of zones take now.
    pub fn measured_bytes(&self) -> u64 {
        let tables = self.stretches.capacity() * size_of::<Stretch>() + self.zones.capacity() * size_of::<MapZone>();
        self.by_lba.measured_bytes() + tables as u64
    }
}

/// Turns groups into zones.
struct Builder<'a> {
    home: &'a Home,
    piece_sectors_max: u32,
    next_lba: u64,
    stretches: Vec<Stretch>,
    zones: Vec<MapZone>,
}

impl Builder<'_> {
    /// Cuts a group into zones and pieces.
    fn group(&mut self, group: &Group) {
        let first_zone = self.zones.len() as u32;
        let (bottoms, tops) = (group.bottoms.parts(STRETCH_TRACKS), group.tops.parts(STRETCH_TRACKS));
        let longest = group.bottoms.longest().max(group.tops.longest()).expect("a group has tracks");
        let piece_sectors = (longest.0 as u32).min(self.piece_sectors_max);
        let zone = MapZone { starts: [0; 2], piece_sectors, bottoms: 0, pieces: 0 };
        self.zones.extend((0..bottoms.len().max(tops.len())).map(|_| zone));
        for (index, part) in (first_zone..).zip(&bottoms) {
            self.stretch(index, 0, piece_sectors, part);
        }
        for (index, part) in (first_zone..).zip(&tops) {
            self.stretch(index, 1, piece_sectors, part);
        }
    }

    /// Adds a stretch: tracks that follow each other, without those that are set aside.
    fn stretch(&mut self, zone: u32, kind: usize, piece_sectors: u32, tracks: &[Extent]) {
        let sectors: u64 = tracks.iter().map(|&tracks| self.home.lbas_in(tracks)).sum();
        let start = self.next_lba;
        let entry = &mut self.zones[zone as usize];
        let (first, pieces) = (entry.pieces, (sectors / piece_sectors as u64) as u16);
        entry.starts[kind] = start;
        entry.pieces += pieces;
        if kind == 0 {
            entry.bottoms = pieces;
        }
        if sectors > 0 {
            self.stretches.push(Stretch { start, zone, piece_sectors, first, pieces });
        }
        self.next_lba += sectors;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::interlaced::backup::BackupLog;
    use crate::layers::interlaced::home::Planner;
    use crate::verify::toy;

    /// Checks invariant 1, and that pieces and LBAs lead to each other. Method: every LBA of every toy.
    #[test]
    fn every_lba_is_at_home_in_one_piece_or_left_over() {
        for toy in toy::disks("interlaced") {
            let mut planner = Planner::new(&toy.disk).expect("it is interlaced");
            let geometry = &toy.disk.geometry;
            BackupLog::set_aside(&mut planner, geometry.radial_tracks(), geometry.surfaces(), 16).expect("it fits");
            let home = planner.finish();
            let zones = MapZones::new(&home);
            let mut left_over = 0;
            for lba in 0..home.capacity().0 {
                match zones.piece_of(Lba(lba)) {
                    Some(piece) => {
                        let start = zones.start(piece.zone, piece.home);
                        assert_eq!(start.0 + piece.sector as u64, lba, "{}", toy.name);
                        let is_top = Home::is_top(home.locate(home.pba(Lba(lba))).radial_track);
                        assert_eq!(is_top, piece.home >= zones.zone(piece.zone).bottoms, "{}", toy.name);
                    }
                    None => {
                        let (start, end) = zones.left_over(Lba(lba), home.capacity());
                        assert!(start.0 <= lba && lba < end.0, "{}: {lba} of {start}–{end}", toy.name);
                        left_over += 1;
                    }
                }
            }
            let pieces: u64 = zones.zones.iter().map(|zone| zone.pieces as u64 * zone.piece_sectors as u64).sum();
            assert_eq!(pieces + left_over, home.capacity().0);
        }
    }
}
