//! The elevator: serves what lies nearest in the direction of travel, and turns where nothing lies ahead (SCAN without
//! the run to the last track, "LOOK").
//!
//! Invariants:
//! 1. Between two turns every waiting command that lies ahead is passed and served at most once, so none starves.

use imbrex_disk::Actuator;

use crate::queue::{Queue, Slot};

/// The direction of travel.
#[derive(Clone, Debug)]
pub struct Elevator {
    inward: bool,
}

impl Elevator {
    /// Travelling inward.
    pub fn new() -> Elevator {
        Elevator { inward: true }
    }

    /// The nearest ahead, or the nearest behind after a turn.
    pub fn choose(&mut self, queue: &Queue, actuator: &Actuator) -> Option<Slot> {
        let head = actuator.radial_track();
        nearest_ahead(queue, head, self.inward).or_else(|| {
            self.inward = !self.inward;
            nearest_ahead(queue, head, self.inward)
        })
    }
}

/// Of equally near ones the oldest.
fn nearest_ahead(queue: &Queue, head: u32, inward: bool) -> Option<Slot> {
    let ahead = queue.in_drive().filter_map(|slot| {
        let track = queue.get(slot).target.map_or(head, |target| target.place.radial_track);
        let distance = if inward { track.checked_sub(head) } else { head.checked_sub(track) };
        distance.map(|distance| (distance, slot))
    });
    ahead.min_by_key(|(distance, _)| *distance).map(|(_, slot)| slot)
}
