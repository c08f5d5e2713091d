//! Code shared by the targets in real time: the wall clock, and a fixed number of operations in flight.
//!
//! Invariants:
//! 1. The time of an operation begins just before its submission, and ends when its answer arrives.
//! 2. If one operation fails, the others in flight are awaited before the failure is returned.
//! 3. If the connection itself fails, no operation is submitted any more: late answers would be taken for those of later operations.

use std::io;
use std::time::{Duration, Instant};

use crate::target::{Direction, Done, Next, OPERATION_BYTES_MAX, Operation, TargetError, Timed};

/// An answered operation.
pub(super) struct Answer {
    /// Slot number under which the answered operation was submitted.
    pub slot: usize,
    /// Wall-clock time at which the answer arrived.
    pub at: Instant,
    /// `Ok` if the operation succeeded, otherwise its error.
    pub outcome: io::Result<()>,
}

/// A connection to a device that reads and writes blocks.
pub(super) trait Channel {
    /// Submits `operation`; its answer will carry `slot`, a small number.
    fn submit(&mut self, slot: usize, operation: &Operation) -> io::Result<()>;

    /// Waits for an answer.
    fn answer(&mut self) -> io::Result<Answer>;
}

/// The wall clock, and the operations in flight.
pub(super) struct RealTime {
    begun: Instant,
    /// Operations in flight with their start times, by slot.
    under_way: Vec<Option<(Operation, Instant)>>,
    /// Whether the connection to the target has failed.
    is_broken: bool,
}

impl RealTime {
    /// Returns a clock that begins now.
    pub(super) fn new() -> RealTime {
        RealTime { begun: Instant::now(), under_way: Vec::new(), is_broken: false }
    }

    /// Returns the time now, nanoseconds since the clock began.
    pub(super) fn now_ns(&self) -> u64 {
        self.ns(Instant::now())
    }

    fn ns(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.begun).as_nanos() as u64
    }

    /// Implements [`crate::Target::perform`]; `place` names the target in errors.
    pub(super) fn perform(
        &mut self,
        channel: &mut dyn Channel,
        place: &str,
        depth: usize,
        next: &mut Next<'_>,
        done: &mut Done<'_>,
    ) -> Result<(), TargetError> {
        if self.is_broken {
            return Err(TargetError::failed(place, "the connection to the target has failed before"));
        }
        let depth = depth.max(1);
        self.under_way.clear();
        self.under_way.resize(depth, None);
        let mut free: Vec<usize> = (0..depth).rev().collect();
        let (mut goes_on, mut failure) = (true, None);
        loop {
            while goes_on && failure.is_none() {
                let Some(slot) = free.pop() else { break };
                let Some(operation) = next() else {
                    goes_on = false;
                    free.push(slot);
                    break;
                };
                if let Err(error) = self.submit(channel, slot, operation) {
                    self.under_way[slot] = None;
                    free.push(slot);
                    failure = Some(failed(place, &operation, &error));
                }
            }
            if free.len() == depth {
                return failure.map_or(Ok(()), Err);
            }
            let answer = channel.answer().map_err(|error| {
                self.is_broken = true;
                failure.take().unwrap_or_else(|| TargetError::failed(place, error.to_string()))
            })?;
            let Some((operation, begun)) = self.under_way.get_mut(answer.slot).and_then(Option::take) else {
                self.is_broken = true;
                return Err(TargetError::failed(place, "the target answered an operation that was not submitted"));
            };
            free.push(answer.slot);
            match answer.outcome {
                Ok(()) => {
                    let timed = Timed { operation, begin_ns: self.ns(begun), end_ns: self.ns(answer.at) };
                    goes_on &= done(&timed);
                }
                Err(error) => failure = failure.or(Some(failed(place, &operation, &error))),
            }
        }
    }

    fn submit(&mut self, channel: &mut dyn Channel, slot: usize, operation: Operation) -> io::Result<()> {
        if operation.bytes > OPERATION_BYTES_MAX {
            return Err(io::Error::other(format!("more than {OPERATION_BYTES_MAX} bytes at once")));
        }
        self.under_way[slot] = Some((operation, Instant::now()));
        channel.submit(slot, &operation)
    }
}

/// Implements [`crate::Target::sleep`].
pub(super) fn sleep(ns: u64) {
    std::thread::sleep(Duration::from_nanos(ns));
}

