//! Schedulers, which choose the next waiting command to serve. There is one file for each, and one line in
//! [`Schedule::named`].

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
    /// The nearest command in the direction of travel; turns if no command lies ahead.
    Elevator(elevator::Elevator),
    /// Shortest positioning time first, with an age limit.
    Sptf(sptf::Sptf),
}

impl Schedule {
    /// Names that a user can give.
    pub const NAMES: [&'static str; 3] = ["fifo", "elevator", "sptf"];

    /// Returns the scheduler called `name`. `age_limit` is the longest time for which `sptf` passes a command over;
    /// zero means no limit.
    pub fn named(name: &str, age_limit: SimDuration) -> Option<Schedule> {
        match name {
            "fifo" => Some(Schedule::Fifo),
            "elevator" => Some(Schedule::Elevator(elevator::Elevator::new())),
            "sptf" => Some(Schedule::Sptf(sptf::Sptf::new(age_limit))),
            _ => None,
        }
    }

    /// Returns the name of the scheduler.
    pub fn name(&self) -> &'static str {
        match self {
            Schedule::Fifo => "fifo",
            Schedule::Elevator(_) => "elevator",
            Schedule::Sptf(_) => "sptf",
        }
    }

    /// Returns whether the scheduler uses the places of commands.
    pub fn needs_targets(&self) -> bool {
        !matches!(self, Schedule::Fifo)
    }

    /// Returns whether a choice depends on earlier choices.
    pub fn is_stateful(&self) -> bool {
        matches!(self, Schedule::Elevator(_))
    }

    /// Returns the command to serve next at `now`, or `None` if the queue is empty.
    pub fn choose(&mut self, queue: &Queue, actuator: &Actuator, now: SimTime) -> Option<Slot> {
        let chosen = match self {
            Schedule::Fifo => fifo::choose(queue),
            Schedule::Elevator(elevator) => elevator.choose(queue, actuator),
            Schedule::Sptf(sptf) => sptf.choose(queue, actuator, now),
        };
        if chosen == queue.oldest() { chosen } else { chosen.map(|chosen| queue.hazard(chosen)) }
    }
}
