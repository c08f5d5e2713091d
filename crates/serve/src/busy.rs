//! Busy time of a served drive: the union of the intervals in which at least one request was in flight, in simulated time.
//!
//! Invariants:
//! 1. No moment counts twice, however many requests are in flight.
//! 2. Work of the drive after its last answer does not count: no request waits for that work.

use imbrex_disk::SimTime;

/// The busy time of a served drive: the simulated time during which at least one request was in flight. Time with
/// several requests in flight counts once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Busy {
    under_way: u64,
    /// End of the time counted so far.
    counted_to: SimTime,
    total_ns: u64,
}

impl Busy {
    /// Records that a request arrived at simulated time `at`. If no other request is in flight, busy time runs from
    /// then on; time that was counted already does not count again.
    pub fn begin(&mut self, at: SimTime) {
        if self.under_way == 0 {
            self.counted_to = self.counted_to.max(at);
        }
        self.under_way += 1;
    }

    /// Records that one request in flight was answered at simulated time `end`, and counts the busy time up to then
    /// that was not counted yet. Requests may be answered in any order.
    ///
    /// # Panics
    ///
    /// If no request is in flight.
    pub fn answer(&mut self, end: SimTime) {
        assert!(self.under_way > 0, "a request was answered while none was in flight");
        self.under_way -= 1;
        self.total_ns += end.0.saturating_sub(self.counted_to.0);
        self.counted_to = self.counted_to.max(end);
    }

    /// Returns the busy time, during which at least one request was in flight, up to the latest answer. The unit is
    /// nanoseconds of simulated time.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the union of intervals. Method: cases by hand.

    use super::*;

    fn after(events: &[(bool, u64)]) -> u64 {
        let mut busy = Busy::default();
        for &(is_begin, ns) in events {
            if is_begin { busy.begin(SimTime(ns)) } else { busy.answer(SimTime(ns)) }
        }
        busy.total_ns()
    }

    const BEGIN: bool = true;
    const END: bool = false;

    #[test]
    fn pauses_do_not_count_and_overlaps_count_once() {
        assert_eq!(after(&[(BEGIN, 10), (END, 15), (BEGIN, 100), (END, 130)]), 35);
        assert_eq!(after(&[(BEGIN, 10), (BEGIN, 12), (END, 20), (BEGIN, 21), (END, 30), (END, 40)]), 30);
    }

    #[test]
    fn what_is_answered_out_of_order_or_known_ahead_counts_once() {
        assert_eq!(after(&[(BEGIN, 0), (BEGIN, 0), (END, 50), (END, 20)]), 50);
        assert_eq!(after(&[(BEGIN, 0), (END, 50), (BEGIN, 30), (END, 60)]), 60);
    }
}
