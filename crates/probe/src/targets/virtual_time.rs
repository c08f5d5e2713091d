//! Code shared by the targets in virtual time: it steps an emulated drive no further than the time of the next possible
//! submission, so that the drive's clock agrees with the host's.
//!
//! Invariants:
//! 1. The drive is never stepped past a time at which an operation could still be submitted.
//! 2. Every submitted operation completes, unless the drive fails: then the target fails.

use std::collections::BTreeMap;

use imbrex_disk::{HeadLog, SharedDisk, SimTime};
use imbrex_sim::Stepped;

use crate::target::{Done, HeadPath, Next, Operation, TargetError, Timed};

/// Number of samples kept of the head's path.
pub(super) const HEAD_SAMPLES: usize = 4096;

/// A completed operation of an emulated drive.
pub(super) struct Finished {
    /// Number that [`Machine::submit`] returned for the operation.
    pub number: u64,
    /// Time at which the operation entered the drive, in nanoseconds of its clock.
    pub begin_ns: u64,
    /// Time at which the operation completed, in nanoseconds of the drive's clock.
    pub end_ns: u64,
}

/// An emulated drive.
pub(super) trait Machine {
    /// Submits an operation that arrives at `at`, and returns the number that the drive gives it.
    fn submit(&mut self, at: SimTime, operation: &Operation) -> Result<u64, TargetError>;

    /// Performs the drive's next action, unless that would begin after `until`.
    fn step(&mut self, until: SimTime) -> Stepped;

    /// Moves the operations that completed since the last call into `finished`.
    fn finished(&mut self, finished: &mut Vec<Finished>) -> Result<(), TargetError>;

    /// Returns the time on the drive's clock.
    fn now(&self) -> SimTime;

    /// Returns the head's path since the last call, and begins a new path.
    fn take_head_path(&mut self) -> Option<HeadPath>;
}

/// A drive with the host's clock and the operations in flight.
pub(super) struct VirtualTime<M> {
    /// The emulated drive that performs the operations.
    pub machine: M,
    now_ns: u64,
    /// Operations in flight, by the numbers that the drive gave them.
    under_way: BTreeMap<u64, Operation>,
    finished: Vec<Finished>,
}

impl<M: Machine> VirtualTime<M> {
    /// Returns `machine` with a host's clock, which begins at the drive's time.
    pub(super) fn new(mut machine: M) -> VirtualTime<M> {
        // Drops the path so far: the first path begins here.
        machine.take_head_path();
        let now_ns = machine.now().0;
        VirtualTime { machine, now_ns, under_way: BTreeMap::new(), finished: Vec::new() }
    }

    /// Returns the time now, nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Implements [`crate::Target::perform`].
    pub(super) fn perform(
        &mut self,
        depth: usize,
        next: &mut Next<'_>,
        done: &mut Done<'_>,
    ) -> Result<(), TargetError> {
        // Reads of the drive outside this function, such as a survey, may have advanced its clock.
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
        let number = self.machine.submit(SimTime(self.now_ns), &operation)?;
        self.under_way.insert(number, operation);
        Ok(())
    }

    /// Passes the completed operations to `done`; returns whether to continue.
    fn collect(&mut self, done: &mut Done<'_>) -> Result<bool, TargetError> {
        self.machine.finished(&mut self.finished)?;
        let mut goes_on = true;
        for Finished { number, begin_ns, end_ns } in self.finished.drain(..) {
            let operation = self.under_way.remove(&number).expect("the drive completes each submitted operation once");
            self.now_ns = self.now_ns.max(end_ns);
            goes_on &= done(&Timed { operation, begin_ns, end_ns });
        }
        Ok(goes_on)
    }

    /// Implements [`crate::Target::sleep`].
    pub(super) fn sleep(&mut self, ns: u64) {
        self.now_ns = self.now_ns.saturating_add(ns);
        while self.machine.step(SimTime(self.now_ns)) == Stepped::Worked {}
        self.now_ns = self.now_ns.max(self.machine.now().0);
    }
}

/// Returns the path of the head that `log` recorded.
pub(super) fn path(disk: &SharedDisk, log: Option<&HeadLog>) -> Option<HeadPath> {
    let points = log?.samples().iter().map(|sample| (sample.time.0, sample.radial_track)).collect();
    Some(HeadPath { tracks: disk.geometry.radial_tracks(), points })
}
