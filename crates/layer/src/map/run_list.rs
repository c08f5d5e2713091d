//! A short sorted list of runs, at 12 bytes a run: what of one unit (a band, a stretch of blocks) lies elsewhere than
//! at home. The maps of layers that cover a whole drive are arrays of such lists, so that a write costs one search
//! in a few lines of memory, and memory follows what was written.
//!
//! A list is one piece of memory: the offsets of its runs, then the length and the place of each. A search compares
//! offsets that lie side by side, so the processor fetches their lines at once and not one after the other.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by offset; a later run hides what it covers.
//! 2. Neighbours that continue each other are one run only where the caller said that they may join.
//! 3. Of three words for every run that there is room for, the first third holds offsets, the rest pairs of length
//!    and place.

use super::prefetch::{prefetch, prefetch_all};
use crate::layer::Coming;

/// The place of what is trimmed.
pub const ABSENT: u32 = u32::MAX;

/// A run of the unit, and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortRun {
    /// First of it within the unit.
    pub offset: u32,
    /// How many.
    pub length: u32,
    /// Where, in the layer's own counting; [`ABSENT`] if trimmed.
    pub place: u32,
}

impl ShortRun {
    /// One past its last within the unit.
    pub fn end(&self) -> u32 {
        self.offset + self.length
    }

    /// Whether it is trimmed.
    pub fn is_absent(&self) -> bool {
        self.place == ABSENT
    }

    /// The part within `from..to`, which it meets.
    pub fn clipped(&self, from: u32, to: u32) -> ShortRun {
        let offset = self.offset.max(from);
        let place = if self.is_absent() { ABSENT } else { self.place + (offset - self.offset) };
        ShortRun { offset, length: self.end().min(to) - offset, place }
    }

    fn continues(&self, before: &ShortRun) -> bool {
        let place_continues = match (before.is_absent(), self.is_absent()) {
            (true, true) => true,
            (false, false) => before.place + before.length == self.place,
            (true, false) | (false, true) => false,
        };
        place_continues && before.end() == self.offset
    }
}

/// Words that a run takes.
const WORDS: usize = 3;
/// Runs that a list has room for as soon as it has one.
const CAPACITY_MIN: usize = 4;
/// A search halves the list until so many offsets are left, and compares all of these: that takes no branches.
const COMPARED_MAX: usize = 64;

/// The runs of one unit.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    words: Box<[u32]>,
    len: u32,
}

