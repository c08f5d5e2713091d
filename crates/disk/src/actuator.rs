//! The moving part: an actuator that performs accesses one after the other, and remembers where its head is.
//!
//! Invariants:
//! 1. Seek, rotation and transfer of an access add up to the time it took. (The fourth part of a service, the controller's
//!    overhead, is counted by the engine.)
//! 2. The same accesses from the same state at the same times take the same time: no randomness, no floating clock.

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

/// The arm of a drive with all its heads: where it is, and how long each access takes from there.
#[derive(Clone, Debug)]
pub struct Actuator {
    disk: SharedDisk,
    head: Head,
    accounting: Accounting,
    log: Option<HeadLog>,
    recent: Recent,
}

impl Actuator {
    /// An actuator at the outermost track (radial position 0) on surface 0.
    pub fn new(disk: SharedDisk) -> Actuator {
        let accounting = match disk.mechanics.rotation() {
            Rotation::Exact => Accounting::Exact,
            Rotation::Half => Accounting::Half(Half::default()),
            Rotation::None => Accounting::None,
        };
        Actuator { disk, head: Head::START, accounting, log: None, recent: Recent::default() }
    }

    /// The same, recording where its head is in `log`.
    pub fn with_log(disk: SharedDisk, log: HeadLog) -> Actuator {
        Actuator { log: Some(log), ..Actuator::new(disk) }
    }

    /// Performs `access`, beginning at `now`, and says how long it took.
    ///
    /// Panics where the access is empty or reaches past the disk: then the plan that asked for it is wrong.
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
        self.head.radial_track()
    }

    /// The surface of the head in use.
    pub fn surface(&self) -> u8 {
        self.head.surface()
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

    /// Told what the next host operation is likely to access first, by whoever has located it already.
    #[inline]
    pub fn expect(&mut self, piece: TrackPiece) {
        self.recent.expect(piece);
    }

    /// Told that a new host operation begins: resets what is remembered of the current operation.
    pub fn begin_operation(&mut self) {
        self.recent.begin();
        if let Accounting::Half(half) = &mut self.accounting {
            half.begin_operation();
        }
    }
}
