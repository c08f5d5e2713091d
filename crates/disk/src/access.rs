//! One access to the platters: what is asked of the actuator, and how long it took.

use crate::units::{Extent, SimDuration};
use crate::Direction;

/// Why an access is made: what the accounting of [`crate::mechanics::Rotation::Half`] needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// For a host request, in its place.
    InPlace,
    /// To or from a backup region (Hajkazemi 2019 §2.1).
    Backup,
    /// A whole pseudo-track in its place (Hajkazemi 2019 §2.4): its ends are not those of tracks, and where they happen to be,
    /// as on a disk of equal tracks, the paper counts as if they were not.
    PseudoTrack,
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
