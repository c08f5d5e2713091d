//! One access to the platters: a request to the actuator, and the time that the access took.

use crate::Direction;
use crate::units::{Extent, SimDuration};

/// The purpose of an access. The rotation model [`Half`](crate::mechanics::Rotation::Half) times accesses by their
/// purpose; the other rotation models ignore it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// An access at the place where the sectors of a host request are stored.
    InPlace,
    /// A read from or a write to a backup region, where a read-modify-write saves the sectors that it will destroy
    /// (Hajkazemi 2019 §2.1).
    Backup,
    /// An access of a whole pseudo-track at its own place (Hajkazemi 2019 §2.4). It is timed as if the pseudo-track
    /// began in the middle of a track, even where it begins and ends with tracks: the paper counts in this way.
    PseudoTrack,
}

/// One contiguous access to the platters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// Whether the access reads or writes.
    pub direction: Direction,
    /// The physical sectors that the access reads or writes.
    pub extent: Extent,
    /// The purpose of the access, which decides its time in the rotation model `half`; other rotation models ignore it.
    pub purpose: Purpose,
}

/// The time that an access took, in three parts that do not overlap.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AccessTime {
    /// Time of moving the arm, settling and switching heads.
    pub seek: SimDuration,
    /// Time of waiting until the first sector passes the head; with several tracks, the sum of the waits on each.
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
