//! Waiting: the times at which requests were outstanding, and those at which none of them completed.
//!
//! A window is *busy* if a request was outstanding at some time in it. A busy window in which no request completed is
//! *stalled*. Windows without requests are idle, and count as neither.
//!
//! Invariants:
//! 1. Every busy window counts once.
//! 2. The memory does not grow with the length of the run.

use imbrex_disk::{SimDuration, SimTime};

use super::latency::LatencyHistogram;

/// Measurements of waiting since measuring began: for how long requests were outstanding, and for how long none of them
/// completed. Simulated time is divided into windows of equal width.
#[derive(Clone, Debug)]
pub struct Waiting {
    begun: SimTime,
    width_ns: u64,
    /// Largest number of outstanding requests that the arrival process permits.
    depth: u64,
    outstanding: u64,
    /// Time at which the present stretch with outstanding requests began.
    busy_since: SimTime,
    /// Time of the last completion; the start of measuring before the first one.
    last_end: SimTime,
    /// Number of the first window that is not counted as busy yet.
    next_busy: u64,
    /// Number of the first window in which no request has completed yet, and the start of that window.
    next_completing: u64,
    next_completing_at: SimTime,
    /// Time since which the queue has been full, if it is.
    full_since: Option<SimTime>,
    /// Number of windows of simulated time in which a request was outstanding at some time. Windows after the latest
    /// completion are not counted yet.
    pub busy: u64,
    /// Number of windows of simulated time in which a request was outstanding and none completed. Windows after the
    /// latest completion are not counted yet.
    pub stalled: u64,
    /// Longest simulated time for which requests were outstanding and none completed, up to the latest completion.
    pub longest: SimDuration,
    /// Total simulated time for which as many requests were outstanding as the arrival process permits. A time that has
    /// not ended is not counted yet.
    pub full: SimDuration,
    /// Time from a request's own time in the workload to its entry into the queue, in nanoseconds. Empty if the arrival
    /// process does not follow the times of the workload.
    pub before_queue: LatencyHistogram,
}

impl Waiting {
    /// Creates empty measurements, from `begin` on, in windows of `width`, at least a nanosecond. `depth` is the
    /// maximum number of outstanding requests: at that number the queue counts as full.
    pub fn new(begin: SimTime, width: SimDuration, depth: u64) -> Waiting {
        Waiting {
            begun: begin,
            width_ns: width.0.max(1),
            depth,
            outstanding: 0,
            busy_since: begin,
            last_end: begin,
            next_busy: 0,
            next_completing: 0,
            next_completing_at: begin,
            full_since: None,
            busy: 0,
            stalled: 0,
            longest: SimDuration::ZERO,
            full: SimDuration::ZERO,
            before_queue: LatencyHistogram::new(),
        }
    }

    /// Returns empty measurements from `begin` on, as at the end of a warm-up. Requests that are outstanding now stay
    /// counted as outstanding. Width and depth stay.
    pub fn restarted(&self, begin: SimTime) -> Waiting {
        Waiting {
            outstanding: self.outstanding,
            full_since: self.full_since.map(|_| begin),
            ..Waiting::new(begin, SimDuration(self.width_ns), self.depth)
        }
    }

    fn window_of(&self, at: SimTime) -> u64 {
        at.since(self.begun).0 / self.width_ns
    }

    /// Counts the entry of a request into the queue at `at`. `arrival` is the request's own time in the workload, or
    /// `None` if the arrival process does not follow such times.
    pub fn enter(&mut self, at: SimTime, arrival: Option<SimTime>) {
        if self.outstanding == 0 {
            self.busy_since = at;
        }
        self.outstanding += 1;
        if self.outstanding == self.depth {
            self.full_since = Some(at);
        }
        if let Some(arrival) = arrival {
            self.before_queue.record(at.since(arrival).0);
        }
    }

    /// Counts the windows from `from`, since when requests have been outstanding without a completion, to `end`, when
    /// one completes.
    fn count_windows(&mut self, from: SimTime, end: SimTime) {
        let (first, last) = (self.window_of(from), self.window_of(end));
        self.busy += (last + 1).saturating_sub(first.max(self.next_busy));
        self.stalled += last.saturating_sub(first.max(self.next_completing));
        self.next_busy = self.next_busy.max(last + 1);
        self.next_completing = last + 1;
        self.next_completing_at = SimTime(self.begun.0.saturating_add((last + 1).saturating_mul(self.width_ns)));
    }

