//! Arrival: the time at which the next request of a workload enters the drive's queue.
//!
//! Every process is a depth (the number of requests that may be outstanding) and a rule for the earliest time of a
//! request. A request enters at that time or when a place is free, whichever is later.
//!
//! Invariants:
//! 1. Requests enter in the order of the workload, at times that never decrease.
//! 2. The number of outstanding requests never exceeds the depth.

use std::collections::VecDeque;

use imbrex_disk::SimTime;
use imbrex_trace::When;

/// An arrival process: the rule for the time at which each request of the workload enters the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The queue takes at most this many outstanding requests; 0 counts as 1. The workload's inter-arrival times are
    /// kept until the queue is full. Then the next request enters when one completes, and later ones keep their
    /// distance to it, so time dilates (Hajkazemi 2019 §3).
    FixedQueue(u32),
    /// This many requests are always outstanding (0 counts as 1): the next one enters when one completes, and the
    /// workload's arrival times are ignored. Pauses of a generator relative to a completion are kept.
    Closed(u32),
    /// Each request enters at the workload's time, but not before the request ahead of it; the queue is unbounded.
    Open,
    /// Each request enters when the one before it completes (Cassuto 2010 §III.B); all times of the workload are
    /// ignored.
    FlatOut,
}

impl Arrival {
    /// Names of the arrival processes, as users give them.
    pub const NAMES: [&'static str; 4] = ["fixed-queue", "closed", "open", "flat-out"];

    /// Returns the arrival process called `name`, or `None` if the name is unknown. `depth` is the maximum number of
    /// outstanding requests; only `fixed-queue` and `closed` use it.
    pub fn named(name: &str, depth: u32) -> Option<Arrival> {
        match name {
            "fixed-queue" => Some(Arrival::FixedQueue(depth)),
            "closed" => Some(Arrival::Closed(depth)),
            "open" => Some(Arrival::Open),
            "flat-out" => Some(Arrival::FlatOut),
            _ => None,
        }
    }

    /// Returns the name of the arrival process: one of [`Arrival::NAMES`].
    pub fn name(self) -> &'static str {
        match self {
            Arrival::FixedQueue(_) => "fixed-queue",
            Arrival::Closed(_) => "closed",
            Arrival::Open => "open",
            Arrival::FlatOut => "flat-out",
        }
    }

    /// Returns the maximum number of outstanding requests: at least 1, and `usize::MAX` for [`Arrival::Open`].
    pub fn depth(self) -> usize {
        match self {
            Arrival::FixedQueue(depth) | Arrival::Closed(depth) => depth.max(1) as usize,
            Arrival::Open => usize::MAX,
            Arrival::FlatOut => 1,
        }
    }
}

/// The state of an arrival process: the time of the last entry, and the times at which places for outstanding requests
/// become free.
#[derive(Clone, Debug)]
pub struct ArrivalClock {
    arrival: Arrival,
    last_entry: SimTime,
    last_traced: Option<SimTime>,
    place_free_since: SimTime,
    drained_since: SimTime,
    /// Times at which requests that were answered on entry free their places, in order.
    held: VecDeque<SimTime>,
}

/// The time at which a request may enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The request may enter at this simulated time, if a place among the outstanding requests is free by then.
    At(SimTime),
    /// The request may enter only after all requests before it have completed; the time is not known yet.
    AfterDrain,
}

impl ArrivalClock {
    /// Creates the clock at the start of a run, when no request has entered.
    pub fn new(arrival: Arrival) -> ArrivalClock {
        ArrivalClock {
            arrival,
            last_entry: SimTime::ZERO,
            last_traced: None,
            place_free_since: SimTime::ZERO,
            drained_since: SimTime::ZERO,
            held: VecDeque::new(),
        }
    }

    /// Takes a place among the outstanding requests until `end` for a request that has just entered and will be
    /// answered at `end`, such as a write into the volatile cache. `outstanding` is the number of other outstanding
    /// requests, without held places; if it is 0, the drive also counts as drained at `end`. Without a limit on
    /// outstanding requests, no place is taken.
    pub fn hold(&mut self, end: SimTime, outstanding: usize) {
        if outstanding == 0 {
            self.drained(end);
        }
        if self.arrival.depth() != usize::MAX {
            self.held.push_back(end);
        }
    }

    /// Gives up the place that was taken first by [`ArrivalClock::hold`], and records when it becomes free. Does
    /// nothing if a place is free, or if no place is held so. A place is free if the `outstanding` requests and the
    /// held places together number less than the depth.
    pub fn free_a_place(&mut self, outstanding: usize) {
        if outstanding + self.held.len() >= self.arrival.depth()
            && let Some(end) = self.held.pop_front()
        {
            self.place_free_since = self.place_free_since.max(end);
        }
    }

