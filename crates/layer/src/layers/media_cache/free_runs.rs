//! The free places of a cache that is overwritten in place, as runs.
//!
//! Places are taken in the order of the medium, round robin, so one free run after the other is filled from its
//! beginning. The run being filled is kept apart from the others.
//!
//! Invariants:
//! 1. Free runs are disjoint, lie within a zone, and those of one zone do not touch.
//! 2. The run being filled begins where the last place taken ended.

use std::collections::BTreeMap;

use imbrex_disk::{Extent, Pba, Sectors};

/// Number of free runs examined to find one that takes a write whole; if none does, the write is cut.
const SEARCHED_MAX: usize = 16;

/// The free physical sectors of a cache that is overwritten in place, as runs. Free runs are filled one after the
/// other, in the order of the disk, round robin.
#[derive(Debug)]
pub(super) struct FreeRuns {
    /// First sector of each free run, by the run's end, without the run being filled.
    runs: BTreeMap<u64, u64>,
    /// The rest of the run that is being filled.
    filling: Extent,
    /// Position at which the search for a free place continues.
    next: u64,
}

impl FreeRuns {
    /// Returns the free runs of a cache of which all `zones` are free.
    pub(super) fn new(zones: &[Extent]) -> FreeRuns {
        let runs = zones.iter().map(|zone| (zone.end().0, zone.start.0)).collect();
        FreeRuns { runs, filling: Extent::default(), next: 0 }
    }

    /// Returns the number of free sectors within `zone`.
    pub(super) fn within(&self, zone: Extent) -> Sectors {
        let ends = zone.start.0 + 1..zone.end().0 + 1;
        let others: u64 = self.runs.range(ends).map(|(end, start)| end - start).sum();
        Sectors(others) + self.filling.intersection(zone).map_or(Sectors::ZERO, |filling| filling.sectors)
    }

    /// Returns the total number of free sectors.
    pub(super) fn sectors(&self) -> u64 {
        self.filling.sectors.0 + self.runs.iter().map(|(end, start)| end - start).sum::<u64>()
    }

    /// Returns whether all of `place` is free.
    pub(super) fn is_free(&self, place: Extent) -> bool {
        let holds = |run: Extent| run.start <= place.start && place.end() <= run.end();
        let other = self.runs.range(place.end().0..).next();
        holds(self.filling) || other.is_some_and(|(&end, &start)| holds(Extent::between(Pba(start), Pba(end))))
    }

    /// Returns free physical sectors for a write of `sectors`: a run as long as the write, or a shorter one if none of
    /// the next free runs is as long. Returns `None` if no sector is free. The run stays free until [`FreeRuns::take`].
    #[inline]
    pub(super) fn place(&mut self, sectors: Sectors) -> Option<Extent> {
        if sectors <= self.filling.sectors {
            return Some(Extent::new(self.filling.start, sectors));
        }
        self.put_back();
        self.search(sectors)
    }

    fn search(&self, sectors: Sectors) -> Option<Extent> {
        let mut ahead = self.runs.range(self.next + 1..).peekable();
        let straddling = ahead.next_if(|&(_, &start)| start < self.next);
        let going_round = ahead.chain(self.runs.range(..=self.next)).chain(straddling).take(SEARCHED_MAX);
        let mut longest: Option<Extent> = None;
        for place in going_round.map(|(&end, &start)| Extent::between(Pba(start), Pba(end))) {
            if place.sectors >= sectors {
                return Some(Extent::new(place.start, sectors));
            }
            if longest.is_none_or(|longest| place.sectors > longest.sectors) {
                longest = Some(place);
            }
        }
        longest
    }

    /// Moves the run being filled back among the other runs.
    fn put_back(&mut self) {
        if !self.filling.is_empty() {
            self.runs.insert(self.filling.end().0, self.filling.start.0);
            self.filling = Extent::default();
        }
    }

    /// Removes `place` from the free runs. The rest of its run is filled next.
    ///
    /// # Panics
    ///
    /// If a sector of `place` is not free.
    #[inline]
    pub(super) fn take(&mut self, place: Extent) {
        if place.start != self.filling.start || place.sectors > self.filling.sectors {
            self.begin_filling(place);
        }
        self.filling = Extent::between(place.end(), self.filling.end());
        self.next = place.end().0;
    }

