//! How long a served drive was busy: the union of the times in which it had something to answer, in simulated time.
//!
//! Invariants:
//! 1. No moment counts twice, however many requests are under way in it.
//! 2. What the drive does after its last answer does not count: nobody waits for it.

use imbrex_disk::SimTime;

/// The books of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Busy {
    under_way: u64,
    /// All before it is counted.
    counted_to: SimTime,
    total_ns: u64,
}

impl Busy {
    /// A request came.
    pub fn begin(&mut self, at: SimTime) {
        if self.under_way == 0 {
            self.counted_to = self.counted_to.max(at);
        }
        self.under_way += 1;
    }

    /// One of those that came was answered.
    pub fn answer(&mut self, end: SimTime) {
        assert!(self.under_way > 0, "a drive answers what came to it");
        self.under_way -= 1;
        self.total_ns += end.0.saturating_sub(self.counted_to.0);
        self.counted_to = self.counted_to.max(end);
    }

    /// How long it was busy so far.
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
