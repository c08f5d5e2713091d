//! Requests of a real drive with their service times, for comparison with a simulated drive.
//!
//! Invariants:
//! 1. Requests are in the order in which they were issued.
//! 2. The time of a request is that from its issue to its completion.

use imbrex_disk::{Command, Operation, SimDuration, SimTime};
use imbrex_trace::{Request, When};

/// A request that a real drive served, with its measured times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredRequest {
    /// The command that the host issued, with its address and length in sectors of 512 bytes.
    pub command: Command,
    /// Time at which the host issued the request to the drive, since an origin common to all requests of the
    /// measurement. If the record has no such times, the time at which the request before completed.
    pub issued: SimTime,
    /// Time from the issue of the request to its completion.
    pub taken: SimDuration,
    /// Whether the drive's buffer served the request without access to the medium, by the record; `None` if the record
    /// does not say whether it did. Only DiskSim's traces can say so.
    pub hit: Option<bool>,
}

impl MeasuredRequest {
    /// Returns the time at which the request completed.
    pub fn completed(&self) -> SimTime {
        self.issued + self.taken
    }
}

/// A measurement of a real drive: the requests that it served, with their times, as read from a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Measured {
    /// The reads, writes and trims, in the order of their issue. Flushes are left out.
    pub requests: Vec<MeasuredRequest>,
    /// Name of the file format from which the measurement was read, such as `blktrace`, `csv` or `fio-lat-log`.
    pub format: String,
    /// Notes for people about decisions made while the file was read, one each; empty if there were none.
    pub notes: Vec<String>,
}

impl Measured {
    /// Returns the maximum number of requests that were in flight at once, at least 1. A request that completes when
    /// another is issued is no longer in flight.
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

    /// Returns the requests as a workload for a simulation. If never more than one was in flight, each is issued as
    /// long after the completion of the previous one as in the measurement, and the first at once. Otherwise each is
    /// issued at its measured time.
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

    /// Returns two measurements: the first and the second half of the requests, in the order of issue. Of an odd number
    /// of requests, the second half has one more. Both keep format and notes.
    pub fn halves(&self) -> (Measured, Measured) {
        let (first, second) = self.requests.split_at(self.requests.len() / 2);
        let half = |requests: &[MeasuredRequest]| Measured { requests: requests.to_vec(), ..self.clone() };
        (half(first), half(second))
    }
}

/// Returns whether `command` begins at the sector after the last of `before`, the previous command. Returns false for
/// `None`, or if `before` was a flush.
pub fn is_sequential(before: Option<&Command>, command: &Command) -> bool {
    before.is_some_and(|before| before.operation != Operation::Flush && before.end() == command.lba)
}
