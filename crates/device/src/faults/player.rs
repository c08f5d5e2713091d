//! Plays a schedule of faults on a working drive. Each fault is applied before the first request for which it is due
//! enters the drive.
//!
//! Invariants:
//! 1. Each fault is applied once, in the order of due times; faults that become due together, in the order of the
//!    schedule.
//! 2. Due times are in the drive's simulated time, so a schedule has the same effect at every pace.

use imbrex_disk::SimTime;

use super::{Due, Fault, FaultKind};
use crate::error::DeviceError;

/// A scheduled fault that the drive has tried to apply, and the outcome.
#[derive(Debug)]
pub struct Played {
    /// Kind of the fault, and the sectors or the zone that it concerns.
    pub kind: FaultKind,
    /// `Ok` if the fault was applied, else the error; for example, the zone had failed meanwhile.
    pub outcome: Result<(), DeviceError>,
}

/// A schedule being played.
#[derive(Debug, Default)]
pub(crate) struct Player {
    pending: Vec<Fault>,
    played: Vec<Played>,
}

impl Player {
    /// Returns whether a fault is due after `requests` requests, with the next one arriving at `now`.
    pub(crate) fn is_due(&self, requests: u64, now: SimTime) -> bool {
        self.pending.iter().any(|fault| is_due(fault, requests, now))
    }

    /// Adds faults, each to be applied at its time.
    pub(crate) fn add(&mut self, faults: Vec<Fault>) {
        self.pending.extend(faults);
    }

    /// Records a fault of which the time has come, and its outcome.
    pub(crate) fn has_played(&mut self, played: Played) {
        self.played.push(played);
    }

    /// Returns the faults played since the last call.
    pub(crate) fn take_played(&mut self) -> Vec<Played> {
        std::mem::take(&mut self.played)
    }

    /// Removes and returns the faults that are due.
    pub(crate) fn due(&mut self, requests: u64, now: SimTime) -> Vec<FaultKind> {
        let due = self.pending.extract_if(.., |fault| is_due(fault, requests, now));
        due.map(|fault| fault.kind).collect()
    }
}

fn is_due(fault: &Fault, requests: u64, now: SimTime) -> bool {
    match fault.due {
        Due::Now => true,
        Due::At(time) => time <= now,
        Due::AfterRequests(count) => count <= requests,
    }
}
