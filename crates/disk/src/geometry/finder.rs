//! Finds, among sorted starts, the last one at or before a position.
//!
//! Invariants:
//! 1. The first start is 0, and starts rise strictly.
//! 2. A table of equally wide buckets gives a range of starts, which is then searched by bisection. So a search takes
//!    O(log starts) steps at worst, and a single look-up with one zone or zones of similar size.

/// Buckets per start: more of them narrow the range and enlarge the table.
const BUCKETS_PER_START: u64 = 8;

/// Sorted starts, with a table of first guesses.
#[derive(Clone, Debug)]
pub(super) struct Finder {
    starts: Vec<u64>,
    /// Guess for each bucket b: the index of the last start at or before b · 2^shift.
    guesses: Vec<u32>,
    shift: u32,
}

impl Finder {
    /// Prepares searches among `starts`, for positions below `end`.
    pub(super) fn new(starts: Vec<u64>, end: u64) -> Finder {
        assert!(starts.first() == Some(&0) && starts.is_sorted_by(|a, b| a < b), "invariant 1: {starts:?}");
        let buckets_wanted = BUCKETS_PER_START * starts.len() as u64;
        let shift = (0..64).find(|shift| end >> shift <= buckets_wanted).unwrap_or(63);
        let last_at = |position: u64| starts.partition_point(|&start| start <= position) as u32 - 1;
        let guesses = (0..=(end >> shift) + 1).map(|bucket| last_at(bucket << shift)).collect();
        Finder { starts, guesses, shift }
    }

    /// Returns the index of the last start at or before `position`.
    #[inline]
    pub(super) fn find(&self, position: u64) -> usize {
        let bucket = (position >> self.shift) as usize;
        let (low, high) = (self.guesses[bucket] as usize, self.guesses[bucket + 1] as usize);
        if low == high {
            return low;
        }
        low + self.starts[low + 1..=high].partition_point(|&start| start <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Checks that the finder agrees with a linear search over all starts.
        #[test]
        fn finds_what_a_walk_finds(steps in proptest::collection::vec(1u64..5000, 1..40), share in 0.0f64..1.0) {
            let mut starts = vec![0];
            for step in &steps[1..] {
                starts.push(starts[starts.len() - 1] + step);
            }
            let end = starts[starts.len() - 1] + steps[0];
            let finder = Finder::new(starts.clone(), end);
            let random = (share * end as f64) as u64;
            for position in starts.iter().copied().chain([random, end - 1]) {
                let walked = starts.iter().rposition(|&start| start <= position);
                prop_assert_eq!(Some(finder.find(position)), walked);
            }
        }
    }
}
