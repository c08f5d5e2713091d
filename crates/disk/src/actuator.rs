//! The moving part: an actuator that performs accesses one after the other, and remembers where its head is.
//!
//! Invariants:
//! 1. The four parts of an access (overhead is the host side's) add up to the time it took.
//! 2. The same accesses from the same state at the same times take the same time: no randomness, no floating clock.

mod head_log;
mod pass;
#[cfg(test)]
mod tests;

pub use head_log::{HeadLog, HeadSample};
pub use pass::{Pass, Passing};

use crate::mechanics::half::Half;
use crate::mechanics::{exact, none, Rotation};
use crate::units::{Extent, Pba, SimDuration, SimTime};
use crate::{Direction, Disk, Place, SharedDisk};

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

/// Where the head is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    radial_track: u32,
    surface: u8,
    /// One past the last sector accessed.
    next: Option<Pba>,
}

impl Head {
    #[inline]
    pub(crate) fn distance(&self, place: &Place) -> u32 {
        self.radial_track.abs_diff(place.radial_track)
    }

    #[inline]
    pub(crate) fn changes_surface(&self, place: &Place) -> bool {
        self.surface != place.surface
    }

    /// Time to be over `place` by the seek model.
    #[inline]
    pub(crate) fn move_ns(&self, disk: &Disk, place: &Place, direction: Direction) -> u64 {
        disk.mechanics.move_ns(self.distance(place), self.changes_surface(place), direction)
    }

    #[inline]
    pub(crate) fn settle_on(&mut self, place: &Place) {
        self.radial_track = place.radial_track;
        self.surface = place.surface;
    }

    /// The last sector of `extent` has passed.
    #[inline]
    pub(crate) fn finish(&mut self, extent: Extent) {
        self.next = Some(extent.end());
    }

    /// Whether a transfer from `place` would go on where the last one ended.
    #[inline]
    pub(crate) fn continues_at(&self, place: &Place) -> bool {
        self.next == Some(place.pba())
    }

    /// Whether `extent` goes on where the last transfer ended.
    #[inline]
    pub(crate) fn continues(&self, extent: Extent) -> bool {
        self.next == Some(extent.start)
    }
}

/// The rotation models, each with what it remembers.
#[derive(Clone, Copy, Debug)]
enum Accounting {
    Exact,
    Half(Half),
    None,
}

/// The arm with its heads over a disk.
#[derive(Clone, Debug)]
pub struct Actuator {
    disk: SharedDisk,
    head: Head,
    accounting: Accounting,
    log: Option<HeadLog>,
}

impl Actuator {
    /// An actuator at the outermost track (radial position 0) on surface 0.
    pub fn new(disk: SharedDisk) -> Actuator {
        let accounting = match disk.mechanics.rotation() {
            Rotation::Exact => Accounting::Exact,
            Rotation::Half => Accounting::Half(Half::default()),
            Rotation::None => Accounting::None,
        };
        Actuator { disk, head: Head { radial_track: 0, surface: 0, next: None }, accounting, log: None }
    }

    /// The same, recording where its head is in `log`.
    pub fn with_log(disk: SharedDisk, log: HeadLog) -> Actuator {
        Actuator { log: Some(log), ..Actuator::new(disk) }
    }

    /// Performs `access`, beginning at `now`, and says how long it took.
    #[inline]
    pub fn access(&mut self, now: SimTime, access: &Access) -> AccessTime {
        debug_assert!(!access.extent.is_empty(), "an access touches a sector");
        let (disk, head, log) = (&*self.disk, &mut self.head, self.log.as_mut());
        match &mut self.accounting {
            Accounting::Exact => exact::access(disk, head, now, access, log),
            Accounting::Half(half) => half.access(disk, head, now, access, log),
            Accounting::None => none::access(disk, head, now, access, log),
        }
    }

    /// What reaching `target` would take from here, beginning at `now`, without going there: for schedulers.
    #[inline]
    pub fn positioning_time(&self, now: SimTime, target: &Place, direction: Direction) -> SimDuration {
        SimDuration(match &self.accounting {
            Accounting::Exact => exact::positioning_ns(&self.disk, &self.head, now, target, direction),
            Accounting::Half(half) => half.positioning_ns(&self.disk, &self.head, now, target, direction),
            Accounting::None => none::seek_ns(&self.disk, &self.head, target, direction),
        })
    }

    /// Radial position of the head: tracks from the outermost.
    pub fn radial_track(&self) -> u32 {
        self.head.radial_track
    }

    /// The surface of the head in use.
    pub fn surface(&self) -> u8 {
        self.head.surface
    }

    /// The recorded path of the head, if it was asked for.
    pub fn head_log(&self) -> Option<&HeadLog> {
        self.log.as_ref()
    }

    /// Begins a new path of the head, of at most `samples_max` samples; what was recorded before is forgotten.
    pub fn restart_log(&mut self, samples_max: usize) {
        match &mut self.log {
            Some(log) => log.restart(),
            None => self.log = Some(HeadLog::new(samples_max)),
        }
    }

    /// The disk it moves over.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Told that a new host operation begins: resets what `half` remembers of the operation in hand.
    pub fn begin_operation(&mut self) {
        if let Accounting::Half(half) = &mut self.accounting {
            half.begin_operation();
        }
    }
}
