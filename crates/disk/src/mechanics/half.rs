//! The `half` rotation model: the accounting of Hajkazemi 2019 §2 and §3, in which the platter has no angle of its own.
//!
//! - An access elsewhere waits half a rotation (eq. 2). One that continues the last waits none.
//! - A change of at most two tracks costs no seek.
//! - Whole tracks begin at once and cost a rotation each. As much from the middle of a track (the pseudo-tracks of §2.4) waits
//!   half a rotation after a seek, and none without one.
//! - An access at the angle of the current operation, or at the sector after the last one accessed, waits for that angle's
//!   next pass: whole rotations from its last pass. This is what makes the steps of a read-modify-write cost a missed
//!   rotation each, and its first step one too when writes come in sequence.
//! - A trip of less than a track to a backup region and back takes a whole number of rotations, seeks included, and leaves the
//!   head where it was.
//!
//! Invariants:
//! 1. Passes are remembered by angle and time, both of the same access, so that differences of angles are exact.
//! 2. The angle of an operation is forgotten when the next begins; where the last access ended is not.

use crate::access::{Access, AccessTime, Purpose};
use crate::geometry::{Divider, Place, TrackPiece};
use crate::head::Head;
use crate::head_log::HeadLog;
use crate::units::{SimDuration, SimTime};
use crate::{Direction, Disk};

/// Tracks within which a change costs no seek: the way from one neighbour of a bottom track to the other.
const NEAR_TRACKS: u32 = 2;

/// When an angle passed the head.
#[derive(Clone, Copy, Debug)]
struct Pass {
    time_ns: u64,
    angle_ns: u32,
}

impl Pass {
    /// The first time not before `earliest_ns`, and after this pass, at which `angle_ns` passes, if it is this pass's angle
    /// to within `tolerance_ns`.
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

/// What the accounting remembers.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Half {
    /// The angle of the current operation.
    current: Option<Pass>,
    /// Where the last access ended.
    end: Option<Pass>,
    /// Whether the head is on a trip to a backup region whose rotations are paid.
    on_trip: bool,
}

/// What an access covers, as far as waiting goes.
#[derive(Clone, Copy)]
struct Cover {
    /// It goes on where the last one ended.
    continues: bool,
    /// It is made of whole tracks.
    whole_tracks: bool,
    /// It is at least as long as a track.
    long: bool,
}

impl Half {
    /// A new operation begins: the angle of the one before is forgotten.
    pub(crate) fn begin_operation(&mut self) {
        self.current = None;
        self.on_trip = false;
    }

    /// Performs an access from `now` on.
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
        // Whole tracks began anywhere, so they leave no angle behind.
        let end = Pass { time_ns: clock_ns, angle_ns: piece.end_angle_ns(geometry.rotation_ns()) };
        self.end = (!whole_tracks).then_some(end);
        self.current = if long { None } else { start };
        self.on_trip = false;
        time
    }

    /// Move and wait until the head is over a place and the place under the head.
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

    /// When the place next passes, if its angle is known: a neighbouring track's sector that covers the angle may begin up to
    /// a sector away from it, and two such may follow each other.
    #[inline]
    fn next_pass_ns(&self, disk: &Disk, place: &Place, ready_ns: u64) -> Option<u64> {
        let rotation = disk.geometry.rotation_divider();
        let sector_ns = rotation.divisor() / place.track_sectors as u64;
        let current = self.current.and_then(|pass| pass.again(rotation, place.angle_ns, sector_ns, ready_ns));
        current.or_else(|| self.end.and_then(|pass| pass.again(rotation, place.angle_ns, 2 * sector_ns, ready_ns)))
    }

    /// A trip to a backup region and back: the head is back at the operation's angle, so many rotations after its last pass.
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
        // Rotations are counted from the last pass; more than asked for only where the transfer itself takes longer.
        let needed = rotation.quotient(passed_ns + transfer_ns + rotation.divisor() - 1);
        let rotations = needed.max(disk.mechanics.backup_trip_rotations() as u64);
        let wait_ns = rotations * rotation.divisor() - passed_ns - transfer_ns;
        AccessTime { seek: SimDuration::ZERO, rotation: SimDuration(wait_ns), transfer: SimDuration(transfer_ns) }
    }

    /// Time until the head is over `target` and `target` under the head.
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