    /// Makes the free run that contains `place` the run being filled, from the start of `place` on.
    fn begin_filling(&mut self, place: Extent) {
        self.put_back();
        let run = self.runs.range(place.end().0..).next().map(|(&end, &start)| (start, end));
        let (start, end) = run.expect("invariant 1: the place is free");
        assert!(start <= place.start.0, "invariant 1: {place:?} reaches out of the free run from {start} to {end}");
        self.runs.remove(&end);
        if start < place.start.0 {
            self.runs.insert(place.start.0, start);
        }
        self.filling = Extent::between(place.start, Pba(end));
    }

    /// Adds `place`, which must lie in `zone` and not be free, to the free runs. It is merged with free runs of that
    /// zone that touch it.
    pub(super) fn give(&mut self, place: Extent, zone: Extent) {
        self.put_back();
        let (mut start, end) = (place.start.0, place.end().0);
        if start > zone.start.0 {
            start = self.runs.remove(&start).unwrap_or(start);
        }
        let next = self.runs.range_mut(end + 1..).next().filter(|(_, first)| **first == end && end < zone.end().0);
        match next {
            Some((_, first)) => *first = start,
            None => {
                self.runs.insert(end, start);
            }
        }
    }

    /// Returns the bytes of memory that the tree takes: keys and values in nodes of eleven entries, two thirds full.
    pub(super) fn measured_bytes(&self) -> u64 {
        (self.runs.len() * 16 * 3 / 2) as u64
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the places are those that an array of sectors shows as free, one run after the other. Method: places are
    //! taken, some where the search finds them and some elsewhere, and given back at random.

    use super::*;
    use proptest::prelude::*;

    const ZONES: [Extent; 2] =
        [Extent { start: Pba(10), sectors: Sectors(20) }, Extent { start: Pba(30), sectors: Sectors(15) }];

    fn zone_of(sector: usize) -> Extent {
        ZONES[usize::from(sector >= 30)]
    }

    /// Returns the free runs of an array.
    fn runs(free: &[bool; 46]) -> Vec<Extent> {
        let begins = |at: &usize| free[*at] && (!free[at - 1] || *at == 30);
        let run = |at: usize| {
            let end = (at + 1..46).find(|&end| !free[end] || end == 30).expect("the last is not free");
            Extent::between(Pba(at as u64), Pba(end as u64))
        };
        (10..45).filter(begins).map(run).collect()
    }

    proptest! {
        #[test]
        fn equals_an_array(steps in prop::collection::vec((0usize..46, 1u64..9, 0u8..4), 1..80)) {
            let mut map = FreeRuns::new(&ZONES);
            let mut free: [bool; 46] = std::array::from_fn(|at| (10..45).contains(&at));
            let mut next = 0;
            for (at, sectors, what) in steps {
                let all = runs(&free);
                let first = all.iter().filter(|run| run.start.0 >= next);
                let later = all.iter().filter(|run| run.start.0 < next && run.end().0 <= next);
                let around = all.iter().filter(|run| run.start.0 < next && run.end().0 > next);
                let in_turn: Vec<Extent> = first.chain(later).chain(around).copied().collect();
                let whole = in_turn.iter().find(|run| run.sectors.0 >= sectors);
                let longest = in_turn.iter().rev().max_by_key(|run| run.sectors).copied();
                let expected = whole.map(|run| Extent::new(run.start, Sectors(sectors))).or(longest);
                prop_assert_eq!(map.place(Sectors(sectors)), expected);
                let taken = match what {
                    0 => all.get(at % all.len().max(1)).map(|run| Extent::new(run.end() - Sectors(1), Sectors(1))),
                    1 => None,
                    _ => expected,
                };
                match taken {
                    Some(place) => {
                        prop_assert!(map.is_free(place));
                        map.take(place);
                        next = place.end().0;
                        free[place.start.0 as usize..next as usize].fill(false);
                        prop_assert!(!map.is_free(place));
                    }
                    None if (10..45).contains(&at) && !free[at] => {
                        map.give(Extent::new(Pba(at as u64), Sectors(1)), zone_of(at));
                        free[at] = true;
                    }
                    None => {}
                }
                prop_assert_eq!(map.sectors(), free.iter().filter(|&&free| free).count() as u64);
                let in_zone = |zone: Extent| runs(&free).iter().filter_map(|run| run.intersection(zone)).map(|run| run.sectors).sum();
                prop_assert_eq!(ZONES.map(|zone| map.within(zone)), ZONES.map(in_zone));
            }
        }
    }
}
