//! The set of live logical sectors: those written and not trimmed since. Kept only with `skip_dead=on`, where dead
//! neighbours of a bottom track need no rewriting.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty, and do not touch.

use std::collections::BTreeMap;

use imbrex_disk::Lba;

/// The set of live logical sectors: those that were written and not trimmed since. Stored as disjoint runs that do not
/// touch.
#[derive(Clone, Default, Debug)]
pub struct LiveSet {
    /// End of each run, by its first sector.
    runs: BTreeMap<u64, u64>,
}

impl LiveSet {
    /// Marks the sectors from `start` up to, not including, `end` as live. Returns whether any of them was dead before.
    /// The range must not be empty.
    pub fn insert(&mut self, start: Lba, end: Lba) -> bool {
        let (mut start, mut end) = (start.0, end.0);
        if let Some((&first, &last)) = self.runs.range(..=start).next_back() {
            if last >= end {
                return false;
            }
            if last >= start {
                start = first;
            }
        }
        while let Some((&first, &last)) = self.runs.range(start..=end).next() {
            self.runs.remove(&first);
            end = end.max(last);
        }
        self.runs.insert(start, end);
        true
    }

    /// Marks the sectors from `start` up to, not including, `end` as dead. Returns whether any of them was live before.
    /// The range must not be empty.
    pub fn remove(&mut self, start: Lba, end: Lba) -> bool {
        let (start, end) = (start.0, end.0);
        let mut removed = false;
        while let Some((&first, &last)) = self.runs.range(..end).next_back() {
            if last <= start {
                break;
            }
            removed = true;
            self.runs.remove(&first);
            if first < start {
                self.runs.insert(first, start);
            }
            if last > end {
                self.runs.insert(end, last);
            }
        }
        removed
    }

    /// Splits the sectors from `start` up to, not including, `end` into live and dead parts. Calls `visit(first, end,
    /// live)` with each part in order; `end` is exclusive. The range must not be empty.
    pub fn cover(&self, start: Lba, end: Lba, mut visit: impl FnMut(Lba, Lba, bool)) {
        let before = self.runs.range(..start.0).next_back().filter(|&(_, &last)| last > start.0);
        let mut next = start;
        for (&first, &last) in before.into_iter().chain(self.runs.range(start.0..end.0)) {
            let (from, to) = (Lba(first.max(start.0)), Lba(last.min(end.0)));
            if next < from {
                visit(next, from, false);
            }
            visit(from, to, true);
            next = to;
        }
        if next < end {
            visit(next, end, false);
        }
    }

    /// Returns all runs of live sectors as (start, exclusive end), in order of LBA. Adjacent live sectors are in one
    /// run.
    pub fn iter(&self) -> impl Iterator<Item = (Lba, Lba)> + '_ {
        self.runs.iter().map(|(&start, &end)| (Lba(start), Lba(end)))
    }

    /// Returns whether the runs are non-empty, disjoint, and not adjacent (invariant 1).
    pub fn is_sound(&self) -> bool {
        let mut end_before = None;
        self.runs.iter().all(|(&start, &end)| {
            let sound = start < end && end_before.is_none_or(|before| before < start);
            end_before = Some(end);
            sound
        })
    }

    /// Returns the bytes of memory that the set takes, estimated from the standard library's tree: nodes of eleven
    /// entries, two thirds full.
    pub fn measured_bytes(&self) -> u64 {
        (self.runs.len() * 2 * size_of::<u64>() * 3 / 2) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Checks that the runs agree with an array of sectors on every sector.
        #[test]
        fn equals_an_array(changes in prop::collection::vec((0u64..60, 1u64..20, any::<bool>()), 1..60)) {
            let mut live = LiveSet::default();
            let mut twin = [false; 80];
            for (start, sectors, alive) in changes {
                let sectors_of = &mut twin[start as usize..(start + sectors) as usize];
                let changes = sectors_of.iter().any(|&sector| sector != alive);
                sectors_of.fill(alive);
                let (from, to) = (Lba(start), Lba(start + sectors));
                let changed = if alive { live.insert(from, to) } else { live.remove(from, to) };
                prop_assert_eq!(changed, changes);
                prop_assert!(live.is_sound());
                let mut next = 3;
                live.cover(Lba(3), Lba(77), |from, to, alive| {
                    assert_eq!(from.0, next);
                    assert!(twin[from.0 as usize..to.0 as usize].iter().all(|&sector| sector == alive));
                    next = to.0;
                });
                prop_assert_eq!(next, 77);
            }
        }
    }
}
