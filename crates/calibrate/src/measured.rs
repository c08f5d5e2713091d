//! Requests of a real drive with the times it took: what a simulated drive is held against.
//!
//! Invariants:
//! 1. Requests are in the order in which they were issued.
//! 2. A request's time is that from its issue to its completion.

use imbrex_disk::{Command, Operation, SimDuration, SimTime};
use imbrex_trace::{Request, When};

/// A request that a drive served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredRequest {
    /// What was asked, in sectors of 512 bytes.
    pub command: Command,
    /// When it was issued.
    pub issued: SimTime,
    /// From issue to completion.
    pub taken: SimDuration,
    /// Whether the drive's buffer served it, where the record says so.
    pub hit: Option<bool>,
}

impl MeasuredRequest {
    /// When it was complete.
    pub fn completed(&self) -> SimTime {
        self.issued + self.taken
    }
}

/// A measurement.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Measured {
    /// The requests.
    pub requests: Vec<MeasuredRequest>,
    /// The format they were read from.
    pub format: String,
    /// What was decided while reading.
    pub notes: Vec<String>,
}

impl Measured {
    /// The most that were outstanding at once.
    pub fn depth(&self) -> usize {
        let mut ends: Vec<u64> = self.requests.iter().map(|request| request.completed().0).collect();
        ends.sort_unstable();
        let mut issued: Vec<u64> = self.requests.iter().map(|request| request.issued.0).collect();
        issued.sort_unstable();
        let (mut over, mut most) = (0, 0);
        for (index, at) in issued.iter().enumerate() {
            while over < ends.len() && ends[over] <= *at {
                over += 1;
            }
            most = most.max((index + 1).saturating_sub(over));
        }
        most.max(1)
    }

    /// The requests as a workload. One at a time: each after the pause that followed the one before. Several at once: at
    /// their times.
    pub fn workload(&self) -> Vec<Request> {
        let one_by_one = self.depth() == 1;
        let mut before: Option<SimTime> = None;
        let request = |measured: &MeasuredRequest| {
            let when = match before {
                Some(completed) if one_by_one => When::Drained(measured.issued.since(completed)),
                None if one_by_one => When::Drained(SimDuration::ZERO),
                _ => When::At(measured.issued),
            };
            before = Some(measured.completed());
            Request { when, device: 0, command: measured.command }
        };
        self.requests.iter().map(request).collect()
    }

    /// The first and the second half.
    pub fn halves(&self) -> (Measured, Measured) {
        let (first, second) = self.requests.split_at(self.requests.len() / 2);
        let half = |requests: &[MeasuredRequest]| Measured { requests: requests.to_vec(), ..self.clone() };
        (half(first), half(second))
    }
}

/// Whether a request goes on where the one before ended.
pub fn is_sequential(before: Option<&Command>, command: &Command) -> bool {
    before.is_some_and(|before| before.operation != Operation::Flush && before.end() == command.lba)
}
