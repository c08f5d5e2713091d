//! One access to the platters: a request to the actuator, and the time that the access took.

use crate::Direction;
use crate::units::{Extent, SimDuration};

/// Why an access is made. The rotation model [`Half`](crate::mechanics::Rotation::Half) times accesses by their
/// purpose; the other models ignore it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// For a host request, at the place where its sectors are stored.
    InPlace,
    /// To or from a backup region (Hajkazemi 2019 §2.1).
    Backup,
    /// For a whole pseudo-track at its own place (Hajkazemi 2019 §2.4). A pseudo-track does not begin and end where
    /// tracks do. On a disk of equal tracks it does, but the paper counts as if it did not.
    PseudoTrack,
}

/// One contiguous access to the platters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// Whether the access reads or writes.
    pub direction: Direction,
    /// The sectors that the access touches.
    pub extent: Extent,
    /// Why the access is made.
    pub purpose: Purpose,
}

/// How long an access took, in three parts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AccessTime {
    /// Time of moving the arm, settling and switching heads.
    pub seek: SimDuration,
    /// Time of waiting until the first sector passes the head.
    pub rotation: SimDuration,
    /// Time in which the sectors pass under the head.
    pub transfer: SimDuration,
}

impl AccessTime {
    /// Returns the sum of seek, rotation and transfer.
    pub fn total(&self) -> SimDuration {
        self.seek + self.rotation + self.transfer
    }
}
