//! Schedulers: which waiting command is served next. One file each, one line in [`Schedule::named`].

mod elevator;
mod fifo;
mod sptf;

use imbrex_disk::{Actuator, SimDuration, SimTime};

use crate::queue::{Queue, Slot};

/// A scheduler.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// First in, first out.
    Fifo,
    /// The nearest in the direction of travel; turns where nothing lies ahead.
    Elevator(elevator::Elevator),
    /// Shortest positioning time first, with an age limit.
    Sptf(sptf::Sptf),
}

impl Schedule {
    /// Names a user can give.
    pub const NAMES: [&'static str; 3] = ["fifo", "elevator", "sptf"];

    /// The scheduler called `name`; one that passes commands over does so no longer than `age_limit` (zero: for ever).
    pub fn named(name: &str, age_limit: SimDuration) -> Option<Schedule> {
        match name {
            "fifo" => Some(Schedule::Fifo),
            "elevator" => Some(Schedule::Elevator(elevator::Elevator::new())),
            "sptf" => Some(Schedule::Sptf(sptf::Sptf::new(age_limit))),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Schedule::Fifo => "fifo",
            Schedule::Elevator(_) => "elevator",
            Schedule::Sptf(_) => "sptf",
        }
    }

    /// Whether it asks where commands lie.
    pub fn needs_targets(&self) -> bool {
        !matches!(self, Schedule::Fifo)
    }

    /// Returns whether a choice depends on earlier choices.
    pub fn is_stateful(&self) -> bool {
        matches!(self, Schedule::Elevator(_))
    }

    /// The command to serve next at `now`; none of an empty queue.
    pub fn choose(&mut self, queue: &Queue, actuator: &Actuator, now: SimTime) -> Option<Slot> {
        let chosen = match self {
            Schedule::Fifo => fifo::choose(queue),
            Schedule::Elevator(elevator) => elevator.choose(queue, actuator),
            Schedule::Sptf(sptf) => sptf.choose(queue, actuator, now),
        };
        if chosen == queue.oldest() { chosen } else { chosen.map(|chosen| queue.hazard(chosen)) }
    }
}