fn failed(place: &str, operation: &Operation, error: &io::Error) -> TargetError {
    let what = match operation.direction {
        Direction::Read => "reading",
        Direction::Write => "writing",
    };
    TargetError::failed(place, format!("{what} {} bytes at byte {}: {error}", operation.bytes, operation.offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel that answers the latest operation first, and fails the one at byte offset `self.1`. It refuses the
    /// operation at byte offset [`REFUSED`].
    struct Stack(Vec<(usize, u64)>, u64, usize);

    const REFUSED: u64 = 1 << 40;

    impl Channel for Stack {
        fn submit(&mut self, slot: usize, operation: &Operation) -> io::Result<()> {
            if operation.offset == REFUSED {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.0.push((slot, operation.offset));
            self.2 = self.2.max(self.0.len());
            Ok(())
        }

        fn answer(&mut self) -> io::Result<Answer> {
            let (slot, offset) = self.0.pop().ok_or(io::ErrorKind::UnexpectedEof)?;
            let outcome = if offset == self.1 { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(()) };
            Ok(Answer { slot, at: Instant::now(), outcome })
        }
    }

    fn run(depth: usize, bad: u64, stop_after: usize) -> (Result<(), TargetError>, Vec<u64>, usize, usize) {
        let mut channel = Stack(Vec::new(), bad, 0);
        let mut offsets = (0..10u64).map(|index| Operation::read(index * 4096, 4096));
        let mut seen = Vec::new();
        let outcome =
            RealTime::new().perform(&mut channel, "stack", depth, &mut || offsets.next(), &mut |timed: &Timed| {
                assert!(timed.end_ns >= timed.begin_ns);
                seen.push(timed.operation.offset / 4096);
                seen.len() < stop_after
            });
        (outcome, seen, channel.2, channel.0.len())
    }

    #[test]
    fn the_depth_is_kept_and_all_is_answered() {
        let (outcome, mut seen, deepest, left) = run(4, u64::MAX, usize::MAX);
        seen.sort_unstable();
        assert_eq!((outcome, seen, deepest, left), (Ok(()), (0..10).collect(), 4, 0));
    }

    #[test]
    fn what_is_under_way_when_told_to_stop_is_waited_for() {
        let (outcome, seen, _, left) = run(4, u64::MAX, 2);
        assert_eq!((outcome, seen.len(), left), (Ok(()), 5, 0), "two, and the three beside the second");
    }

    #[test]
    fn a_failure_is_told_with_its_place_when_the_others_have_ended() {
        let (outcome, _, _, left) = run(3, 5 * 4096, usize::MAX);
        let words = outcome.expect_err("one fails").to_string();
        assert!(words.contains("stack: reading 4096 bytes at byte 20480") && left == 0, "{words}");
    }

    #[test]
    fn operations_in_flight_are_awaited_when_another_is_refused() {
        let (mut channel, mut clock) = (Stack(Vec::new(), u64::MAX, 0), RealTime::new());
        let mut offsets = [0, 4096, REFUSED, 8192].into_iter().map(|offset| Operation::read(offset, 4096));
        let outcome = clock.perform(&mut channel, "stack", 3, &mut || offsets.next(), &mut |_: &Timed| true);
        let words = outcome.expect_err("one is refused").to_string();
        assert!(words.contains(&format!("at byte {REFUSED}")) && channel.0.is_empty(), "{words}, {:?}", channel.0);
    }

    /// A channel that takes operations, which it counts, and fails instead of answering.
    struct Broken(usize);

    impl Channel for Broken {
        fn submit(&mut self, _slot: usize, _operation: &Operation) -> io::Result<()> {
            self.0 += 1;
            Ok(())
        }

        fn answer(&mut self) -> io::Result<Answer> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn a_broken_connection_is_not_used_again() {
        let (mut channel, mut clock) = (Broken(0), RealTime::new());
        let mut read = || {
            let mut offsets = (0..2u64).map(|index| Operation::read(index * 4096, 4096));
            let outcome = clock.perform(&mut channel, "pipe", 2, &mut || offsets.next(), &mut |_: &Timed| true);
            outcome.expect_err("it is broken").to_string()
        };
        assert!(read().contains("broken pipe"));
        assert!(read().contains("has failed before"));
        assert_eq!(channel.0, 2, "the second call submits nothing");
    }
}
