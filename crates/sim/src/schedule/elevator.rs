//! The elevator: serves what lies nearest in the direction of travel, and turns where nothing lies ahead (SCAN without
//! the run to the last track, "LOOK").
//!
//! Invariants:
//! 1. Between two turns every waiting command that lies ahead is passed and served at most once, so none starves.

use imbrex_disk::Actuator;

use crate::queue::Queue;

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
    pub fn choose(&mut self, queue: &Queue, actuator: &Actuator) -> usize {
        let head = actuator.radial_track();
        if let Some(index) = nearest_ahead(queue, head, self.inward) {
            return index;
        }
        self.inward = !self.inward;
        nearest_ahead(queue, head, self.inward).unwrap_or(0)
    }
}

fn nearest_ahead(queue: &Queue, head: u32, inward: bool) -> Option<usize> {
    let ahead = queue.in_drive().enumerate().filter_map(|(index, waiting)| {
        let track = waiting.target.map_or(head, |place| place.radial_track);
        let distance = if inward { track.checked_sub(head) } else { head.checked_sub(track) };
        distance.map(|distance| (distance, index))
    });
    ahead.min().map(|(_, index)| index)
}
