//! Shortest positioning time first: chooses the command that the head can begin soonest, by the sum of seek and
//! rotation. A command that has waited longer than the age limit goes first.
//!
//! Invariants:
//! 1. No command waits longer than the age limit plus the service times of the commands that exceeded the limit before
//!    it.

use imbrex_disk::{Actuator, Direction, Operation, SimDuration, SimTime};

use crate::queue::{Queue, Slot, Waiting};

/// The scheduler "shortest positioning time first". A command that has waited longer than the age limit is served
/// first.
#[derive(Clone, Debug)]
pub struct Sptf {
    age_limit: SimDuration,
}

impl Sptf {
    /// Creates the scheduler. The oldest command is served first once it has waited longer than `age_limit`; zero means
    /// no limit.
    pub fn new(age_limit: SimDuration) -> Sptf {
        Sptf { age_limit: if age_limit.is_zero() { SimDuration(u64::MAX) } else { age_limit } }
    }

    /// Returns the command in the drive that can begin soonest at `now`, by seek and rotational wait; the oldest of
    /// equal ones. Returns the oldest command instead if it has waited longer than the age limit. A command without a
    /// known place can begin at once. Returns `None` if no command is in the drive.
    pub fn choose(&mut self, queue: &Queue, actuator: &Actuator, now: SimTime) -> Option<Slot> {
        let oldest = queue.oldest()?;
        if now.since(queue.get(oldest).entry) > self.age_limit {
            return Some(oldest);
        }
        queue.soonest(actuator, now).or_else(|| {
            let mut search = Search { best: SimDuration(u64::MAX), slot: oldest, too_far: u32::MAX };
            queue.in_drive().for_each(|slot| search.see(slot, queue.get(slot), actuator, now));
            Some(search.slot)
        })
    }
}

/// The best command so far.
struct Search {
    best: SimDuration,
    slot: Slot,
    /// Distance from which on the seek alone takes longer than the best command.
    too_far: u32,
}

/// Distance up to which the `half` rotation model charges no seek, so that the seek time is no lower bound.
const FREE_TRACKS: u32 = 2;

impl Search {
    fn see(&mut self, slot: Slot, waiting: &Waiting, actuator: &Actuator, now: SimTime) {
        let (Some(target), Operation::Read | Operation::Write) = (&waiting.target, waiting.command.operation) else {
            return self.offer(slot, SimDuration::ZERO);
        };
        let place = &target.place;
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
        self.offer(slot, actuator.positioning_time(now, place, direction));
    }

    fn offer(&mut self, slot: Slot, time: SimDuration) {
        if time < self.best {
            (self.best, self.slot) = (time, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a command that the search skips is never the soonest. Method: random queues, compared with a plain
    //! minimum.

    use super::*;
    use imbrex_disk::{Command, Pba, Profile, Sectors};
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
            for ((place, is_read), index) in picks.into_iter().zip(0..) {
                let target = disk.geometry.piece(Pba(place % sectors), Sectors(1));
                let direction = if is_read { Direction::Read } else { Direction::Write };
                let command = if is_read { Command::read(0, 1) } else { Command::write(0, 1) };
                let time = actuator.positioning_time(now, &target.place, direction);
                if time < soonest.0 {
                    soonest = (time, index);
                }
                queue.push(Waiting {
                    command, arrival: None, due: now, entry: now, sequence: index, cleaning_before: SimDuration::ZERO,
                    target: Some(target),
                });
            }
            let chosen = Sptf::new(SimDuration::ZERO).choose(&queue, &actuator, now);
            prop_assert_eq!(chosen.map(|slot| queue.get(slot).sequence), Some(soonest.1));
        }
    }
}
