//! The moving part of a drive: an actuator that performs accesses one after the other, and keeps the position of its
//! head.
//!
//! Invariants:
//! 1. Seek, rotation and transfer of an access add up to the time that the access took. (The engine counts the fourth
//!    part of a service, the controller's overhead.)
//! 2. Equal accesses from equal states at equal times take equal times: there is no randomness and no floating-point
//!    clock.

mod pass;
mod recent;
#[cfg(test)]
mod tests;

pub use pass::{Pass, Passing};

use self::recent::Recent;
use crate::access::{Access, AccessTime};
use crate::geometry::TrackPiece;
use crate::head::Head;
use crate::head_log::HeadLog;
use crate::mechanics::half::Half;
use crate::mechanics::{Rotation, exact, none};
use crate::units::{SimDuration, SimTime};
use crate::{Direction, Disk, Place, SharedDisk};

/// The rotation model of the disk, with the state that it keeps between accesses.
#[derive(Clone, Copy, Debug)]
enum Accounting {
    Exact,
    Half(Half),
    None,
}

/// The arm of a drive with all its heads: its position, and the time of each access from there.
#[derive(Clone, Debug)]
pub struct Actuator {
    disk: SharedDisk,
    head: Head,
    accounting: Accounting,
    log: Option<HeadLog>,
    recent: Recent,
}

impl Actuator {
    /// Returns an actuator at the outermost track (radial position 0) of surface 0.
    pub fn new(disk: SharedDisk) -> Actuator {
        let accounting = match disk.mechanics.rotation() {
            Rotation::Exact => Accounting::Exact,
            Rotation::Half => Accounting::Half(Half::default()),
            Rotation::None => Accounting::None,
        };
        Actuator { disk, head: Head::START, accounting, log: None, recent: Recent::default() }
    }

    /// Returns an actuator like [`Actuator::new`] that also records the positions of its head in `log`.
    pub fn with_log(disk: SharedDisk, log: HeadLog) -> Actuator {
        Actuator { log: Some(log), ..Actuator::new(disk) }
    }

    /// Performs `access`, beginning at `now`, and returns how long it took.
    ///
    /// # Panics
    ///
    /// Panics if the access is empty or reaches past the end of the disk: then the plan that contains it is wrong.
    #[inline]
    pub fn access(&mut self, now: SimTime, access: &Access) -> AccessTime {
        assert!(!access.extent.is_empty(), "an access touches a sector: {access:?}");
        let sectors = self.disk.geometry.sectors();
        assert!(access.extent.end().0 <= sectors.0, "an access lies on the disk of {} sectors: {access:?}", sectors.0);
        let (disk, head, log) = (&*self.disk, &mut self.head, self.log.as_mut());
        match &mut self.accounting {
            Accounting::Exact => {
                let first = self.recent.piece(&disk.geometry, access.extent);
                exact::access(disk, head, now, access, first, log)
            }
            Accounting::Half(half) => half.access(disk, head, now, access, log),
            Accounting::None => none::access(disk, head, now, access, log),
        }
    }

    /// Returns the seek and rotation time to `target` from the head's position, beginning at `now`, without moving the
    /// head. Schedulers use it.
    #[inline]
    pub fn positioning_time(&self, now: SimTime, target: &Place, direction: Direction) -> SimDuration {
        SimDuration(match &self.accounting {
            Accounting::Exact => exact::positioning_ns(&self.disk, &self.head, now, target, direction),
            Accounting::Half(half) => half.positioning_ns(&self.disk, &self.head, now, target, direction),
            Accounting::None => none::seek_ns(&self.disk, &self.head, target, direction),
        })
    }

    /// Returns the radial position of the head: its track, counted from the outermost.
    pub fn radial_track(&self) -> u32 {
        self.head.radial_track()
    }

    /// Returns the surface of the head in use.
    pub fn surface(&self) -> u8 {
        self.head.surface()
    }

    /// Returns the recorded path of the head, or `None` if no path is recorded.
    pub fn head_log(&self) -> Option<&HeadLog> {
        self.log.as_ref()
    }

    /// Discards the recorded path of the head, if any, and starts to record a new one. A log that did not exist before
    /// keeps at most `samples_max` samples; an existing log keeps its own limit.
    pub fn restart_log(&mut self, samples_max: usize) {
        match &mut self.log {
            Some(log) => log.restart(),
            None => self.log = Some(HeadLog::new(samples_max)),
        }
    }

    /// Returns the disk that the actuator serves.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Announces the piece that the next host operation is likely to access first. The caller has located it already,
    /// so the operation need not locate it again.
    #[inline]
    pub fn expect(&mut self, piece: TrackPiece) {
        self.recent.expect(piece);
    }

    /// Announces that a new host operation begins, and resets the state that belongs to the operation before.
    pub fn begin_operation(&mut self) {
        self.recent.begin();
        if let Accounting::Half(half) = &mut self.accounting {
            half.begin_operation();
        }
    }
}
