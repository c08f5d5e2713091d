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

/// The arm of a drive with all its heads: keeps their position, and computes the time of each access from there.
#[derive(Clone, Debug)]
pub struct Actuator {
    disk: SharedDisk,
    head: Head,
    accounting: Accounting,
    log: Option<HeadLog>,
    recent: Recent,
}

impl Actuator {
    /// Returns an actuator at the outermost track (radial position 0) of surface 0, which records no head positions.
    pub fn new(disk: SharedDisk) -> Actuator {
        let accounting = match disk.mechanics.rotation() {
            Rotation::Exact => Accounting::Exact,
            Rotation::Half => Accounting::Half(Half::default()),
            Rotation::None => Accounting::None,
        };
        Actuator { disk, head: Head::START, accounting, log: None, recent: Recent::default() }
    }

    /// Returns an actuator like [`Actuator::new`] that also records in `log` the position of its head at the beginning
    /// of each transfer. Once `log` is full, it samples fewer transfers.
    pub fn with_log(disk: SharedDisk, log: HeadLog) -> Actuator {
        Actuator { log: Some(log), ..Actuator::new(disk) }
    }

    /// Performs `access` from `now` on: moves the head and returns the time that the access takes, by part.
    ///
    /// # Panics
    ///
    /// Panics if the access is empty or reaches past the end of the disk.
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

    /// Returns the time from `now` until a transfer at `target` could begin: seek, settling and rotational wait from
    /// the head's present position, as far as the rotation model charges them. The head does not move.
    #[inline]
    pub fn positioning_time(&self, now: SimTime, target: &Place, direction: Direction) -> SimDuration {
        SimDuration(match &self.accounting {
            Accounting::Exact => exact::positioning_ns(&self.disk, &self.head, now, target, direction),
            Accounting::Half(half) => half.positioning_ns(&self.disk, &self.head, now, target, direction),
            Accounting::None => none::seek_ns(&self.disk, &self.head, target, direction),
        })
    }

    /// Returns the radial position of the head: its track, counted from 0 at the outer diameter.
    pub fn radial_track(&self) -> u32 {
        self.head.radial_track()
    }

    /// Returns the surface of the head in use, counted from 0.
    pub fn surface(&self) -> u8 {
        self.head.surface()
    }

    /// Returns the recorded positions of the head, or `None` if no log was started.
    pub fn head_log(&self) -> Option<&HeadLog> {
        self.log.as_ref()
    }

    /// Discards the recorded positions of the head, if any, and records anew from now on. If there was no log, the new
    /// one keeps at most `samples_max` samples. An existing log keeps its own limit, and `samples_max` is ignored.
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

    /// Passes the piece that the next host operation is likely to access first, which the caller has located already.
    /// This saves computing time, and never changes a result.
    #[inline]
    pub fn expect(&mut self, piece: TrackPiece) {
        self.recent.expect(piece);
    }

    /// Marks the beginning of a new operation. The head stays; state that belongs to the operation before is reset,
    /// such as the angle that the `half` rotation model remembers.
    pub fn begin_operation(&mut self) {
        self.recent.begin();
        if let Accounting::Half(half) = &mut self.accounting {
            half.begin_operation();
        }
    }
}
