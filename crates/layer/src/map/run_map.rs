//! A map from runs of numbers to values that may depend on the position in the run: versions by LBA, sets of occupied
//! places.
//!
//! The checker judges layers that use [`crate::map::extent_map`], so its own map is independent of that one. Runs may
//! be longer than 2³² sectors.
//!
//! Invariants:
//! 1. Runs are disjoint and non-empty.

use std::collections::BTreeMap;

/// A value that a [`RunMap`] stores for a run. The value may change along the run, as a place on a disk does.
pub trait Along: Copy {
    /// Returns the value at the position `offset` positions after the one that has the value `self`.
    fn along(self, offset: u64) -> Self;
}

/// A version, which is equal for all sectors of a run.
impl Along for u64 {
    fn along(self, _offset: u64) -> u64 {
        self
    }
}

/// Membership in a set, without a value.
impl Along for () {
    fn along(self, _offset: u64) {}
}

/// A map from runs of consecutive numbers (positions) to values. Runs do not overlap, and neighbouring runs are never
/// merged.
#[derive(Clone, Debug)]
pub struct RunMap<V> {
    runs: BTreeMap<u64, (u64, V)>,
}

impl<V> Default for RunMap<V> {
    fn default() -> Self {
        RunMap { runs: BTreeMap::new() }
    }
}

impl<V: Along> RunMap<V> {
    /// Removes all runs.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Returns the number of runs, not of positions.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns whether the map has no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Maps the positions from `start` up to, not including, `start + length` as one run. Older runs are removed there,
    /// and keep their other positions. `value` is the value at `start`; [`Along::along`] gives the values at later
    /// positions. A length of 0 changes nothing.
    pub fn insert(&mut self, start: u64, length: u64, value: V) {
        if length == 0 {
            return;
        }
        // Most inserts hide nothing. The last run that begins before the new end shows that with one descent of the
        // tree.
        let last = self.runs.range(..start + length).next_back();
        if last.is_some_and(|(&first, &(run, _))| first + run > start) {
            self.remove(start, length);
        }
        self.runs.insert(start, (length, value));
    }

    /// Unmaps the positions from `start` up to, not including, `start + length`. Runs that reach out of that range keep
    /// their other positions with unchanged values.
    pub fn remove(&mut self, start: u64, length: u64) {
        let end = start + length;
        if let Some((&first, &(run_length, value))) = self.runs.range(..start).next_back() {
            let run_end = first + run_length;
            if run_end > start {
                self.runs.insert(first, (start - first, value));
                if run_end > end {
                    self.runs.insert(end, (run_end - end, value.along(end - first)));
                    return;
                }
            }
        }
        let last = self.runs.extract_if(start..end, |_, _| true).last();
        if let Some((first, (run_length, value))) = last.filter(|(first, (run_length, _))| first + run_length > end) {
            self.runs.insert(end, (first + run_length - end, value.along(end - first)));
        }
    }

    /// Returns the start and the exclusive end of the lowest run, or `None` if the map is empty.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.runs.first_key_value().map(|(&start, &(length, _))| (start, start + length))
    }

    /// Removes the runs whose exclusive end is at most `end`. A run that ends later stays whole, even if it begins
    /// before `end`.
    pub fn forget_before(&mut self, end: u64) {
        while let Some(first) = self.runs.first_entry().filter(|first| first.key() + first.get().0 <= end) {
            first.remove();
        }
    }

    /// Calls `visit(start, length, value)` with every part of the positions from `start` up to, not including, `start +
    /// length`, in order. Parts are runs, clipped to that range, and the gaps between them, whose value is `None`. The
    /// value of a run is the one at the start of the part.
    pub fn cover(&self, start: u64, length: u64, mut visit: impl FnMut(u64, u64, Option<V>)) {
        let end = start + length;
        let before = self.runs.range(..start).next_back().filter(|&(&first, &(run, _))| first + run > start);
        let mut next = start;
        for (&first, &(run_length, value)) in before.into_iter().chain(self.runs.range(start..end)) {
            let from = first.max(start);
            let to = (first + run_length).min(end);
            if from > next {
                visit(next, from - next, None);
            }
            visit(from, to - from, Some(value.along(from - first)));
            next = to;
        }
        if next < end {
            visit(next, end - next, None);
        }
    }

    /// Returns all runs as (start, length, value), in order of position. The value is the one at the run's start.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, V)> + '_ {
        self.runs.iter().map(|(&start, &(length, value))| (start, length, value))
    }

    /// Returns the start and the exclusive end of the lowest run that has one of the positions from `start` up to, not
    /// including, `start + length`. The run is not clipped: it may begin before `start`. Returns `None` if there is no
    /// such run.
    pub fn first_overlap(&self, start: u64, length: u64) -> Option<(u64, u64)> {
        let before = self.runs.range(..start).next_back().filter(|&(&first, &(run, _))| first + run > start);
        let found = before.or_else(|| self.runs.range(start..start + length).next());
        found.map(|(&first, &(run, _))| (first, first + run))
    }
}

#[cfg(test)]
mod tests {
    //! Goal: equals a naive map. Method: random inserts and removes in a small space, on both.

    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Moving(u64);

    impl Along for Moving {
        fn along(self, offset: u64) -> Moving {
            Moving(self.0 + offset)
        }
    }

    proptest! {
        #[test]
        fn equals_a_naive_map(steps in prop::collection::vec((0u64..60, 1u64..20, any::<bool>()), 1..60)) {
            let mut map = RunMap::default();
            let mut naive = [None; 80];
            for (number, (start, length, insert)) in steps.into_iter().enumerate() {
                let value = insert.then_some(Moving(number as u64 * 1000));
                match value {
                    Some(value) => map.insert(start, length, value),
                    None => map.remove(start, length),
                }
                for offset in 0..length {
                    naive[(start + offset) as usize] = value.map(|value| value.along(offset));
                }
                let mut next = 5;
                map.cover(5, 70, |at, run, value| {
                    assert_eq!(at, next);
                    for offset in 0..run {
                        assert_eq!(value.map(|value| value.along(offset)), naive[(at + offset) as usize]);
                    }
                    next = at + run;
                });
                prop_assert_eq!(next, 75);
                let taken = (10..20).find(|&at| naive[at as usize].is_some());
                prop_assert_eq!(map.first_overlap(10, 10).is_some(), taken.is_some());
            }
        }
    }
}
