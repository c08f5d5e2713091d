//! A wrapper around a target that ends the run when the user interrupts the probe or the time budget is over.
//!
//! Invariants:
//! 1. When the run ends, the operations in flight are awaited, and no operation begins after that.
//! 2. Every operation that reaches the target lies within the target, covers whole sectors, and has at most
//!    [`OPERATION_BYTES_MAX`] bytes.
//! 3. On a target in real time, a pause ends within [`SLICE_NS`] after the user's interrupt or the end of the budget.

use crate::pauses::{Pauses, pauses};
use crate::target::{About, Direction, Done, HeadPath, Next, OPERATION_BYTES_MAX, Operation, Target, TargetError};

/// Progress of a probe, for its progress function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeState<'a> {
    /// Name of the experiment that is running.
    pub test: &'a str,
    /// Number of reads and writes completed since the probe began, over all experiments.
    pub operations: u64,
    /// Time since the probe began, in nanoseconds on the target's clock.
    pub spent_ns: u64,
}

/// Longest uninterrupted part of a pause in real time, nanoseconds.
const SLICE_NS: u64 = 100_000_000;
/// Number of operations between two progress reports in virtual time, where an operation takes next to no real time.
const TOLD_EVERY: u64 = 256;
/// Largest read whose latency is kept, bytes: its transfer takes a small part of a rotation.
const SMALL_BYTES: u64 = 64 << 10;

/// A target with progress reports and a time budget.
pub(crate) struct Watched<'a> {
    target: &'a mut dyn Target,
    progress: &'a mut dyn FnMut(&ProbeState<'_>) -> bool,
    begun_ns: u64,
    budget_ns: u64,
    /// Name of the experiment that is running; empty before the first one.
    pub test: &'static str,
    operations: u64,
    ending: Option<TargetError>,
    /// Latencies of the small reads, one at a time, before the first write, nanoseconds.
    reads_ns: Vec<u64>,
    has_written: bool,
}

impl<'a> Watched<'a> {
    /// Wraps `target`; the budget begins now.
    pub(crate) fn new(
        target: &'a mut dyn Target,
        progress: &'a mut dyn FnMut(&ProbeState<'_>) -> bool,
        budget_ns: u64,
    ) -> Watched<'a> {
        let begun_ns = target.now_ns();
        Watched {
            target,
            progress,
            begun_ns,
            budget_ns,
            test: "",
            operations: 0,
            ending: None,
            reads_ns: Vec::new(),
            has_written: false,
        }
    }

    /// Returns the pauses before the first write, if there were any.
    pub(crate) fn pauses(&self) -> Option<Pauses> {
        pauses(&self.reads_ns)
    }

    /// Returns the time since the probe began, nanoseconds on the target's clock.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.target.now_ns() - self.begun_ns
    }

    /// Returns the rest of the budget, nanoseconds.
    pub(crate) fn left_ns(&self) -> u64 {
        self.budget_ns.saturating_sub(self.spent_ns())
    }

    /// Reports to the user that test `test` begins.
    pub(crate) fn begin(&mut self, test: &'static str) -> Result<(), TargetError> {
        self.test = test;
        self.tell()
    }

    fn tell(&mut self) -> Result<(), TargetError> {
        let spent_ns = self.spent_ns();
        if spent_ns > self.budget_ns {
            return Err(TargetError::BudgetSpent);
        }
        let told = ProbeState { test: self.test, operations: self.operations, spent_ns };
        if (self.progress)(&told) { Ok(()) } else { Err(TargetError::Interrupted) }
    }
}

/// Returns whether `operation` covers whole sectors within a target of `size` bytes and is not too large.
fn fits(operation: &Operation, size: u64, sector: u64) -> bool {
    let Operation { offset, bytes, .. } = *operation;
    let is_whole =
        (1..=OPERATION_BYTES_MAX).contains(&bytes) && offset.is_multiple_of(sector) && bytes.is_multiple_of(sector);
    is_whole && offset.checked_add(bytes).is_some_and(|end| end <= size)
}

