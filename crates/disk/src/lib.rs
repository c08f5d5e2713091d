//! The disk: where sectors lie (geometry), how long an access takes and where it leaves the head (mechanics), which
//! sectors a write destroys (recording), and named drives that combine the three (profiles).
//!
//! The crate knows nothing of mapping, bytes or threads. All arithmetic is on integers, with a clock in nanoseconds.

pub mod access;
pub mod actuator;
pub mod geometry;
mod head;
pub mod head_log;
pub mod integrity;
pub mod mechanics;
pub mod profile;
pub mod recording;
mod sptf_index;

use std::sync::Arc;

pub use access::{Access, AccessTime, Purpose};
pub use actuator::{Actuator, Pass, Passing};
pub use geometry::{Geometry, Place, TrackPiece};
pub use head_log::{HeadLog, HeadSample};
pub use mechanics::Mechanics;
pub use profile::{Profile, ProfileError};
pub use recording::Recording;
pub use sptf_index::SptfIndex;
// Users of a disk need these types too.
pub use imbrex_units::{Command, Direction, Extent, Lba, Operation, Pba, Sectors, SimDuration, SimTime, units};

/// An immutable model of a disk, built from a profile: translation layers query it, and the simulator times accesses
/// with it. It holds no data and no head position.
#[derive(Debug)]
pub struct Disk {
    /// Place of each physical sector on the platters.
    pub geometry: Geometry,
    /// Seek and rotation models, which give the times of accesses.
    pub mechanics: Mechanics,
    /// Rule that gives the sectors that a write destroys beside those that it writes.
    pub recording: Box<dyn Recording>,
    /// Latencies and transfer rate of a flash memory beside the platters; `None` if the drive has none. Its size is a
    /// parameter of the translation layer.
    pub flash: Option<profile::Flash>,
    /// Size of a sector in bytes.
    pub sector_bytes: u32,
}

/// A disk shared between the translation layer and the simulator's engine.
pub type SharedDisk = Arc<Disk>;

impl Disk {
    /// Returns the number of sectors from `end` up to and including the last sector that a write of the sectors from
    /// `start` up to, not including, `end` destroys. A region from `start` to `end` needs a guard of this many sectors
    /// behind it, so that its writes destroy nothing behind the guard. Zero on a conventional disk.
    pub fn guard_after(&self, start: Pba, end: Pba) -> Sectors {
        let mut destroyed = Vec::new();
        self.recording.destroys(&self.geometry, Extent::between(start, end), &mut destroyed);
        let reach = destroyed.iter().map(|extent| extent.end()).max().unwrap_or(end).max(end);
        reach - end
    }
}
