//! Geometry: surfaces, recording zones, tracks, and the order in which PBAs run over them.
//!
//! Invariants:
//! 1. [`Geometry::locate`] and [`Geometry::pba`] are exact inverses (property-tested).
//! 2. Both cost O(log zones).

use crate::units::{Extent, Pba, Sectors};

/// Where a sector lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Track on its surface, counted from the outer diameter.
    pub radial_track: u32,
    /// Which surface.
    pub surface: u8,
    /// Sector within the track.
    pub sector: u32,
    /// Sectors that the track holds.
    pub track_sectors: u32,
    /// When, after the index mark, the sector's first bit passes the head: 0 ≤ angle < rotation time, in nanoseconds.
    /// Skew included.
    pub angle_ns: u32,
    /// The first sector of the track.
    pub track_start: Pba,
}

/// The geometry of a disk.
#[derive(Clone, Debug)]
pub struct Geometry {}

impl Geometry {
    /// All sectors of the disk.
    pub fn sectors(&self) -> Sectors {
        todo!()
    }
    /// Where `pba` lies.
    pub fn locate(&self, _pba: Pba) -> Place {
        todo!()
    }
    /// The sector at a place: the inverse of [`Geometry::locate`].
    pub fn pba(&self, _radial_track: u32, _surface: u8, _sector: u32) -> Pba {
        todo!()
    }
    /// The whole track that `pba` lies on.
    pub fn track_of(&self, _pba: Pba) -> Extent {
        todo!()
    }
    /// The track at a radial position of a surface.
    pub fn track(&self, _radial_track: u32, _surface: u8) -> Extent {
        todo!()
    }
    /// Tracks of one surface.
    pub fn radial_tracks(&self) -> u32 {
        todo!()
    }
    /// Surfaces.
    pub fn surfaces(&self) -> u8 {
        todo!()
    }
    /// Time of one rotation, in nanoseconds.
    pub fn rotation_ns(&self) -> u32 {
        todo!()
    }
}
