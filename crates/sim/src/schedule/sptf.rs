//! Shortest positioning time first: the command that the head can begin soonest, seek and rotation together; one that
//! has waited longer than the age limit goes first.
//!
//! Invariants:
//! 1. No command waits longer than the age limit plus the service of those that were over it before.

use imbrex_disk::{Actuator, Direction, Operation, SimDuration, SimTime};

use crate::queue::Queue;

/// The age limit.
#[derive(Clone, Debug)]
pub struct Sptf {
    age_limit: SimDuration,
}

impl Sptf {
    /// With this age limit; zero is none.
    pub fn new(age_limit: SimDuration) -> Sptf {
        Sptf { age_limit: if age_limit.is_zero() { SimDuration(u64::MAX) } else { age_limit } }
    }

    /// The soonest, or the oldest if it is over age. Ties go to the older.
    pub fn choose(&mut self, queue: &Queue, actuator: &Actuator, now: SimTime) -> usize {
        let over_age = queue.oldest().is_some_and(|oldest| now.since(oldest.entry) > self.age_limit);
        if over_age {
            return 0;
        }
        let mut best = (SimDuration(u64::MAX), 0);
        for (index, waiting) in queue.iter().enumerate() {
            let time = match (&waiting.target, waiting.command.operation) {
                (None, _) | (_, Operation::Flush | Operation::Trim) => SimDuration::ZERO,
                (Some(place), Operation::Read) => actuator.positioning_time(now, place, Direction::Read),
                (Some(place), Operation::Write) => actuator.positioning_time(now, place, Direction::Write),
            };
            if time < best.0 {
                best = (time, index);
            }
        }
        best.1
    }
}