impl Target for Watched<'_> {
    fn about(&self) -> &About {
        self.target.about()
    }

    fn now_ns(&self) -> u64 {
        self.target.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        if let Some(ending) = &self.ending {
            return Err(ending.clone());
        }
        self.tell().inspect_err(|ending| self.ending = Some(ending.clone()))?;
        let every = if self.target.is_virtual() { TOLD_EVERY } else { 1 };
        let (begun_ns, budget_ns, test) = (self.begun_ns, self.budget_ns, self.test);
        let mut refused = None;
        let mut operations = self.operations;
        // Both closures can end the run: `next` by returning nothing more, `done` by returning false.
        let ending = std::cell::RefCell::new(None);
        let (size, sector) = (self.target.size_bytes(), u64::from(self.target.sector_bytes()));
        let progress = &mut self.progress;
        let has_written = std::cell::Cell::new(self.has_written);
        let reads_ns = &mut self.reads_ns;
        let outcome = self.target.perform(
            depth,
            &mut || {
                let operation = if ending.borrow().is_none() { next()? } else { return None };
                if !fits(&operation, size, sector) {
                    refused = Some(operation);
                    return None;
                }
                has_written.set(has_written.get() || operation.direction == Direction::Write);
                Some(operation)
            },
            &mut |timed| {
                operations += 1;
                if !has_written.get() && depth <= 1 && timed.operation.bytes <= SMALL_BYTES {
                    reads_ns.push(timed.latency_ns());
                }
                let goes_on = done(timed);
                let spent_ns = timed.end_ns.saturating_sub(begun_ns);
                if spent_ns > budget_ns {
                    *ending.borrow_mut() = Some(TargetError::BudgetSpent);
                } else if operations.is_multiple_of(every) && !progress(&ProbeState { test, operations, spent_ns }) {
                    *ending.borrow_mut() = Some(TargetError::Interrupted);
                }
                goes_on && ending.borrow().is_none()
            },
        );
        self.operations = operations;
        self.has_written = has_written.get();
        self.ending = ending.into_inner();
        outcome?;
        if let Some(Operation { offset, bytes, .. }) = refused {
            let reason = format!(
                "the test asks for {bytes} bytes at byte {offset}, and there are {size}, in sectors of {sector}, \
                 {OPERATION_BYTES_MAX} at once: it needs a larger drive"
            );
            return Err(TargetError::failed(self.name(), reason));
        }
        self.ending.clone().map_or(Ok(()), Err)
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        let whole_ns = ns.min(self.left_ns().saturating_add(1));
        if self.target.is_virtual() {
            self.target.sleep(whole_ns)?;
            return self.tell();
        }
        // By the clock: otherwise the overshoot of each part of the pause would add up.
        let end_ns = self.target.now_ns().saturating_add(whole_ns);
        loop {
            let left_ns = end_ns.saturating_sub(self.target.now_ns());
            if left_ns == 0 {
                return Ok(());
            }
            self.target.sleep(left_ns.min(SLICE_NS))?;
            self.tell()?;
        }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        self.target.facts()
    }

    fn disturbance(&self) -> Option<String> {
        self.target.disturbance()
    }

    fn head_path(&mut self) -> Option<HeadPath> {
        self.target.head_path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Timed;

    /// A target that takes a millisecond for each operation, one after the other.
    struct Slow(u64, About);

    fn slow(now_ns: u64) -> Slow {
        Slow(now_ns, About { name: "slow".into(), size_bytes: 1 << 20, sector_bytes: 4096, is_virtual: false })
    }

    impl Target for Slow {
        fn about(&self) -> &About {
            &self.1
        }

        fn now_ns(&self) -> u64 {
            self.0
        }

        fn perform(&mut self, _depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
            while let Some(operation) = next() {
                let begin_ns = self.0;
                self.0 += 1_000_000;
                if !done(&Timed { operation, begin_ns, end_ns: self.0 }) {
                    break;
                }
            }
            Ok(())
        }

        fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
            self.0 += ns;
            Ok(())
        }
    }

    /// Reads without end, with a budget of 50 ms, until progress reports `operations_max` operations. Returns how the
    /// run ended, the number of completed operations, and how a second run ended.
    fn run(operations_max: u64) -> (Result<(), TargetError>, u64, Result<(), TargetError>) {
        let mut slow = slow(7_000_000);
        let mut progress = |told: &ProbeState<'_>| told.operations < operations_max;
        let mut watched = Watched::new(&mut slow, &mut progress, 50_000_000);
        let mut done = 0;
        let outcome = watched.perform(1, &mut || Some(Operation::read(0, 4096)), &mut |_| {
            done += 1;
            true
        });
        let again = watched.perform(1, &mut || panic!("nothing is begun after the end"), &mut |_| true);
        (outcome, done, again)
    }

    #[test]
    fn a_run_ends_with_the_budget() {
        let spent = Err(TargetError::BudgetSpent);
        assert_eq!(run(u64::MAX), (spent.clone(), 51, spent), "the one that passes the end is the last");
    }

    #[test]
    fn a_run_ends_when_the_user_wants_it() {
        let interrupted = Err(TargetError::Interrupted);
        assert_eq!(run(20), (interrupted.clone(), 20, interrupted));
    }

    #[test]
    fn a_pause_ends_with_the_budget_and_within_a_slice() {
        let mut slow = slow(0);
        let mut progress = |_: &ProbeState<'_>| true;
        let mut watched = Watched::new(&mut slow, &mut progress, 1_000_000_000);
        assert_eq!(watched.sleep(400_000_000), Ok(()));
        assert_eq!(watched.sleep(3600 * 1_000_000_000), Err(TargetError::BudgetSpent));
        assert!((1_000_000_000..1_000_000_000 + SLICE_NS).contains(&slow.0), "{}", slow.0);
    }

    #[test]
    fn what_does_not_lie_in_the_target_does_not_reach_it() {
        for operation in [Operation::read(1 << 20, 4096), Operation::read(512, 4096), Operation::write(0, 0)] {
            let mut slow = slow(0);
            let mut progress = |_: &ProbeState<'_>| true;
            let mut watched = Watched::new(&mut slow, &mut progress, u64::MAX);
            let mut next = Some(operation);
            let outcome = watched.perform(1, &mut || next.take(), &mut |_| true);
            assert!(matches!(outcome, Err(TargetError::Failed { .. })), "{operation:?}: {outcome:?}");
            assert_eq!(slow.0, 0);
        }
    }
}
