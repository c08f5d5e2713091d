//! One access to the platters: what is asked of the actuator, and how long it took.

use crate::Direction;
use crate::units::{Extent, SimDuration};

/// Why an access is made. The rotation model [`Half`](crate::mechanics::Rotation::Half) times accesses by their purpose; the others
/// do not look at it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// For a host request, in its place.
    InPlace,
    /// To or from a backup region (Hajkazemi 2019 §2.1).
    Backup,
    /// A whole pseudo-track in its place (Hajkazemi 2019 §2.4). Its ends are not those of tracks; even on a disk of equal tracks,
    /// where they are, the paper counts as if they were not.
    PseudoTrack,
}

/// One contiguous access to the platters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// Whether it reads or writes.
    pub direction: Direction,
    /// The sectors that it touches.
    pub extent: Extent,
    /// Why it is made.
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
    /// The sum of the three parts.
    pub fn total(&self) -> SimDuration {
        self.seek + self.rotation + self.transfer
    }
}
