//! The elevator: serves the nearest command in the direction of travel, and turns if no command lies ahead (LOOK: like
//! SCAN, but without the run to the last track).
//!
//! Invariants:
//! 1. Between two turns every waiting command that lies ahead is passed and served at most once, so none starves.

use imbrex_disk::Actuator;

use crate::queue::{Queue, Slot};

/// The elevator scheduler (LOOK), with its state: the direction of travel.
#[derive(Clone, Debug)]
pub struct Elevator {
    inward: bool,
}

impl Elevator {
    /// Creates an elevator that first travels inward, to higher track numbers.
    pub fn new() -> Elevator {
        Elevator { inward: true }
    }

    /// Returns the command in the drive whose track is nearest ahead of the head, or at it; the oldest of equally near
    /// ones. If there is none, turns and searches in the other direction. Commands without a known place count as at
    /// the head. Returns `None` if no command is in the drive.
    pub fn choose(&mut self, queue: &Queue, actuator: &Actuator) -> Option<Slot> {
        let head = actuator.radial_track();
        nearest_ahead(queue, head, self.inward).or_else(|| {
            self.inward = !self.inward;
            nearest_ahead(queue, head, self.inward)
        })
    }
}

/// Returns the nearest command ahead of the head; the oldest of equally near ones.
fn nearest_ahead(queue: &Queue, head: u32, inward: bool) -> Option<Slot> {
    let ahead = queue.in_drive().filter_map(|slot| {
        let track = queue.get(slot).target.map_or(head, |target| target.place.radial_track);
        let distance = if inward { track.checked_sub(head) } else { head.checked_sub(track) };
        distance.map(|distance| (distance, slot))
    });
    ahead.min_by_key(|(distance, _)| *distance).map(|(_, slot)| slot)
}
