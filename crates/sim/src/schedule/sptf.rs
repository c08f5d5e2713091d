//! Shortest positioning time first: the command that the head can begin soonest, seek and rotation together; one that
//! has waited longer than the age limit goes first.
//!
//! Invariants:
//! 1. No command waits longer than the age limit plus the service of those that were over it before.

use imbrex_disk::{Actuator, Direction, Operation, SimDuration, SimTime};

use crate::queue::{Queue, Waiting};

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
        if let Some(index) = queue.soonest(actuator, now) {
            return index;
        }
        let mut search = Search { best: SimDuration(u64::MAX), index: 0, too_far: u32::MAX };
        for (index, waiting) in queue.in_drive().enumerate() {
            search.see(index, waiting, actuator, now);
        }
        search.index
    }
}

/// The soonest so far.
struct Search {
    best: SimDuration,
    index: usize,
    /// From this distance on, the seek alone takes longer than the best.
    too_far: u32,
}

/// Up to here the accounting by half rotations charges no seek, so the seek is no lower bound.
const FREE_TRACKS: u32 = 2;

impl Search {
    fn see(&mut self, index: usize, waiting: &Waiting, actuator: &Actuator, now: SimTime) {
        let (Some(place), Operation::Read | Operation::Write) = (&waiting.target, waiting.command.operation) else {
            return self.offer(index, SimDuration::ZERO);
        };
        let distance = place.radial_track.abs_diff(actuator.radial_track());
        if distance >= self.too_far {
            return;
        }
        if distance > FREE_TRACKS && actuator.disk().mechanics.seek(distance) >= self.best {
            self.too_far = distance;
            return;
        }
        let is_read = waiting.command.operation == Operation::Read;
        let direction = if is_read { Direction::Read } else { Direction::Write };
        self.offer(index, actuator.positioning_time(now, place, direction));
    }

    fn offer(&mut self, index: usize, time: SimDuration) {
        if time < self.best {
            (self.best, self.index) = (time, index);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: what the search skips is never the soonest. Method: random queues, against a plain minimum.

    use super::*;
    use imbrex_disk::{Command, Pba, Profile};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn skips_nothing_that_a_plain_minimum_would_choose(
            picks in prop::collection::vec((0u64..7_000_000_000, any::<bool>()), 1..64),
            now in 0u64..20_000_000,
            keeps_targets in any::<bool>(),
            name in prop::sample::select(vec!["cmr-7200", "cassuto-307g"]),
        ) {
            let disk = Profile::named(name).expect("it is built in").disk();
            let sectors = disk.geometry.sectors().0;
            let actuator = Actuator::new(disk.clone());
            let now = SimTime(now);
            let mut queue = Queue::new(64);
            if keeps_targets {
                queue.keep_targets(&disk);
            }
            let mut soonest = (SimDuration(u64::MAX), 0);
            for (index, (place, is_read)) in picks.into_iter().enumerate() {
                let place = disk.geometry.locate(Pba(place % sectors));
                let direction = if is_read { Direction::Read } else { Direction::Write };
                let command = if is_read { Command::read(0, 1) } else { Command::write(0, 1) };
                let time = actuator.positioning_time(now, &place, direction);
                if time < soonest.0 {
                    soonest = (time, index);
                }
                queue.push(Waiting {
                    command, arrival: None, entry: now, sequence: 0, cleaning_before: SimDuration::ZERO,
                    target: Some(place),
                });
            }
            let chosen = Sptf::new(SimDuration::ZERO).choose(&queue, &actuator, now);
            prop_assert_eq!(chosen, soonest.1);
        }
    }
}