    /// Returns the time since which a place for an outstanding request has been free, but not before the last entry.
    /// Fewer requests than the depth must be outstanding; this is not checked.
    pub fn place_free_since(&self) -> SimTime {
        self.place_free_since.max(self.last_entry)
    }

    /// Returns the simulated time at which the last request entered; 0 before the first.
    pub fn last_entry(&self) -> SimTime {
        self.last_entry
    }

    /// Records that a place for an outstanding request became free at `at`, after all places had been taken.
    pub fn place_freed(&mut self, at: SimTime) {
        self.place_free_since = at;
    }

    /// Records that the last outstanding request completed at `at`.
    pub fn drained(&mut self, at: SimTime) {
        self.drained_since = at;
    }

    /// Returns the time at which the next request, with the timing `when`, may enter. A place must be free.
    /// `is_drained` is true if no request is outstanding. Returns [`Entry::AfterDrain`] if the request waits for the
    /// completion of all requests before it, and some are outstanding.
    pub fn entry(&self, when: When, is_drained: bool) -> Entry {
        let free = self.place_free_since();
        if self.arrival == Arrival::FlatOut {
            return Entry::At(free);
        }
        match when {
            When::At(_) if matches!(self.arrival, Arrival::Closed(_)) => Entry::At(free),
            When::At(traced) => Entry::At(self.traced_entry(traced).max(free)),
            When::Free(think) => Entry::At(free + think),
            When::Drained(pause) if is_drained => Entry::At(free.max(self.drained_since + pause)),
            When::Drained(_) => Entry::AfterDrain,
        }
    }

    /// Returns the time from which the next request, with the timing `when`, waits for a place: its own time in the
    /// workload, moved by the dilation of the requests before it. Returns `None` if the process ignores the times of the
    /// workload, or `when` is none.
    pub fn due(&self, when: When) -> Option<SimTime> {
        match (self.arrival, when) {
            (Arrival::FixedQueue(_) | Arrival::Open, When::At(traced)) => Some(self.traced_entry(traced)),
            _ => None,
        }
    }

    fn traced_entry(&self, traced: SimTime) -> SimTime {
        match (self.arrival, self.last_traced) {
            (Arrival::Open, _) | (_, None) => traced,
            (_, Some(last_traced)) => self.last_entry + traced.since(last_traced),
        }
    }

    /// Records that the request with the timing `when` entered at `at`.
    pub fn entered(&mut self, when: When, at: SimTime) {
        debug_assert!(at >= self.last_entry, "entry at {at:?} after one at {:?}", self.last_entry);
        self.last_entry = at;
        while self.held.front().is_some_and(|&end| end <= at) {
            self.held.pop_front();
        }
        self.last_traced = match when {
            // If a trace steps back in time, its latest time is kept, so that the gap after it is not counted twice.
            When::At(traced) => Some(self.last_traced.map_or(traced, |last| last.max(traced))),
            // A request without a time breaks the chain: a distance across it would count its pause twice.
            When::Free(_) | When::Drained(_) => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_disk::SimDuration;

    fn at(ns: u64) -> When {
        When::At(SimTime(ns))
    }

    #[test]
    fn a_fixed_queue_dilates_time_and_keeps_distances() {
        let mut clock = ArrivalClock::new(Arrival::FixedQueue(1));
        assert_eq!(clock.entry(at(100), true), Entry::At(SimTime(100)));
        clock.entered(at(100), SimTime(100));
        // The place is taken until 500; the next request was traced 50 later.
        clock.place_freed(SimTime(500));
        assert_eq!(clock.entry(at(150), true), Entry::At(SimTime(500)));
        clock.entered(at(150), SimTime(500));
        clock.place_freed(SimTime(510));
        assert_eq!(clock.entry(at(350), true), Entry::At(SimTime(700)), "200 after the one before, as traced");
    }

    #[test]
    fn an_open_queue_keeps_traced_times() {
        let mut clock = ArrivalClock::new(Arrival::Open);
        clock.entered(at(100), SimTime(100));
        assert_eq!(clock.entry(at(350), false), Entry::At(SimTime(350)));
    }

    #[test]
    fn a_pause_waits_for_the_drain() {
        let mut clock = ArrivalClock::new(Arrival::Closed(4));
        let pause = When::Drained(SimDuration(1000));
        assert_eq!(clock.entry(pause, false), Entry::AfterDrain);
        clock.drained(SimTime(70));
        assert_eq!(clock.entry(pause, true), Entry::At(SimTime(1070)));
        let mut flat_out = ArrivalClock::new(Arrival::FlatOut);
        flat_out.place_freed(SimTime(70));
        assert_eq!(flat_out.entry(pause, true), Entry::At(SimTime(70)));
    }
}
