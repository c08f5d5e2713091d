//! The `exact` rotation model: the platter has an angle at every nanosecond, which is the clock modulo a rotation.
//! Missed rotations and waits for a part of a track follow from this without further rules.
//!
//! Invariants:
//! 1. A transfer begins when the angle of its first sector passes, and ends when its last sector has passed. Only an
//!    access of whole tracks on a zero-latency drive begins at once.
//! 2. An access that continues over a track or head switch waits for the part of the skew that the switch leaves. So a
//!    rotation is lost only if the skew is shorter than the switch.

use crate::access::{Access, AccessTime};
use crate::geometry::{Geometry, Place, TrackPiece};
use crate::head::Head;
use crate::head_log::HeadLog;
use crate::units::{SimDuration, SimTime};
use crate::{Direction, Disk};

/// Performs an access from `now` on and returns its time. `piece` is the first piece of the access.
#[inline]
pub(crate) fn access(
    disk: &Disk,
    head: &mut Head,
    now: SimTime,
    access: &Access,
    mut piece: TrackPiece,
    mut log: Option<&mut HeadLog>,
) -> AccessTime {
    let geometry = &disk.geometry;
    let mut tracks = geometry.tracks(access.extent);
    tracks.pass_over(&piece);
    let starts_anywhere = disk.mechanics.zero_latency() && geometry.is_whole_tracks(access.extent, &piece);
    let mut time = AccessTime::default();
    let mut clock_ns = now.0;
    loop {
        let move_ns = head.move_ns(disk, &piece.place, access.direction);
        clock_ns += move_ns;
        let wait_ns = if starts_anywhere { 0 } else { wait_ns(geometry, clock_ns, piece.place.angle_ns) };
        clock_ns += wait_ns;
        head.settle_on(&piece.place);
        if let Some(log) = log.as_deref_mut() {
            log.record(SimTime(clock_ns), &piece.place, access.direction);
        }
        clock_ns += piece.transfer_ns as u64;
        time.seek += SimDuration(move_ns);
        time.rotation += SimDuration(wait_ns);
        time.transfer += SimDuration(piece.transfer_ns as u64);
        match tracks.next() {
            Some(next) => piece = next,
            None => break,
        }
    }
    head.finish(access.extent);
    time
}

/// Returns the time until the head is over the track of `target` and `target` passes under the head, in nanoseconds.
#[inline]
pub(crate) fn positioning_ns(disk: &Disk, head: &Head, now: SimTime, target: &Place, direction: Direction) -> u64 {
    let move_ns = head.move_ns(disk, target, direction);
    move_ns + wait_ns(&disk.geometry, now.0 + move_ns, target.angle_ns)
}

/// Returns the time from `clock_ns` until `angle_ns` passes the head, in nanoseconds.
#[inline]
pub(crate) fn wait_ns(geometry: &Geometry, clock_ns: u64, angle_ns: u32) -> u64 {
    let rotation = geometry.rotation_divider();
    let (angle_ns, phase_ns) = (angle_ns as u64, rotation.remainder(clock_ns));
    if angle_ns >= phase_ns { angle_ns - phase_ns } else { angle_ns + rotation.divisor() - phase_ns }
}
