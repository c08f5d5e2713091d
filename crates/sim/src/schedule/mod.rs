//! Schedulers, which choose the next waiting command to serve. There is one file for each, and one line in
//! [`Schedule::named`].

mod elevator;
mod fifo;
mod sptf;

use imbrex_disk::{Actuator, SimDuration, SimTime};

use crate::queue::{Queue, Slot};

/// A scheduler: chooses the next command to serve among those in the drive.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// First in, first out: serves the command that entered first.
    Fifo,
    /// Serves the nearest command in the direction of travel of the head (LOOK); turns if no command lies ahead.
    Elevator(elevator::Elevator),
    /// Serves the command with the shortest positioning time, seek and rotational wait together. If the oldest command
    /// has waited longer than the age limit, serves the oldest.
    Sptf(sptf::Sptf),
}

impl Schedule {
    /// Names of the schedulers, as users and profiles give them.
    pub const NAMES: [&'static str; 3] = ["fifo", "elevator", "sptf"];

    /// Returns the scheduler called `name`, or `None` if the name is unknown. `age_limit` is the waiting time after
    /// which `sptf` serves a command first; zero means no limit. Other schedulers ignore it.
    pub fn named(name: &str, age_limit: SimDuration) -> Option<Schedule> {
        match name {
            "fifo" => Some(Schedule::Fifo),
            "elevator" => Some(Schedule::Elevator(elevator::Elevator::new())),
            "sptf" => Some(Schedule::Sptf(sptf::Sptf::new(age_limit))),
            _ => None,
        }
    }

    /// Returns the name of the scheduler: one of [`Schedule::NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            Schedule::Fifo => "fifo",
            Schedule::Elevator(_) => "elevator",
            Schedule::Sptf(_) => "sptf",
        }
    }

    /// Returns whether the scheduler uses the places of commands on the platters: all but `fifo` do.
    pub fn needs_targets(&self) -> bool {
        !matches!(self, Schedule::Fifo)
    }

    /// Returns whether a choice depends on earlier choices: only that of the elevator does.
    pub fn is_stateful(&self) -> bool {
        matches!(self, Schedule::Elevator(_))
    }

    /// Returns the command in the drive to serve next at `now`, or `None` if the queue is empty. If the scheduler's
    /// choice must wait for an earlier command, for example one that overlaps it, that command is returned instead.
    pub fn choose(&mut self, queue: &Queue, actuator: &Actuator, now: SimTime) -> Option<Slot> {
        let chosen = match self {
            Schedule::Fifo => fifo::choose(queue),
            Schedule::Elevator(elevator) => elevator.choose(queue, actuator),
            Schedule::Sptf(sptf) => sptf.choose(queue, actuator, now),
        };
        if chosen == queue.oldest() { chosen } else { chosen.map(|chosen| queue.hazard(chosen)) }
    }
}
