//! A short sorted list of runs, at six to twelve bytes a run: the parts of one unit (a band, a stretch of blocks) that
//! do not lie at home. The maps of layers that cover a whole drive are arrays of run lists. So a write costs one search
//! in a few cache lines, and memory use is proportional to the number of written runs.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by offset; a later run hides the parts of older runs that it covers.
//! 2. Neighbours that continue each other are merged only where the caller allowed that.

use super::packed_runs::PackedRuns;
use super::prefetch::prefetch;
use super::short_run::ShortRun;
use crate::layer::PrefetchHint;

/// A sorted list of disjoint runs of one unit (a band or a stretch of blocks), each with its place: the parts of the
/// unit that do not lie at their home place. Offsets are counted from the start of the unit, in sectors or blocks.
#[derive(Clone, Debug)]
pub struct RunList {
    runs: PackedRuns,
}

impl RunList {
    /// Returns an empty list. Runs whose places are below `places` are packed most densely; a run at a larger place is
    /// stored too, in more bytes. Places are numbers that the layer defines.
    pub fn new(places: u32) -> RunList {
        RunList { runs: PackedRuns::new(places) }
    }

    /// Returns the number of runs in the list, trimmed ones included.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns whether the list has no runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all runs and frees their memory.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Moves all runs to a new list, which is returned, and leaves this list empty.
    pub fn take(&mut self) -> RunList {
        RunList { runs: self.runs.take() }
    }

