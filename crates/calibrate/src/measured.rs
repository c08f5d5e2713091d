//! Requests of a real drive with their service times, for comparison with a simulated drive.
//!
//! Invariants:
//! 1. Requests are in the order in which they were issued.
//! 2. The time of a request is that from its issue to its completion.

use imbrex_disk::{Command, Operation, SimDuration, SimTime};
use imbrex_trace::{Request, When};

/// A request that a drive served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredRequest {
    /// The request, in sectors of 512 bytes.
    pub command: Command,
    /// Time of issue.
    pub issued: SimTime,
    /// Time from issue to completion.
    pub taken: SimDuration,
    /// Whether the drive's buffer served the request; `None` if the record does not say.
    pub hit: Option<bool>,
}

impl MeasuredRequest {
    /// Returns the time of completion.
    pub fn completed(&self) -> SimTime {
        self.issued + self.taken
    }
}

/// Requests of a real drive that were read from a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Measured {
    /// Requests, in the order of issue.
    pub requests: Vec<MeasuredRequest>,
    /// Name of the file format from which the requests were read.
    pub format: String,
    /// Decisions made while the file was read, as text for the user.
    pub notes: Vec<String>,
}

impl Measured {
    /// Returns the largest number of requests that were outstanding at once.
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

    /// Returns the requests as a workload. If at most one was outstanding, each is issued after the pause that followed
    /// the one before; otherwise each at its time.
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

    /// Returns the first and the second half of the requests.
    pub fn halves(&self) -> (Measured, Measured) {
        let (first, second) = self.requests.split_at(self.requests.len() / 2);
        let half = |requests: &[MeasuredRequest]| Measured { requests: requests.to_vec(), ..self.clone() };
        (half(first), half(second))
    }
}

/// Returns whether a request begins where the one before ended.
pub fn is_sequential(before: Option<&Command>, command: &Command) -> bool {
    before.is_some_and(|before| before.operation != Operation::Flush && before.end() == command.lba)
}
