//! The `none` rotation model: an access takes its seek and its transfer, as in Cassuto 2010 §III.B. An access that
//! continues where the last one ended needs no seek, and track switches within an access are free.
//!
//! Invariants:
//! 1. No access waits for rotation.

use crate::access::{Access, AccessTime};
use crate::geometry::Place;
use crate::head::Head;
use crate::head_log::HeadLog;
use crate::units::{Sectors, SimDuration, SimTime};
use crate::{Direction, Disk};

/// Performs an access from `now` on and returns its time.
#[inline]
pub(crate) fn access(
    disk: &Disk,
    head: &mut Head,
    now: SimTime,
    access: &Access,
    log: Option<&mut HeadLog>,
) -> AccessTime {
    let geometry = &disk.geometry;
    let extent = access.extent;
    let first = geometry.piece(extent.start, extent.sectors);
    let seek_ns = seek_ns(disk, head, &first.place, access.direction);
    let transfer_ns = match disk.mechanics.transfer_at_rate(extent.sectors, disk.sector_bytes) {
        Some(transfer_ns) => transfer_ns,
        None if first.sectors as u64 == extent.sectors.0 => first.transfer_ns as u64,
        None => geometry.tracks(extent).map(|piece| piece.transfer_ns as u64).sum(),
    };
    if let Some(log) = log {
        log.record(SimTime(now.0 + seek_ns), &first.place, access.direction);
    }
    if first.sectors as u64 == extent.sectors.0 {
        head.settle_on(&first.place);
    } else {
        head.settle_on(&geometry.locate(extent.end() - Sectors(1)));
    }
    head.finish(extent);
    AccessTime { seek: SimDuration(seek_ns), rotation: SimDuration::ZERO, transfer: SimDuration(transfer_ns) }
}

/// Returns the time until the head is over the track of `target`, in nanoseconds.
#[inline]
pub(crate) fn seek_ns(disk: &Disk, head: &Head, target: &Place, direction: Direction) -> u64 {
    if head.continues_at(target) { 0 } else { head.move_ns(disk, target, direction) }
}
