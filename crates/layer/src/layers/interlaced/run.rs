//! Tracks, spans of sectors on a track, and runs of logical sectors that lie on one track: the common types of the
//! interlaced layers.

use imbrex_disk::{Extent, Lba, Pba, Place, Sectors};

use crate::plan::{Cause, Plan};

/// Value of [`TrackRun::heat`] for a run to which host writes are not counted as heat. Heat is the count of sectors
/// written, or of writes, by which the data to move are chosen.
pub const NO_HEAT: u32 = u32::MAX;

/// A track of the disk: its place and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Track {
    /// First physical sector of the track, which is its sector 0.
    pub start: Pba,
    /// Number of physical sectors on the track.
    pub sectors: u32,
    /// Radial position of the track, counted from 0 at the outer diameter.
    pub radial_track: u32,
    /// Surface of the track, counted from 0.
    pub surface: u8,
}

impl Track {
    /// Returns the track that contains `place`.
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

/// A run of consecutive physical sectors of one track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The track on which the sectors lie.
    pub track: Track,
    /// First sector of the run, as its number on the track, counted from 0 at the start of the track.
    pub first: u32,
    /// One past the last sector of the run, as its number on the track, counted from 0 at the start of the track. It is
    /// more than the number of the first sector.
    pub end: u32,
}

impl Span {
    /// Returns the physical sectors of the span.
    #[inline]
    pub fn extent(&self) -> Extent {
        Extent::new(self.track.start + Sectors(self.first as u64), Sectors((self.end - self.first) as u64))
    }
}

/// A run of consecutive logical sectors that lie on consecutive physical sectors of one track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrackRun {
    /// First logical sector of the run; the others follow it.
    pub lba: Lba,
    /// Physical sector that holds the first logical sector of the run; the others follow it.
    pub pba: Pba,
    /// Number of sectors of the run: as many logical as physical ones.
    pub sectors: u32,
    /// Radial position of the track on which the run lies, counted in tracks from 0 at the outer diameter.
    pub radial_track: u32,
    /// Surface of the track on which the run lies, counted from 0.
    pub surface: u8,
    /// Sector at which the run begins, as its number on the track, counted from 0 at the start of the track.
    pub sector: u32,
    /// Number of sectors of the whole track on which the run lies, not of the run.
    pub track_sectors: u32,
    /// Whether a write to the run destroys no data, because the track is a top or lies in a backup region or cache.
    pub harmless: bool,
    /// Key under which host writes to the run are counted as heat, in a numbering of tracks or their parts that the
    /// layer defines; [`NO_HEAT`] if they are not counted.
    pub heat: u32,
}

impl TrackRun {
    /// Returns the run of the sectors from `first` up to `end` (exclusive) of `track`, which hold the logical sectors
    /// from `lba` on. `first` and `end` are counted on the track, and must not lie past its end. The run is harmless (a
    /// write to it destroys nothing) if `track` is a top track. Writes to the run are not counted as heat.
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

    /// Returns the LBA one past the run's last logical sector.
    #[inline]
    pub fn end(&self) -> Lba {
        self.lba + Sectors(self.sectors as u64)
    }

    /// Returns the physical sectors of the run.
    #[inline]
    pub fn extent(&self) -> Extent {
        Extent::new(self.pba, Sectors(self.sectors as u64))
    }

    /// Returns the part of the run from `lba` on, up to, not including, `end` or the end of the run, whichever comes
    /// first. `lba` must lie in the run and before `end`.
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

/// Returns whether a track lies on top of its neighbours, so that writing it destroys nothing. Tops and bottoms
/// alternate; the outermost track is a bottom.
#[inline]
pub(super) fn is_top(radial_track: u32) -> bool {
    radial_track % 2 == 1
}

/// Appends to `plan` writes of copies of `runs`, whose data are staged, one after the other from the physical sector
/// `backup` on.
#[inline]
pub(super) fn write_copies(runs: &[TrackRun], backup: Pba, plan: &mut Plan) {
    let mut at = backup;
    for run in runs {
        let sectors = Sectors(run.sectors as u64);
        plan.write(Cause::Backup, at, run.lba, sectors);
        at += sectors;
    }
}
