//! The disk: where sectors lie (geometry), how long an access takes and where it leaves the head (mechanics), what a
//! write destroys (recording), and the named drives built of these (profiles).
//!
//! It knows nothing of mapping, bytes or threads. Everything is integer arithmetic on an integer-nanosecond clock.

pub mod access;
pub mod actuator;
pub mod geometry;
mod head;
pub mod head_log;
pub mod integrity;
pub mod mechanics;
pub mod profile;
pub mod recording;
mod soonest;

use std::sync::Arc;

pub use access::{Access, AccessTime, Purpose};
pub use actuator::{Actuator, Pass, Passing};
pub use geometry::{Geometry, Place, TrackPiece};
pub use head_log::{HeadLog, HeadSample};
pub use mechanics::Mechanics;
pub use profile::{Profile, ProfileError};
pub use recording::Recording;
pub use soonest::Soonest;
// Whoever uses a disk speaks in these.
pub use imbrex_units::{Command, Direction, Extent, Lba, Operation, Pba, Sectors, SimDuration, SimTime, units};

/// A disk as built from a profile: what layers consult and the simulator drives. Immutable and shared.
#[derive(Debug)]
pub struct Disk {
    /// Where sectors lie.
    pub geometry: Geometry,
    /// How long accesses take.
    pub mechanics: Mechanics,
    /// What writes destroy.
    pub recording: Box<dyn Recording>,
    /// Flash beside the platters, if the drive has any.
    pub flash: Option<profile::Flash>,
    /// Bytes of a sector.
    pub sector_bytes: u32,
}

/// A disk shared between the layer and the engine.
pub type SharedDisk = Arc<Disk>;

impl Disk {
    /// How many sectors past `end` a write of the sectors before `end` can destroy: the guard a region that ends there
    /// needs, so that nothing after the guard suffers. Zero on a conventional disk.
    ///
    /// `start` is the first sector of the region.
    pub fn guard_after(&self, start: Pba, end: Pba) -> Sectors {
        let mut destroyed = Vec::new();
        self.recording.destroys(&self.geometry, Extent::between(start, end), &mut destroyed);
        let reach = destroyed.iter().map(|extent| extent.end()).max().unwrap_or(end).max(end);
        reach - end
    }
}
