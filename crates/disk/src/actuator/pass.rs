//! An access track by track, for a controller that moves data while sectors pass: it says when each sector has passed, and
//! lets the caller decide between tracks.
//!
//! Invariants:
//! 1. A pass takes what [`Actuator::access`] takes for the same sectors of one track, unless it takes them on arrival.
//! 2. What has passed by a time never falls as time goes on.

use crate::Direction;
use crate::actuator::Actuator;
use crate::geometry::TrackPiece;
use crate::mechanics::{Rotation, exact};
use crate::units::{Extent, SimDuration, SimTime};

/// Sectors that are to pass under the head, and how they may be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing {
    /// Read or write.
    pub direction: Direction,
    /// The sectors; those on one track with the first, without a gap, pass now.
    pub extent: Extent,
    /// Whether the transfer may begin with whichever sector comes first, so that one rotation is always enough (zero latency).
    pub on_arrival: bool,
    /// The least time that the arm takes to get there, for a controller that is busy with something else meanwhile.
    pub seek_min: SimDuration,
}

/// Sectors of one track passing under the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    /// The part of the track that passes.
    pub piece: TrackPiece,
    /// The time at which the head is on the track.
    pub on_track: SimTime,
    /// The time at which the first sector begins to pass.
    pub begins: SimTime,
    /// The time at which all have passed.
    pub ends: SimTime,
}

impl Pass {
    /// When the first `sectors` of them have passed.
    pub fn passed_at(&self, sectors: u64) -> SimTime {
        let ns = self.piece.transfer_ns as u64 * sectors.min(self.piece.sectors as u64) / self.piece.sectors as u64;
        (self.begins + SimDuration(ns)).min(self.ends)
    }

    /// How many of the first have passed at `time`.
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

    /// The same sectors, passing so much later.
    pub fn later(&self, by: SimDuration) -> Pass {
        Pass { begins: self.begins + by, ends: self.ends + by, ..*self }
    }
}

impl Actuator {
    /// Brings the head over the first sectors of `passing`, beginning at `now`, and says when they pass. Only with the
    /// `exact` rotation model.
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

    /// When the sectors have passed if they are taken from the first whole one that comes: a rotation later.
    fn ends_on_arrival(&self, pass: &Pass) -> SimTime {
        let rotation_ns = self.disk.geometry.rotation_ns() as u64;
        let (sectors, transfer_ns) = (pass.piece.sectors as u64, pass.piece.transfer_ns as u64);
        // One rotation before it began, sector 0 began to pass: how far into the piece is the head as it arrives?
        let into_ns = rotation_ns.saturating_sub(pass.begins.since(pass.on_track).0);
        if into_ns >= transfer_ns {
            return pass.ends;
        }
        let next = (into_ns * sectors).div_ceil(transfer_ns.max(1));
        let next_ns = transfer_ns * next / sectors;
        pass.on_track + SimDuration(next_ns - into_ns.min(next_ns) + rotation_ns)
    }
}
