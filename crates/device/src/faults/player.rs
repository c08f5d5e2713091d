//! Plays a schedule of faults on a drive at work: each comes with the first request that finds it due, before that request
//! enters.
//!
//! Invariants:
//! 1. Each fault comes once, in the order in which they fall due; of those that fall due together in the schedule's.
//! 2. The time that counts is the drive's, so a schedule plays alike at every pace.

use imbrex_disk::SimTime;

use super::{Due, Fault, FaultKind};
use crate::error::DeviceError;

/// A fault that came, and whether the drive could still have it.
#[derive(Debug)]
pub struct Played {
    /// What.
    pub kind: FaultKind,
    /// Whether it came: a zone may have failed meanwhile.
    pub outcome: Result<(), DeviceError>,
}

/// A schedule being played.
#[derive(Debug, Default)]
pub(crate) struct Player {
    pending: Vec<Fault>,
    played: Vec<Played>,
}

impl Player {
    /// Whether a fault is due when `requests` have come and the next arrives at `now`.
    pub(crate) fn is_due(&self, requests: u64, now: SimTime) -> bool {
        self.pending.iter().any(|fault| is_due(fault, requests, now))
    }

    /// Adds faults, each to come at its time.
    pub(crate) fn add(&mut self, faults: Vec<Fault>) {
        self.pending.extend(faults);
    }

    /// Takes down that a fault has come, and how.
    pub(crate) fn has_played(&mut self, played: Played) {
        self.played.push(played);
    }

    /// The faults that have come since this was last asked.
    pub(crate) fn take_played(&mut self) -> Vec<Played> {
        std::mem::take(&mut self.played)
    }

    /// Takes the faults that are due.
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
