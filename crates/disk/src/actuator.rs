//! The moving part: an actuator that performs accesses one after the other, and remembers where its head is.
//!
//! Invariants:
//! 1. The four parts of an access (overhead is the host side's) add up to the time it took.
//! 2. The same accesses from the same state at the same times take the same time: no randomness, no floating clock.

use crate::units::{Extent, Sectors, SimDuration, SimTime};
use crate::{Direction, Disk, SharedDisk};

/// Why an access is made: what the accounting of [`crate::mechanics::Rotation::Half`] needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// For a host request, in its place.
    InPlace,
    /// To or from a backup region (Hajkazemi 2019 §2.1).
    Backup,
}

/// One contiguous access to the platters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// Read or write.
    pub direction: Direction,
    /// Where.
    pub extent: Extent,
    /// Why.
    pub purpose: Purpose,
}

/// How long an access took, by part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AccessTime {
    /// Moving the arm, settling, switching heads.
    pub seek: SimDuration,
    /// Waiting for the sector to pass.
    pub rotation: SimDuration,
    /// Sectors passing under the head.
    pub transfer: SimDuration,
}

impl AccessTime {
    /// All of it.
    pub fn total(&self) -> SimDuration {
        self.seek + self.rotation + self.transfer
    }
}

/// The arm with its heads over a disk.
#[derive(Debug)]
pub struct Actuator {
    disk: SharedDisk,
}

impl Actuator {
    /// An actuator at the outermost track (radial position 0) on surface 0.
    pub fn new(disk: SharedDisk) -> Actuator {
        Actuator { disk }
    }

    /// Performs `access`, beginning at `now`, and says how long it took.
    pub fn access(&mut self, _now: SimTime, _access: &Access) -> AccessTime {
        todo!()
    }

    /// What reaching `target` would take from here, beginning at `now`, without going there: for schedulers.
    pub fn positioning_time(&self, _now: SimTime, _target: &crate::Place, _direction: Direction) -> SimDuration {
        todo!()
    }

    /// Radial position of the head: tracks from the outermost.
    pub fn radial_track(&self) -> u32 {
        todo!()
    }

    /// The disk it moves over.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Told that a new host operation begins: resets what `half` remembers of the operation in hand.
    pub fn begin_operation(&mut self) {
        let _ = Sectors::ZERO;
    }
}
