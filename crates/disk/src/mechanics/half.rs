//! The `half` rotation model: the accounting of Hajkazemi 2019 §2 and §3, in which the platter has no angle of its own.
//!
//! - An access elsewhere waits half a rotation (eq. 2). An access that continues the last one does not wait.
//! - A change of at most two tracks needs no seek.
//! - An access of whole tracks begins at once and takes a rotation for each. An access of at least a track's length
//!   from the middle of a track (the pseudo-tracks of §2.4) waits half a rotation after a seek, and does not wait
//!   without one.
//! - An access at the angle of the current operation, or at the sector after the last one accessed, waits for the next
//!   pass of that angle: whole rotations from its last pass. So each step of a read-modify-write takes a missed
//!   rotation, and the first step takes one too when writes are sequential.
//! - A trip to a backup region and back, with an access shorter than a track, takes a whole number of rotations, seeks
//!   included. It leaves the head where it was.
//!
//! Invariants:
//! 1. A remembered pass has the angle and the time of one access, so that differences of angles are exact.
//! 2. The angle of an operation is forgotten when the next operation begins; the end of the last access is kept.

use crate::access::{Access, AccessTime, Purpose};
use crate::geometry::{Divider, Place, TrackPiece};
use crate::head::Head;
use crate::head_log::HeadLog;
use crate::units::{SimDuration, SimTime};
use crate::{Direction, Disk};

/// Number of tracks within which a change needs no seek: the way from one neighbour of a bottom track to the other.
const NEAR_TRACKS: u32 = 2;

/// The time at which an angle passed the head.
#[derive(Clone, Copy, Debug)]
struct Pass {
    time_ns: u64,
    angle_ns: u32,
}

impl Pass {
    /// Returns the next time, after this pass and not before `earliest_ns`, at which `angle_ns` passes. Returns `None`
    /// if `angle_ns` differs from the angle of this pass by more than `tolerance_ns`.
    fn again(&self, rotation: Divider, angle_ns: u32, tolerance_ns: u64, earliest_ns: u64) -> Option<u64> {
        let rotation_ns = rotation.divisor();
        let later_ns = rotation.remainder(angle_ns as u64 + rotation_ns - self.angle_ns as u64);
        let next_ns = if later_ns <= tolerance_ns {
            self.time_ns + rotation_ns + later_ns
        } else if rotation_ns - later_ns <= tolerance_ns {
            self.time_ns + later_ns
        } else {
            return None;
        };
        let rotations = rotation.quotient(earliest_ns.saturating_sub(next_ns) + rotation_ns - 1);
        Some(next_ns + rotations * rotation_ns)
    }
}

/// State of the rotation model between accesses.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Half {
    /// Pass of the current operation's angle: the start of its last access, if that was shorter than a track.
    current: Option<Pass>,
    /// Pass of the end of the last access; `None` after an access of whole tracks.
    end: Option<Pass>,
    /// Whether the head is on a trip to a backup region whose rotations are already counted.
    on_trip: bool,
}

/// Properties of an access that decide how long it waits.
#[derive(Clone, Copy)]
struct Cover {
    /// Whether the access continues where the last one ended.
    continues: bool,
    /// Whether the access is made of whole tracks.
    whole_tracks: bool,
    /// Whether the access is at least as long as a track.
    long: bool,
}

impl Half {
    /// Begins a new operation: forgets the angle of the operation before.
    pub(crate) fn begin_operation(&mut self) {
        self.current = None;
        self.on_trip = false;
    }

    /// Performs an access from `now` on and returns its time.
    #[inline]
    pub(crate) fn access(
        &mut self,
        disk: &Disk,
        head: &mut Head,
        now: SimTime,
        access: &Access,
        mut log: Option<&mut HeadLog>,
    ) -> AccessTime {
        let geometry = &disk.geometry;
        let first = geometry.piece(access.extent.start, access.extent.sectors);
        let long = access.extent.sectors.0 >= first.place.track_sectors as u64;
        if access.purpose == Purpose::Backup && !long {
            return self.trip(disk, now, access, &first, log);
        }
        let whole_tracks = access.purpose != Purpose::PseudoTrack && geometry.is_whole_tracks(access.extent, &first);
        let mut cover = Cover { continues: head.continues(access.extent), whole_tracks, long };
        let mut tracks = geometry.tracks(access.extent);
        tracks.pass_over(&first);
        let mut time = AccessTime::default();
        let (mut clock_ns, mut piece, mut start) = (now.0, first, None);
        loop {
            let (move_ns, wait_ns) = self.approach(disk, head, clock_ns, &piece.place, access.direction, cover);
            clock_ns += move_ns + wait_ns;
            head.settle_on(&piece.place);
            start.get_or_insert(Pass { time_ns: clock_ns, angle_ns: piece.place.angle_ns });
            if let Some(log) = log.as_deref_mut() {
                log.record(SimTime(clock_ns), &piece.place, access.direction);
            }
            clock_ns += piece.transfer_ns as u64;
            time.seek += SimDuration(move_ns);
            time.rotation += SimDuration(wait_ns);
            time.transfer += SimDuration(piece.transfer_ns as u64);
            cover.continues = true;
            match tracks.next() {
                Some(next) => piece = next,
                None => break,
            }
        }
        head.finish(access.extent);
        // Whole tracks may begin at any angle, so their end is at no known angle.
        let end = Pass { time_ns: clock_ns, angle_ns: piece.end_angle_ns(geometry.rotation_ns()) };
        self.end = (!whole_tracks).then_some(end);
        self.current = if long { None } else { start };
        self.on_trip = false;
        time
    }

