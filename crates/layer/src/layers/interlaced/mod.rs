//! What the layers of interlaced disks share (Hajkazemi 2019 §2): tracks and their homes, the backup log, the
//! read-modify-write of bottom tracks, the count of hot tracks, and the phases of background moves. A layer adds where
//! data lies and which tracks to move: [`Translation`].
//!
//! ```text
//!   finder ── home ── backup ── host ──┐
//!                                      ├── driver ── imr_rmw · track_flip · track_cache · track_map
//!                     heat ─── moves ──┘
//! ```

pub mod backup;
pub mod driver;
pub mod finder;
pub mod heat;
pub mod home;
pub mod host;
pub mod live;
pub mod moves;
pub mod options;
pub mod packed;
#[cfg(test)]
pub mod testing;
pub mod zones;

use imbrex_disk::{Extent, Lba, Pba, Place, Sectors};

use crate::layer::Cache;
use crate::plan::note::{Note, ReplayError};
use crate::plan::Plan;
use crate::violation::Violation;
use heat::HeatLog;
use home::Home;
use moves::Transfers;

/// The heat key of a run whose writes are not counted.
pub const NO_HEAT: u32 = u32::MAX;

/// A track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Track {
    /// Its first sector.
    pub start: Pba,
    /// How many it holds.
    pub sectors: u32,
    /// Its radial position.
    pub radial_track: u32,
    /// Its surface.
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
pub struct Run {
    /// First logical sector.
    pub lba: Lba,
    /// Where it lies.
    pub pba: Pba,
    /// How many.
    pub sectors: u32,
    /// The track.
    pub radial_track: u32,
    /// Its surface.
    pub surface: u8,
    /// Sector of the track at which the run begins.
    pub sector: u32,
    /// Sectors of the track.
    pub track_sectors: u32,
    /// Whether writing it destroys nothing that holds data.
    pub harmless: bool,
    /// Under which key writes to it are counted.
    pub heat: u32,
}

impl Run {
    /// The sectors of a track from `first` up to `end`, which hold those from `lba` on.
    #[inline]
    pub fn on(track: &Track, first: u32, end: u32, lba: Lba) -> Run {
        Run {
            lba,
            pba: track.start + Sectors(first as u64),
            sectors: end - first,
            radial_track: track.radial_track,
            surface: track.surface,
            sector: first,
            track_sectors: track.sectors,
            harmless: Home::is_top(track.radial_track),
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

    /// What of it begins at `lba` and reaches to `end` at most.
    #[inline]
    pub fn part(&self, lba: Lba, end: Lba) -> Run {
        let (skipped, end) = ((lba - self.lba).0, end.min(self.end()));
        Run {
            lba,
            pba: self.pba + Sectors(skipped),
            sectors: (end - lba).0 as u32,
            sector: self.sector + skipped as u32,
            ..*self
        }
    }
}

/// Where a layer puts data, and what it moves.
pub trait Translation: Send + 'static {
    /// A background move.
    type Move: Copy + PartialEq + std::fmt::Debug + Send;

    /// The layer's name in the registry.
    fn name(&self) -> &'static str;

    /// The longest run on one track that holds `lba`.
    fn run_of(&self, home: &Home, lba: Lba) -> Run;

    /// The longest run that lies on a track around its sector `sector`, or the first after it if no data lies there; none
    /// if none lies from there to the end of the track.
    fn run_at(&self, home: &Home, track: &Track, sector: u32) -> Option<Run>;

    /// Under which key a write of `run` is counted.
    #[inline]
    fn heat(&self, run: &Run) -> u32 {
        run.heat
    }

    /// Whether there are moves at all: if not, nothing is counted.
    fn moves(&self) -> bool {
        true
    }

    /// Chooses moves from the sorted counts of an interval, in the order in which they are to be made.
    fn select(&mut self, _home: &Home, _heat: &HeatLog, _moves: &mut Vec<Self::Move>) {}

    /// Says what is to be copied for a move; `false` if it makes no sense (any more).
    fn prepare(&self, _home: &Home, _chosen: Self::Move, _transfers: &mut Transfers) -> bool {
        false
    }

    /// All copies of `chosen` are made but those written last, of data that lies in the backup region from `backup` on.
    fn displace(&mut self, _home: &Home, _chosen: Self::Move, _backup: Pba, _plan: &mut Plan) {
        unreachable!("only moves with late transfers displace data")
    }

    /// All copies of `chosen` are made: changes the map and notes it. The note ends the move's backup record.
    fn commit(&mut self, _home: &Home, _chosen: Self::Move, _plan: &mut Plan) {
        unreachable!("a layer that moves nothing has nothing to commit")
    }

    /// Takes a note of [`Translation::displace`] or [`Translation::commit`]; says whether it ends the record of the move.
    fn replay(&mut self, _home: &Home, note: &Note) -> Result<bool, ReplayError> {
        Err(ReplayError { note: *note, reason: "this layer has no such record".into() })
    }

    /// Completes what a cut left displaced, in a recovery group of its own; says whether anything was.
    fn finish_displaced(&mut self, _home: &Home, _plan: &mut Plan) -> bool {
        false
    }

    /// Appends records that rebuild the map; those of displaced data come last.
    fn checkpoint(&self, _notes: &mut Vec<Note>) {}

    /// Calls `each` with its caches, if it has any.
    fn caches(&self, _home: &Home, _each: &mut dyn FnMut(Cache)) {}

    /// Checks the numbered invariants of its file's header.
    fn self_check(&self, _home: &Home) -> Result<(), Violation> {
        Ok(())
    }

    /// Whether it moves pseudo-tracks, which need not begin where a track does.
    fn moves_pseudo_tracks(&self) -> bool {
        false
    }

    /// Bytes of its map by the paper's formula, for a disk of so many tracks.
    fn formula_bytes(&self, _tracks: u64) -> u64 {
        0
    }

    /// Bytes of its map as it is.
    fn measured_bytes(&self) -> u64 {
        0
    }
}
