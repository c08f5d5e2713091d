//! What targets in virtual time share: an emulated drive is stepped no further than the next operation could be
//! submitted, so that its clock is that of the host.
//!
//! Invariants:
//! 1. The drive is never stepped past a time at which an operation could still be submitted.
//! 2. What is submitted completes, unless the drive fails: then the target does.

use std::collections::BTreeMap;

use imbrex_disk::{HeadLog, SharedDisk, SimTime};
use imbrex_sim::Stepped;

use crate::target::{Done, HeadPath, Next, Operation, TargetError, Timed};

/// Samples kept of a path of the head.
pub(super) const HEAD_SAMPLES: usize = 4096;

/// What an emulated drive finished.
pub(super) struct Finished {
    /// Number of the operation.
    pub number: u64,
    /// When it entered, nanoseconds.
    pub begin_ns: u64,
    /// When it was answered.
    pub end_ns: u64,
}

/// An emulated drive.
pub(super) trait Machine {
    /// Takes an operation that arrives at `at`; operations are numbered from 0 in the order in which they are given.
    fn submit(&mut self, at: SimTime, number: u64, operation: &Operation) -> Result<(), TargetError>;

    /// Lets the drive do one thing, unless it would begin after `until`.
    fn step(&mut self, until: SimTime) -> Stepped;

    /// Moves what has completed since the last call into `finished`.
    fn finished(&mut self, finished: &mut Vec<Finished>) -> Result<(), TargetError>;

    /// The drive's clock.
    fn now(&self) -> SimTime;

    /// The head's path since the last call; a new one begins.
    fn take_head_path(&mut self) -> Option<HeadPath>;
}

/// A machine with the host's clock and what is under way.
pub(super) struct VirtualTime<M> {
    pub machine: M,
    now_ns: u64,
    under_way: BTreeMap<u64, Operation>,
    submitted: u64,
    finished: Vec<Finished>,
}

impl<M: Machine> VirtualTime<M> {
    /// `machine`, at its time.
    pub fn new(mut machine: M) -> VirtualTime<M> {
        // The first path begins here.
        machine.take_head_path();
        let now_ns = machine.now().0;
        VirtualTime { machine, now_ns, under_way: BTreeMap::new(), submitted: 0, finished: Vec::new() }
    }

    /// The time now.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// As [`crate::Target::perform`].
    pub fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        // Whoever looked into the drive before has let its clock go on.
        self.now_ns = self.now_ns.max(self.machine.now().0);
        let mut goes_on = true;
        loop {
            while goes_on && self.under_way.len() < depth.max(1) {
                match next() {
                    Some(operation) => self.submit(operation)?,
                    None => goes_on = false,
                }
            }
            if self.under_way.is_empty() {
                return Ok(());
            }
            let stepped = self.machine.step(SimTime(u64::MAX));
            assert_ne!(stepped, Stepped::Idle, "the drive is idle with {} under way", self.under_way.len());
            goes_on &= self.collect(done)?;
        }
    }

    fn submit(&mut self, operation: Operation) -> Result<(), TargetError> {
        self.machine.submit(SimTime(self.now_ns), self.submitted, &operation)?;
        self.under_way.insert(self.submitted, operation);
        self.submitted += 1;
        Ok(())
    }

    /// Tells `done` what has completed; says whether to go on.
    fn collect(&mut self, done: &mut Done<'_>) -> Result<bool, TargetError> {
        self.machine.finished(&mut self.finished)?;
        let mut goes_on = true;
        for Finished { number, begin_ns, end_ns } in self.finished.drain(..) {
            let operation = self.under_way.remove(&number).expect("the drive completes what was submitted, once");
            self.now_ns = self.now_ns.max(end_ns);
            goes_on &= done(&Timed { operation, begin_ns, end_ns });
        }
        Ok(goes_on)
    }

    /// As [`crate::Target::sleep`].
    pub fn sleep(&mut self, ns: u64) {
        self.now_ns = self.now_ns.saturating_add(ns);
        while self.machine.step(SimTime(self.now_ns)) == Stepped::Worked {}
        self.now_ns = self.now_ns.max(self.machine.now().0);
    }
}

/// The path that `log` holds.
pub(super) fn path(disk: &SharedDisk, log: Option<&HeadLog>) -> Option<HeadPath> {
    let points = log?.samples().iter().map(|sample| (sample.time.0, sample.radial_track)).collect();
    Some(HeadPath { tracks: disk.geometry.radial_tracks(), points })
}