    /// Returns the time of the move over the track of `place`, and of the wait until `place` is under the head, in
    /// nanoseconds.
    #[inline]
    fn approach(
        &self,
        disk: &Disk,
        head: &Head,
        clock_ns: u64,
        place: &Place,
        direction: Direction,
        cover: Cover,
    ) -> (u64, u64) {
        let half_ns = disk.geometry.rotation_ns() as u64 / 2;
        if head.distance(place) > NEAR_TRACKS {
            let wait_ns = if cover.whole_tracks { 0 } else { half_ns };
            return (head.move_ns(disk, place, direction), wait_ns);
        }
        let move_ns = disk.mechanics.switch_ns(head.changes_surface(place));
        let wait_ns = if cover.continues || cover.long {
            0
        } else {
            let ready_ns = clock_ns + move_ns;
            self.next_pass_ns(disk, place, ready_ns).map_or(half_ns, |pass_ns| pass_ns - ready_ns)
        };
        (move_ns, wait_ns)
    }

    /// Returns when `place` next passes, or `None` if its angle is not known. On a neighbouring track, the sector that
    /// covers the angle may begin up to a sector away from it. This may happen twice in a row, so the end of the last
    /// access has twice the tolerance.
    #[inline]
    fn next_pass_ns(&self, disk: &Disk, place: &Place, ready_ns: u64) -> Option<u64> {
        let rotation = disk.geometry.rotation_divider();
        let sector_ns = rotation.divisor() / place.track_sectors as u64;
        let current = self.current.and_then(|pass| pass.again(rotation, place.angle_ns, sector_ns, ready_ns));
        current.or_else(|| self.end.and_then(|pass| pass.again(rotation, place.angle_ns, 2 * sector_ns, ready_ns)))
    }

    /// Performs a trip to a backup region and back, and returns its time. At its end the head is at the operation's
    /// angle again, a whole number of rotations after the last pass. Further accesses of the same trip take no time.
    fn trip(
        &mut self,
        disk: &Disk,
        now: SimTime,
        access: &Access,
        first: &TrackPiece,
        log: Option<&mut HeadLog>,
    ) -> AccessTime {
        if let Some(log) = log {
            log.record(now, &first.place, access.direction);
        }
        if self.on_trip {
            return AccessTime::default();
        }
        self.on_trip = true;
        let transfer_ns: u64 = disk.geometry.tracks(access.extent).map(|piece| piece.transfer_ns as u64).sum();
        let rotation = disk.geometry.rotation_divider();
        let passed_ns = self.current.map_or(0, |pass| rotation.remainder(now.0.saturating_sub(pass.time_ns)));
        // Rotations are counted from the last pass. They exceed the configured number only if the transfer itself takes
        // longer.
        let needed = rotation.quotient(passed_ns + transfer_ns + rotation.divisor() - 1);
        let rotations = needed.max(disk.mechanics.backup_trip_rotations() as u64);
        let wait_ns = rotations * rotation.divisor() - passed_ns - transfer_ns;
        AccessTime { seek: SimDuration::ZERO, rotation: SimDuration(wait_ns), transfer: SimDuration(transfer_ns) }
    }

    /// Returns the time until the head is over the track of `target` and `target` is under the head, in nanoseconds.
    #[inline]
    pub(crate) fn positioning_ns(
        &self,
        disk: &Disk,
        head: &Head,
        now: SimTime,
        target: &Place,
        direction: Direction,
    ) -> u64 {
        let cover = Cover { continues: head.continues_at(target), whole_tracks: false, long: false };
        let (move_ns, wait_ns) = self.approach(disk, head, now.0, target, direction, cover);
        move_ns + wait_ns
    }
}