impl RunList {
    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All runs, in order.
    pub fn runs(&self) -> impl Iterator<Item = ShortRun> + '_ {
        (0..self.len()).map(|index| self.run(index))
    }

    /// Bytes that the list takes beside itself.
    pub fn measured_bytes(&self) -> u64 {
        std::mem::size_of_val(&*self.words) as u64
    }

    /// Has what a search of the list reads fetched: where it comes in time, all that a change moves too.
    #[inline]
    pub fn foresee(&self, coming: Coming) {
        if coming == Coming::Later {
            return prefetch(self);
        }
        let (offsets, values) = self.words.split_at(self.capacity());
        if self.len() <= COMPARED_MAX {
            prefetch_all(&offsets[..self.len()]);
            prefetch_all(&values[..2 * self.len()]);
        } else {
            prefetch(&offsets[self.len() / 2]);
        }
    }

    /// The parts of the runs within `from..to`, in order.
    pub fn within(&self, from: u32, to: u32) -> impl Iterator<Item = ShortRun> + '_ {
        let reaching = (self.first_reaching(from)..self.len()).map(|index| self.run(index));
        reaching.take_while(move |run| run.offset < to).map(move |run| run.clipped(from, to))
    }

    /// Calls `visit(offset, length, place)` with every part of `from..to` in order, those without a run as `None`.
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

    /// Puts `run` over what was there; `may_join`: it may become one with the run before it. `hidden` is called as
    /// [`RunList::cover`] does.
    pub fn overlay(&mut self, run: ShortRun, may_join: bool, mut hidden: impl FnMut(u32, u32, Option<u32>)) {
        debug_assert!(run.length > 0, "invariant 1: an empty run at {}", run.offset);
        let first = self.first_reaching(run.offset);
        if first < self.len() && self.words[first] < run.end() {
            self.cover(run.offset, run.end(), &mut hidden);
            return self.replace(first, run.offset, run.end(), Some(run));
        }
        hidden(run.offset, run.length, None);
        match first.checked_sub(1).map(|before| (before, self.run(before))) {
            Some((before, joined)) if may_join && run.continues(&joined) => {
                self.set(before, ShortRun { length: joined.length + run.length, ..joined });
            }
            _ => self.splice(first, 0, [run].into_iter()),
        }
    }

    /// Forgets what lies in `from..to`; `removed` is called with each run or part of one.
    pub fn remove(&mut self, from: u32, to: u32, removed: impl FnMut(ShortRun)) {
        let first = self.first_reaching(from);
        self.within(from, to).for_each(removed);
        if first < self.len() && self.words[first] < to {
            self.replace(first, from, to, None);
        }
        if self.is_empty() {
            *self = RunList::default();
        }
    }

    /// The first run that ends past `offset`.
    fn first_reaching(&self, offset: u32) -> usize {
        let begun = self.begun_by(offset);
        let reaches = begun > 0 && self.run(begun - 1).end() > offset;
        begun - usize::from(reaches)
    }

    /// How many runs begin at `offset` or before it.
    fn begun_by(&self, offset: u32) -> usize {
        let (mut first, mut rest) = (0, &self.words[..self.len()]);
        while rest.len() > COMPARED_MAX {
            let (left, right) = rest.split_at(rest.len() / 2);
            if right[0] <= offset {
                first += left.len();
                rest = right;
            } else {
                rest = left;
            }
        }
        first + rest.iter().map(|&begin| u32::from(begin <= offset)).sum::<u32>() as usize
    }

    fn capacity(&self) -> usize {
        self.words.len() / WORDS
    }

    fn run(&self, index: usize) -> ShortRun {
        let value = self.capacity() + 2 * index;
        ShortRun { offset: self.words[index], length: self.words[value], place: self.words[value + 1] }
    }

    fn set(&mut self, index: usize, run: ShortRun) {
        let value = self.capacity() + 2 * index;
        self.words[index] = run.offset;
        self.words[value] = run.length;
        self.words[value + 1] = run.place;
    }

    /// Replaces what lies in `from..to`, the first of it being run number `first`.
    fn replace(&mut self, first: usize, from: u32, to: u32, with: Option<ShortRun>) {
        let met = self.words[first..self.len()].iter().take_while(|&&begin| begin < to).count();
        let (left, right) = (self.run(first), self.run(first + met - 1));
        let parts = [
            (left.offset < from).then(|| left.clipped(0, from)),
            with,
            (right.end() > to).then(|| right.clipped(to, right.end())),
        ];
        self.splice(first, met, parts.into_iter().flatten());
    }

    /// Puts `parts` in the place of `met` runs from number `first` on.
    fn splice(&mut self, first: usize, met: usize, parts: impl Iterator<Item = ShortRun> + Clone) {
        let (count, len) = (parts.clone().count(), self.len());
        if len - met + count > self.capacity() {
            self.grow(len - met + count);
        }
        if met != count && first + met < len {
            let values = self.capacity();
            self.words.copy_within(first + met..len, first + count);
            self.words.copy_within(values + 2 * (first + met)..values + 2 * len, values + 2 * (first + count));
        }
        self.len = (len - met + count) as u32;
        (first..).zip(parts).for_each(|(index, run)| self.set(index, run));
    }

    /// Makes room for so many runs.
    #[cold]
    fn grow(&mut self, runs: usize) {
        let (capacity, len) = (runs.max(2 * self.capacity()).max(CAPACITY_MIN), self.len());
        let mut words = vec![0; WORDS * capacity].into_boxed_slice();
        words[..len].copy_from_slice(&self.words[..len]);
        let values = &self.words[self.capacity()..];
        words[capacity..capacity + 2 * len].copy_from_slice(&values[..2 * len]);
        self.words = words;
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the list equals a naive one, item by item. Method: random overlays, trims and removals on both.

    use proptest::prelude::*;

    use super::*;

    const UNIT: usize = 48;

    fn placed(place: u32, i: u32) -> u32 {
        if place == ABSENT { ABSENT } else { place + i }
    }

    fn contents(list: &RunList) -> [Option<u32>; UNIT] {
        let mut seen = [None; UNIT];
        let mut end = 0;
        for run in list.runs() {
            assert!(run.offset >= end && run.length > 0, "{run:?} after {end}");
            end = run.end();
            (0..run.length).for_each(|i| seen[(run.offset + i) as usize] = Some(placed(run.place, i)));
        }
        seen
    }

    proptest! {
        #[test]
        fn equals_a_naive_list(steps in prop::collection::vec((0u32..46, 1u32..12, 0u8..5), 1..60)) {
            let mut list = RunList::default();
            let mut naive: [Option<u32>; UNIT] = [None; UNIT];
            let mut next_place = 100;
            for (offset, length, what) in steps {
                let length = length.min(UNIT as u32 - offset);
                let mut hidden = [None; UNIT];
                let mut hide = |offset: u32, length: u32, place: Option<u32>| {
                    (0..length).for_each(|i| hidden[(offset + i) as usize] = Some(place.map(|place| placed(place, i))));
                };
                let range = offset as usize..(offset + length) as usize;
                let place = match what {
                    0 => None,
                    1 => Some(ABSENT),
                    _ => Some(next_place),
                };
                match place {
                    None => list.remove(offset, offset + length, |run| hide(run.offset, run.length, Some(run.place))),
                    Some(place) => list.overlay(ShortRun { offset, length, place }, what < 4, hide),
                }
                next_place += length;
                for i in range.clone() {
                    let expected = if place.is_none() { naive[i].map(Some) } else { Some(naive[i]) };
                    prop_assert_eq!(hidden[i], expected);
                }
                for (i, slot) in naive[range].iter_mut().enumerate() {
                    *slot = place.map(|place| placed(place, i as u32));
                }
                prop_assert_eq!(contents(&list), naive);
                let mut covered = 5;
                list.cover(5, 40, |offset, length, place| {
                    assert_eq!(offset, covered);
                    covered += length;
                    (0..length).for_each(|i| {
                        assert_eq!(naive[(offset + i) as usize], place.map(|place| placed(place, i)));
                    });
                });
                prop_assert_eq!(covered, 40);
            }
        }
    }

    /// Goal: a list that a search has to halve equals a naive one too. Method: a thousand runs in scrambled order, with others over
    /// some of them; then what lies in every window.
    #[test]
    fn a_long_list_equals_a_naive_one() {
        const RUNS: u32 = 1000;
        let mut list = RunList::default();
        let mut naive = vec![None; 4 * RUNS as usize + 8];
        for number in 0..2 * RUNS {
            // Coprime to the number of runs: each comes once, then every one is met again a little further on.
            let (offset, length) = (number * 379 % RUNS * 4 + number / RUNS, 1 + number % 3 + number / RUNS * 2);
            let run = ShortRun { offset, length, place: number * 10 };
            list.overlay(run, false, |offset, length, place| {
                (0..length).for_each(|i| assert_eq!(naive[(offset + i) as usize], place.map(|place| place + i)));
            });
            (0..length).for_each(|i| naive[(offset + i) as usize] = Some(run.place + i));
        }
        assert!(list.len() > 10 * COMPARED_MAX, "{} runs", list.len());
        for from in 0..4 * RUNS {
            list.cover(from, from + 7, |offset, length, place| {
                (0..length).for_each(|i| assert_eq!(naive[(offset + i) as usize], place.map(|place| place + i)));
            });
        }
    }

    #[test]
    fn a_run_joins_only_what_it_continues() {
        let mut list = RunList::default();
        let run = |offset, place| ShortRun { offset, length: 2, place };
        for (run, may_join, expected) in [(run(0, 10), true, 1), (run(2, 12), true, 1), (run(4, 14), false, 2)] {
            list.overlay(run, may_join, |_, _, _| {});
            assert_eq!(list.len(), expected);
        }
        list.overlay(run(6, 20), true, |_, _, _| {});
        assert_eq!(list.len(), 3);
    }
}