    /// Returns all runs, in order of offset.
    pub fn runs(&self) -> impl Iterator<Item = ShortRun> + '_ {
        (0..self.len()).map(|index| self.runs.run(index))
    }

    /// Returns the bytes of heap memory that the list takes, unused capacity included.
    pub fn measured_bytes(&self) -> u64 {
        self.runs.measured_bytes()
    }

    /// Makes the processor prefetch memory for a search in the list. For [`PrefetchHint::Later`] that is the list's
    /// header, for [`PrefetchHint::Next`] the runs themselves.
    #[inline]
    pub fn foresee(&self, coming: PrefetchHint) {
        match coming {
            PrefetchHint::Later => prefetch(self),
            PrefetchHint::Next => self.runs.foresee(),
        }
    }

    /// Returns the runs that overlap the offsets from `from` up to, not including, `to`, clipped to that range, in
    /// order of offset. Gaps are left out; trimmed runs are included.
    pub fn within(&self, from: u32, to: u32) -> impl Iterator<Item = ShortRun> + '_ {
        let reaching = (self.first_reaching(from)..self.len()).map(|index| self.runs.run(index));
        reaching.take_while(move |run| run.offset < to).map(move |run| run.clipped(from, to))
    }

    /// Calls `visit(offset, length, place)` with every part of the offsets `from..to`, in order. The parts are the
    /// runs, clipped to that range, and the gaps between them, whose place is `None`. Trimmed runs have the place
    /// [`ABSENT`](super::short_run::ABSENT).
    pub fn cover(&self, from: u32, to: u32, mut visit: impl FnMut(u32, u32, Option<u32>)) {
        let mut next = from;
        for run in self.within(from, to) {
            if run.offset > next {
                visit(next, run.offset - next, None);
            }
            visit(run.offset, run.length, Some(run.place));
            next = run.end();
        }
        if next < to {
            visit(next, to - next, None);
        }
    }

    /// Adds `run`, which must not be empty, and removes the parts of older runs that it covers. Calls
    /// `hidden(offset, length, place)` with each part of the old contents of its range, in order; the place of a gap is
    /// `None`. If `may_join` is set, `run` is merged with the run before it, if it continues that run in offset and
    /// place and covers no older run.
    pub fn overlay(&mut self, run: ShortRun, may_join: bool, mut hidden: impl FnMut(u32, u32, Option<u32>)) {
        debug_assert!(run.length > 0, "invariant 1: an empty run at {}", run.offset);
        let begun = self.runs.upper_bound(run.offset);
        let before = begun.checked_sub(1).map(|before| self.runs.run(before));
        let reaches = before.is_some_and(|before| before.end() > run.offset);
        if let Some(same) = before.filter(|before| (before.offset, before.length) == (run.offset, run.length)) {
            hidden(same.offset, same.length, Some(same.place));
            return self.runs.set(begun - 1, run);
        }
        if reaches || begun < self.len() && self.runs.offset(begun) < run.end() {
            self.cover(run.offset, run.end(), &mut hidden);
            return self.replace(begun - usize::from(reaches), run.offset, run.end(), Some(run));
        }
        hidden(run.offset, run.length, None);
        match before {
            Some(joined) if may_join && run.continues(&joined) => {
                self.runs.set(begun - 1, ShortRun { length: joined.length + run.length, ..joined });
            }
            _ => self.runs.insert(begun, run),
        }
    }

    /// Removes the runs, and the parts of runs, that lie in the offsets from `from` up to, not including, `to`. Calls
    /// `removed` with each of them, in order of offset.
    pub fn remove(&mut self, from: u32, to: u32, removed: impl FnMut(ShortRun)) {
        let first = self.first_reaching(from);
        self.within(from, to).for_each(removed);
        if first < self.len() && self.runs.offset(first) < to {
            self.replace(first, from, to, None);
        }
        if self.is_empty() {
            self.clear();
        }
    }

    /// Returns the index of the first run that ends past `offset`.
    fn first_reaching(&self, offset: u32) -> usize {
        let begun = self.runs.upper_bound(offset);
        let reaches = begun > 0 && self.runs.run(begun - 1).end() > offset;
        begun - usize::from(reaches)
    }

    /// Replaces the contents of `from..to` by `with`. `first` is the index of the first run in that range.
    fn replace(&mut self, first: usize, from: u32, to: u32, with: Option<ShortRun>) {
        let met = (first..self.len()).take_while(|&index| self.runs.offset(index) < to).count();
        let (left, right) = (self.runs.run(first), self.runs.run(first + met - 1));
        let parts = [
            (left.offset < from).then(|| left.clipped(0, from)),
            with,
            (right.end() > to).then(|| right.clipped(to, right.end())),
        ];
        let (mut kept, mut count) = ([left; 3], 0);
        for part in parts.into_iter().flatten() {
            kept[count] = part;
            count += 1;
        }
        self.runs.splice(first, met, &kept[..count]);
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the list equals a naive one, item by item. Method: random overlays, trims and removals on both. Places and
    //! offsets are chosen so that runs are stored in the narrow form, in a wider one, or in several in turn.

    use proptest::prelude::*;

    use super::super::short_run::ABSENT;
    use super::*;

    const UNIT: usize = 48;

    fn placed(place: u32, i: u32) -> u32 {
        if place == ABSENT { ABSENT } else { place + i }
    }

    fn contents(list: &RunList, base: u32) -> [Option<u32>; UNIT] {
        let mut seen = [None; UNIT];
        let mut end = base;
        for run in list.runs() {
            assert!(run.offset >= end && run.length > 0, "{run:?} after {end}");
            end = run.end();
            (0..run.length).for_each(|i| seen[(run.offset - base + i) as usize] = Some(placed(run.place, i)));
        }
        seen
    }

    proptest! {
        #[test]
        fn equals_a_naive_list(
            base in prop::sample::select(vec![0, (1 << 16) - 24, 1 << 31]),
            places in prop::sample::select(vec![1000, 1 << 28, 1 << 30, u32::MAX]),
            steps in prop::collection::vec((0u32..46, 1u32..12, 0u8..5), 1..60),
        ) {
            let mut list = RunList::new(places);
            let mut naive: [Option<u32>; UNIT] = [None; UNIT];
            let mut next_place = 100;
            for (offset, length, what) in steps {
                let length = length.min(UNIT as u32 - offset);
                let mut hidden = [None; UNIT];
                let mut hide = |offset: u32, length: u32, place: Option<u32>| {
                    (0..length).for_each(|i| hidden[(offset - base + i) as usize] = Some(place.map(|place| placed(place, i))));
                };
                let range = offset as usize..(offset + length) as usize;
                let place = match what {
                    0 => None,
                    1 => Some(ABSENT),
                    _ => Some(next_place),
                };
                match place {
                    None => list.remove(base + offset, base + offset + length, |run| hide(run.offset, run.length, Some(run.place))),
                    Some(place) => list.overlay(ShortRun { offset: base + offset, length, place }, what < 4, hide),
                }
                next_place += length;
                for i in range.clone() {
                    let expected = if place.is_none() { naive[i].map(Some) } else { Some(naive[i]) };
                    prop_assert_eq!(hidden[i], expected);
                }
                for (i, slot) in naive[range].iter_mut().enumerate() {
                    *slot = place.map(|place| placed(place, i as u32));
                }
                prop_assert_eq!(contents(&list, base), naive);
                let mut covered = base + 5;
                list.cover(base + 5, base + 40, |offset, length, place| {
                    assert_eq!(offset, covered);
                    covered += length;
                    (0..length).for_each(|i| {
                        assert_eq!(naive[(offset - base + i) as usize], place.map(|place| placed(place, i)));
                    });
                });
                prop_assert_eq!(covered, base + 40);
            }
        }
    }

    /// Checks that a list long enough for a binary search equals a naive one. A thousand runs are inserted in scrambled
    /// order, then runs that overlap them; then the contents of every window are compared.
    #[test]
    fn a_long_list_equals_a_naive_one() {
        const RUNS: u32 = 1000;
        let mut list = RunList::new(20 * RUNS);
        let mut naive = vec![None; 4 * RUNS as usize + 8];
        for number in 0..2 * RUNS {
            // Coprime to the number of runs: the first thousand numbers give each offset once, the second thousand each
            // offset plus one.
            let (offset, length) = (number * 379 % RUNS * 4 + number / RUNS, 1 + number % 3 + number / RUNS * 2);
            let run = ShortRun { offset, length, place: number * 10 };
            list.overlay(run, false, |offset, length, place| {
                (0..length).for_each(|i| assert_eq!(naive[(offset + i) as usize], place.map(|place| place + i)));
            });
            (0..length).for_each(|i| naive[(offset + i) as usize] = Some(run.place + i));
        }
        assert!(list.len() > 700, "{} runs", list.len());
        for from in 0..4 * RUNS {
            list.cover(from, from + 7, |offset, length, place| {
                (0..length).for_each(|i| assert_eq!(naive[(offset + i) as usize], place.map(|place| place + i)));
            });
        }
    }

    #[test]
    fn a_run_joins_only_what_it_continues() {
        let mut list = RunList::new(100);
        let run = |offset, place| ShortRun { offset, length: 2, place };
        for (run, may_join, expected) in [(run(0, 10), true, 1), (run(2, 12), true, 1), (run(4, 14), false, 2)] {
            list.overlay(run, may_join, |_, _, _| {});
            assert_eq!(list.len(), expected);
        }
        list.overlay(run(6, 20), true, |_, _, _| {});
        assert_eq!(list.len(), 3);
    }
}
