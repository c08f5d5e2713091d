//! An access track by track, for a controller that moves data while sectors pass: it gives the time at which each
//! sector has passed, and lets the caller decide between tracks.
//!
//! Invariants:
//! 1. A pass takes as long as [`Actuator::access`] for the same sectors of one track, unless the pass takes sectors on
//!    arrival.
//! 2. The number of sectors that have passed by a time never falls as time goes on.

use crate::Direction;
use crate::actuator::Actuator;
use crate::geometry::TrackPiece;
use crate::mechanics::{Rotation, exact};
use crate::units::{Extent, SimDuration, SimTime};

/// A request to move the head over sectors, track by track: the sectors, and the way in which they may be transferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing {
    /// Whether the sectors are read or written.
    pub direction: Direction,
    /// The sectors still to be transferred. A pass covers the first of them and those that follow it without a gap on
    /// its track.
    pub extent: Extent,
    /// Whether the transfer may begin with any sector that arrives under the head, so that one rotation is always
    /// enough (zero latency). Otherwise it begins with the first sector.
    pub on_arrival: bool,
    /// Minimum time of the move to the track, for a controller that is busy meanwhile. A shorter move takes this time.
    pub seek_min: SimDuration,
}

/// The times of sectors of one track that pass under the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    /// The sectors that pass: a part of one track.
    pub piece: TrackPiece,
    /// The time at which the head has reached the track and settled.
    pub on_track: SimTime,
    /// The time at which the first sector of the piece begins to pass, after the head has settled. A transfer that may
    /// begin with any sector may have begun before.
    pub begins: SimTime,
    /// The time at which all sectors of the piece have been transferred.
    pub ends: SimTime,
}

impl Pass {
    /// Returns the time at which the first `sectors` sectors of the piece have passed; that of all if the piece has
    /// fewer.
    pub fn passed_at(&self, sectors: u64) -> SimTime {
        let ns = self.piece.transfer_ns as u64 * sectors.min(self.piece.sectors as u64) / self.piece.sectors as u64;
        (self.begins + SimDuration(ns)).min(self.ends)
    }

    /// Returns the number of sectors of the piece, counted from its first, that have passed completely at `time`.
    pub fn passed_by(&self, time: SimTime) -> u64 {
        let all = self.piece.sectors as u64;
        if time >= self.ends {
            return all;
        }
        let since = time.since(self.begins).0;
        let mut count = (since * all / (self.piece.transfer_ns as u64).max(1)).min(all);
        while count < all && self.passed_at(count + 1) <= time {
            count += 1;
        }
        count
    }

    /// Returns a copy of this pass that begins and ends later by `by`; the head reaches the track at the same time.
    pub fn later(&self, by: SimDuration) -> Pass {
        Pass { begins: self.begins + by, ends: self.ends + by, ..*self }
    }
}

impl Actuator {
    /// Moves the head, from `now` on, over the first sectors of `passing` that lie on one track without a gap, and
    /// returns the times of their pass. The caller calls again for the rest.
    ///
    /// # Panics
    ///
    /// Panics unless the disk has the `exact` rotation model, and if the first sector is not on the disk.
    pub fn pass(&mut self, now: SimTime, passing: &Passing) -> Pass {
        let disk = &*self.disk;
        assert!(disk.mechanics.rotation() == Rotation::Exact, "sectors pass one by one only where rotation is exact");
        let piece = disk.geometry.piece(passing.extent.start, passing.extent.sectors);
        let move_ns = self.head.move_ns(disk, &piece.place, passing.direction).max(passing.seek_min.0);
        let on_track = now + SimDuration(move_ns);
        let begins = on_track + SimDuration(exact::wait_ns(&disk.geometry, on_track.0, piece.place.angle_ns));
        self.head.settle_on(&piece.place);
        if let Some(log) = self.log.as_mut() {
            log.record(begins, &piece.place, passing.direction);
        }
        let last = Extent::new(piece.place.pba(), crate::Sectors(piece.sectors as u64));
        self.head.finish(last);
        let mut pass = Pass { piece, on_track, begins, ends: begins + SimDuration(piece.transfer_ns as u64) };
        if passing.on_arrival {
            pass.ends = pass.ends.min(self.ends_on_arrival(&pass));
        }
        pass
    }

    /// Returns when all sectors of `pass` have passed if the transfer begins with the first whole sector that arrives:
    /// one rotation later. Returns the end of the pass if the head arrives while no sector of the piece is passing.
    fn ends_on_arrival(&self, pass: &Pass) -> SimTime {
        let rotation_ns = self.disk.geometry.rotation_ns() as u64;
        let (sectors, transfer_ns) = (pass.piece.sectors as u64, pass.piece.transfer_ns as u64);
        // The piece's first sector also passed one rotation before `begins`: so the head arrives `into_ns` after that.
        let into_ns = rotation_ns.saturating_sub(pass.begins.since(pass.on_track).0);
        if into_ns >= transfer_ns {
            return pass.ends;
        }
        let next = (into_ns * sectors).div_ceil(transfer_ns.max(1));
        let next_ns = transfer_ns * next / sectors;
        pass.on_track + SimDuration(next_ns - into_ns.min(next_ns) + rotation_ns)
    }
}
