//! A short sorted list of runs, at 12 bytes a run: what of one unit (a band, a stretch of blocks) lies elsewhere than
//! at home. The maps of layers that cover a whole drive are arrays of such lists, so that a write costs one binary
//! search in a few lines of memory, and memory follows what was written.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by offset; a later run hides what it covers.
//! 2. Neighbours that continue each other are one run only where the caller said that they may join.

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

/// The runs of one unit.
#[derive(Clone, Debug, Default)]
pub struct RunList {
    runs: Vec<ShortRun>,
}

impl RunList {
    /// All runs, in order.
    pub fn runs(&self) -> &[ShortRun] {
        &self.runs
    }

    /// Bytes that the list takes beside itself.
    pub fn measured_bytes(&self) -> u64 {
        (self.runs.capacity() * std::mem::size_of::<ShortRun>()) as u64
    }

    /// The parts of the runs within `from..to`, in order.
    pub fn within(&self, from: u32, to: u32) -> impl Iterator<Item = ShortRun> + '_ {
        let reaching = &self.runs[self.first_reaching(from)..];
        reaching.iter().take_while(move |run| run.offset < to).map(move |run| run.clipped(from, to))
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
        if self.runs.get(first).is_none_or(|next| next.offset >= run.end()) {
            hidden(run.offset, run.length, None);
            match first.checked_sub(1).map(|before| &mut self.runs[before]) {
                Some(before) if may_join && run.continues(before) => before.length += run.length,
                _ => self.runs.insert(first, run),
            }
            return;
        }
        self.cover(run.offset, run.end(), &mut hidden);
        self.replace(first, run.offset, run.end(), Some(run));
    }

    /// Forgets what lies in `from..to`; `removed` is called with each run or part of one.
    pub fn remove(&mut self, from: u32, to: u32, removed: impl FnMut(ShortRun)) {
        let first = self.first_reaching(from);
        self.within(from, to).for_each(removed);
        if self.runs.get(first).is_some_and(|run| run.offset < to) {
            self.replace(first, from, to, None);
        }
        if self.runs.is_empty() {
            self.runs = Vec::new();
        }
    }

    fn first_reaching(&self, offset: u32) -> usize {
        self.runs.partition_point(|run| run.end() <= offset)
    }

    /// Replaces what lies in `from..to`, the first of it being run number `first`.
    fn replace(&mut self, first: usize, from: u32, to: u32, with: Option<ShortRun>) {
        let met = self.runs[first..].iter().take_while(|run| run.offset < to).count();
        let (left, right) = (self.runs[first], self.runs[first + met - 1]);
        let parts = [
            (left.offset < from).then(|| left.clipped(0, from)),
            with,
            (right.end() > to).then(|| right.clipped(to, right.end())),
        ];
        self.runs.splice(first..first + met, parts.into_iter().flatten());
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

    #[test]
    fn a_run_joins_only_what_it_continues() {
        let mut list = RunList::default();
        let run = |offset, place| ShortRun { offset, length: 2, place };
        for (run, may_join, expected) in [(run(0, 10), true, 1), (run(2, 12), true, 1), (run(4, 14), false, 2)] {
            list.overlay(run, may_join, |_, _, _| {});
            assert_eq!(list.runs().len(), expected);
        }
        list.overlay(run(6, 20), true, |_, _, _| {});
        assert_eq!(list.runs().len(), 3);
    }
}
