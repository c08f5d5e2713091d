//! A fast search in a sorted list of start addresses. It counts the starts at or before a given address: the number of
//! gaps before the address, for example, or the zone that holds it.
//!
//! Invariants:
//! 1. Starts rise strictly.
//! 2. A table of equally wide buckets gives bounds, and a binary search within the bounds gives the count. If starts
//!    are few or evenly spread, a single look into the table suffices.

/// Number of buckets in the table for each start: more of them make the bounds tighter and the table larger.
const BUCKETS_PER_START: u64 = 4;

/// Sorted start addresses, for example of zones, with a table that bounds each search.
#[derive(Clone, Debug)]
pub struct Finder {
    starts: Vec<u64>,
    /// Number of starts at or before b · 2^shift, for each bucket b.
    guesses: Vec<u32>,
    shift: u32,
}

impl Finder {
    /// Returns a finder for the start addresses `starts`. [`Finder::before`] then accepts positions up to and including
    /// `end`.
    ///
    /// # Panics
    ///
    /// If `starts` do not rise strictly.
    pub fn new(starts: Vec<u64>, end: u64) -> Finder {
        assert!(starts.is_sorted_by(|a, b| a < b), "invariant 1: {starts:?}");
        let buckets_wanted = BUCKETS_PER_START * (starts.len() as u64 + 1);
        let shift = (0..64).find(|shift| end >> shift <= buckets_wanted).unwrap_or(63);
        let before = |position: u64| starts.partition_point(|&start| start <= position) as u32;
        let guesses = (0..=(end >> shift) + 1).map(|bucket| before(bucket << shift)).collect();
        Finder { starts, guesses, shift }
    }

    /// Returns the number of start addresses that are less than or equal to `position`, which must not be greater than
    /// the `end` that was given to [`Finder::new`].
    #[inline]
    pub fn before(&self, position: u64) -> usize {
        let bucket = (position >> self.shift) as usize;
        let (low, high) = (self.guesses[bucket] as usize, self.guesses[bucket + 1] as usize);
        if low == high {
            return low;
        }
        low + self.starts[low..high].partition_point(|&start| start <= position)
    }

    /// Returns the start addresses that were given to [`Finder::new`], in ascending order.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Returns the bytes of heap memory that the start addresses and their table take now.
    pub fn measured_bytes(&self) -> u64 {
        (self.starts.capacity() * size_of::<u64>() + self.guesses.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Checks that the finder counts as a walk over all starts does.
        #[test]
        fn counts_what_a_walk_counts(steps in prop::collection::vec(1u64..5000, 0..40), share in 0.0f64..1.0) {
            let mut starts = Vec::new();
            let mut end = 0;
            for step in &steps {
                end += step;
                starts.push(end - 1);
            }
            let finder = Finder::new(starts.clone(), end);
            for position in starts.iter().copied().chain([(share * end as f64) as u64, 0, end]) {
                prop_assert_eq!(finder.before(position), starts.iter().filter(|&&start| start <= position).count());
            }
        }
    }
}
