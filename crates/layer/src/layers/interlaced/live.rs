//! Which logical sectors hold data: those written and not trimmed since. Only for `skip_dead=on`, where dead neighbours
//! of a bottom track need no rewriting.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty, and do not touch.

use std::collections::BTreeMap;

use imbrex_disk::Lba;

/// The live sectors, as runs.
#[derive(Clone, Default, Debug)]
pub struct LiveSet {
    /// First sector of each run, and the end of it.
    runs: BTreeMap<u64, u64>,
}

impl LiveSet {
    /// The sectors from `start` up to `end` are live; says whether any was not.
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

    /// The sectors from `start` up to `end` are dead; says whether any was not.
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

    /// Calls `visit` with the parts of `start` up to `end`, in order, and whether they are live.
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

    /// All runs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Lba, Lba)> + '_ {
        self.runs.iter().map(|(&start, &end)| (Lba(start), Lba(end)))
    }

    /// Whether invariant 1 holds.
    pub fn is_sound(&self) -> bool {
        let mut end_before = None;
        self.runs.iter().all(|(&start, &end)| {
            let sound = start < end && end_before.is_none_or(|before| before < start);
            end_before = Some(end);
            sound
        })
    }

    /// Bytes it takes, as the standard library lays out its tree: nodes of eleven, two thirds full.
    pub fn measured_bytes(&self) -> u64 {
        (self.runs.len() * 2 * size_of::<u64>() * 3 / 2) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Goal: the runs say of every sector what an array of sectors says.
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