    /// Counts the completion of a request at `at`. A time before the latest completion counts as the time of the latest
    /// completion.
    pub fn complete(&mut self, at: SimTime) {
        let end = at.max(self.last_end);
        let from = self.last_end.max(self.busy_since).min(end);
        self.longest = self.longest.max(end.since(from));
        // Most requests complete in the window of the one before, which is counted already.
        if end >= self.next_completing_at {
            self.count_windows(from, end);
        }
        self.last_end = end;
        if self.outstanding == self.depth
            && let Some(since) = self.full_since.take()
        {
            self.full += end.since(since);
        }
        self.outstanding = self.outstanding.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    //! Goal: windows and times are those of a naive count. Method: random requests, compared with a list of all of them.

    use super::*;
    use proptest::prelude::*;

    const WIDTH: u64 = 10;

    fn waiting(depth: u64) -> Waiting {
        Waiting::new(SimTime::ZERO, SimDuration(WIDTH), depth)
    }

    /// Feeds entries and completions in order of time, entries first, and returns the measurements.
    fn measured(requests: &[(u64, u64)], depth: u64) -> Waiting {
        let mut events: Vec<(u64, bool)> =
            requests.iter().flat_map(|&(entry, end)| [(entry, false), (end, true)]).collect();
        events.sort_unstable();
        let mut waiting = waiting(depth);
        for (at, is_end) in events {
            if is_end { waiting.complete(SimTime(at)) } else { waiting.enter(SimTime(at), None) }
        }
        waiting
    }

    #[test]
    fn idle_windows_are_neither_busy_nor_stalled() {
        // Two requests far apart: one within a window, one over three windows.
        let waiting = measured(&[(2, 5), (112, 137)], 9);
        assert_eq!((waiting.busy, waiting.stalled), (4, 2));
        assert_eq!(waiting.longest, SimDuration(25));
    }

    #[test]
    fn a_stall_begins_at_the_last_completion_while_requests_wait() {
        let waiting = measured(&[(0, 40), (1, 90), (85, 95)], 9);
        assert_eq!(waiting.longest, SimDuration(50), "from 40 to 90");
    }

    #[test]
    fn a_queue_is_full_until_a_request_completes() {
        assert_eq!(measured(&[(0, 30), (10, 50), (40, 60)], 2).full, SimDuration(20 + 10));
        assert_eq!(measured(&[(0, 30), (10, 50)], 3).full, SimDuration::ZERO);
    }

    #[test]
    fn requests_that_wait_at_a_restart_are_still_outstanding() {
        let mut waiting = waiting(2);
        waiting.enter(SimTime(0), Some(SimTime(0)));
        waiting.enter(SimTime(1), Some(SimTime(0)));
        waiting.complete(SimTime(20));
        let mut after = waiting.restarted(SimTime(20));
        after.complete(SimTime(50));
        assert_eq!((after.busy, after.stalled, after.longest), (4, 3, SimDuration(30)));
        assert_eq!(after.before_queue.count(), 0);
    }

    proptest! {
        #[test]
        fn equals_a_naive_count(requests in prop::collection::vec((0u64..400, 1u64..90), 1..12)) {
            let requests: Vec<_> = requests.into_iter().map(|(entry, length)| (entry, entry + length)).collect();
            let waiting = measured(&requests, 3);
            let (mut busy, mut stalled, mut longest, mut full, mut run) = (0, 0, 0, 0, 0);
            let is_end = |at: u64| requests.iter().any(|request| request.1 == at);
            let out_at = |at: u64| requests.iter().filter(|request| request.0 <= at && at < request.1).count();
            for window in 0..50 {
                let times = window * WIDTH..(window + 1) * WIDTH;
                let completes = times.clone().any(is_end);
                let is_busy = completes || times.clone().any(|at| out_at(at) > 0);
                busy += u64::from(is_busy);
                stalled += u64::from(is_busy && !completes);
            }
            for at in 0..500 {
                run = if is_end(at) { 0 } else { run };
                run = if out_at(at) > 0 { run + 1 } else { 0 };
                longest = longest.max(run);
                full += u64::from(out_at(at) >= 3);
            }
            prop_assert_eq!((waiting.busy, waiting.stalled), (busy, stalled));
            prop_assert_eq!(waiting.longest.0, longest);
            // More than three requests exceed the depth, which an arrival process does not permit.
            let most = (0..500).map(out_at).max();
            prop_assert!(most > Some(3) || waiting.full.0 == full);
        }
    }
}
