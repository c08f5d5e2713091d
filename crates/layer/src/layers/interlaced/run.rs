//! Tracks, parts of them, and runs of logical sectors that lie on one track: what all parts of these layers speak of.

use imbrex_disk::{Extent, Lba, Pba, Place, Sectors};

use crate::plan::{Cause, Plan};

/// The heat key of a run whose writes are not counted.
pub const NO_HEAT: u32 = u32::MAX;

/// A track: where it lies and how long it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Track {
    /// Its first physical sector.
    pub start: Pba,
    /// Sectors that it holds.
    pub sectors: u32,
    /// Its radial position.
    pub radial_track: u32,
    /// The surface that it lies on.
    pub surface: u8,
}

impl Track {
    /// The track of a place.
    #[inline]
    pub fn of(place: &Place) -> Track {
        Track {
            start: place.track_start,
            sectors: place.track_sectors,
            radial_track: place.radial_track,
            surface: place.surface,
        }
    }
}

/// Sectors of one track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The track.
    pub track: Track,
    /// The first of them, counted on the track.
    pub first: u32,
    /// One past the last.
    pub end: u32,
}

impl Span {
    /// The physical sectors.
    #[inline]
    pub fn extent(&self) -> Extent {
        Extent::new(self.track.start + Sectors(self.first as u64), Sectors((self.end - self.first) as u64))
    }
}

/// Logical sectors that lie in one piece on one track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackRun {
    /// First logical sector.
    pub lba: Lba,
    /// Its first physical sector.
    pub pba: Pba,
    /// How many sectors.
    pub sectors: u32,
    /// Radial position of the track.
    pub radial_track: u32,
    /// The surface that it lies on.
    pub surface: u8,
    /// Sector of the track at which the run begins.
    pub sector: u32,
    /// Sectors that the track holds.
    pub track_sectors: u32,
    /// Whether writing it destroys nothing that holds data.
    pub harmless: bool,
    /// Under which key writes to it are counted.
    pub heat: u32,
}

impl TrackRun {
    /// The sectors of a track from `first` up to `end`, which hold those from `lba` on.
    #[inline]
    pub fn on(track: &Track, first: u32, end: u32, lba: Lba) -> TrackRun {
        TrackRun {
            lba,
            pba: track.start + Sectors(first as u64),
            sectors: end - first,
            radial_track: track.radial_track,
            surface: track.surface,
            sector: first,
            track_sectors: track.sectors,
            harmless: is_top(track.radial_track),
            heat: NO_HEAT,
        }
    }

    /// One past its last logical sector.
    #[inline]
    pub fn end(&self) -> Lba {
        self.lba + Sectors(self.sectors as u64)
    }

    /// The physical sectors.
    #[inline]
    pub fn extent(&self) -> Extent {
        Extent::new(self.pba, Sectors(self.sectors as u64))
    }

    /// The part of it from `lba` on, up to `end` or to its own end.
    #[inline]
    pub fn part(&self, lba: Lba, end: Lba) -> TrackRun {
        let (skipped, end) = ((lba - self.lba).0, end.min(self.end()));
        TrackRun {
            lba,
            pba: self.pba + Sectors(skipped),
            sectors: (end - lba).0 as u32,
            sector: self.sector + skipped as u32,
            ..*self
        }
    }
}

/// Whether a track lies on top of its neighbours: writing it harms nothing. Tops and bottoms alternate; the outermost track is
/// a bottom.
#[inline]
pub fn is_top(radial_track: u32) -> bool {
    radial_track % 2 == 1
}

/// Writes copies of `runs`, one after the other, from `backup` on.
#[inline]
pub fn write_copies(runs: &[TrackRun], backup: Pba, plan: &mut Plan) {
    let mut at = backup;
    for run in runs {
        let sectors = Sectors(run.sectors as u64);
        plan.write(Cause::Backup, at, run.lba, sectors);
        at += sectors;
    }
}
