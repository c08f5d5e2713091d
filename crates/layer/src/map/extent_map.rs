//! An ordered map from runs of LBAs to places on a medium: the exception map of every cache-based layer.
//!
//! A run is (LBA, sectors) → place. A place is a physical run of equal length, or absence (trimmed). An insertion
//! overlays older runs: their covered parts are removed. Two runs that continue each other in LBA and PBA are not
//! merged, because journal entries and cached blocks keep their identity.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by LBA.
//! 2. `sectors()` is the sum of the runs' lengths.

use imbrex_disk::{Lba, Pba, Sectors};

use super::leaves::{Leaves, Run, Spot};

/// Encoding of the place of a trimmed run.
const NOWHERE: u64 = u64::MAX;

/// The place of a run: its first physical sector, or absence (trimmed).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mapped {
    /// The run begins at this physical sector.
    At(Pba),
    /// The run is trimmed and has no physical sectors.
    Absent,
}

impl Mapped {
    /// Returns the place of the sector that lies `offset` sectors after the first sector of a run with this place.
    /// Every sector of a trimmed run is [`Mapped::Absent`].
    pub fn plus(self, offset: u64) -> Mapped {
        match self {
            Mapped::At(pba) => Mapped::At(Pba(pba.0 + offset)),
            Mapped::Absent => Mapped::Absent,
        }
    }

    fn to_place(self) -> u64 {
        match self {
            Mapped::At(pba) => pba.0,
            Mapped::Absent => NOWHERE,
        }
    }

    fn from_place(place: u64) -> Mapped {
        if place == NOWHERE { Mapped::Absent } else { Mapped::At(Pba(place)) }
    }
}

/// A run of logical sectors in the map, with its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MappedRun {
    /// First logical sector of the run.
    pub lba: Lba,
    /// Number of sectors of the run.
    pub sectors: Sectors,
    /// Place of the run's first sector, which the places of the next sectors follow; [`Mapped::Absent`] if the run is
    /// trimmed.
    pub target: Mapped,
}

impl MappedRun {
    /// Returns the LBA one past the last logical sector of the run.
    pub fn end(&self) -> Lba {
        self.lba + self.sectors
    }

    /// Returns the physical sector of the run's first logical sector, or `None` if the run is trimmed.
    pub fn place(&self) -> Option<Pba> {
        match self.target {
            Mapped::At(pba) => Some(pba),
            Mapped::Absent => None,
        }
    }
}

impl From<Run> for MappedRun {
    fn from(run: Run) -> MappedRun {
        MappedRun { lba: Lba(run.first), sectors: Sectors(run.length as u64), target: Mapped::from_place(run.place) }
    }
}

/// Returns the part of a run from `first` to `end`, two numbers within the run.
fn part(run: Run, first: u64, end: u64) -> Run {
    let place = Mapped::from_place(run.place).plus(first - run.first).to_place();
    Run { first, length: (end - first) as u32, place }
}

/// A run of unmapped logical sectors, found by [`ExtentMap::gap`], with the position of a search in the map. So
/// [`ExtentMap::fill`] needs no second search. A gap is valid until the map changes.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    lba: Lba,
    sectors: Sectors,
    spot: Spot,
}

/// A map from runs of logical sectors to their places. Runs do not overlap, and neighbouring runs are never merged. A
/// mapped sector may be trimmed; that differs from an unmapped sector.
#[derive(Clone, Debug, Default)]
pub struct ExtentMap {
    runs: Leaves,
    sectors: u64,
}

impl ExtentMap {
    /// Returns an empty map.
    pub fn new() -> ExtentMap {
        ExtentMap::default()
    }

    /// Returns the number of runs, trimmed ones included.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns whether no sector is mapped, not even as trimmed.
    pub fn is_empty(&self) -> bool {
        self.runs.len() == 0
    }

    /// Returns the number of mapped sectors, trimmed ones included.
    pub fn sectors(&self) -> Sectors {
        Sectors(self.sectors)
    }

    /// Maps the `sectors` from `lba` on to the place `target`, as one run. Older runs are removed there, and keep their
    /// other sectors. Calls `replaced` with each removed piece, in order of LBA.
    ///
    /// # Panics
    ///
    /// If `sectors` is 0 or more than `u32::MAX`.
    pub fn insert(&mut self, lba: Lba, sectors: Sectors, target: Mapped, mut replaced: impl FnMut(MappedRun)) {
        assert!(sectors.0 > 0 && sectors.0 <= u32::MAX as u64, "a run of {} sectors", sectors.0);
        let run = Run { first: lba.0, length: sectors.0 as u32, place: target.to_place() };
        let mut spot = self.runs.after_to_insert(run.first);
        // Most inserts hide nothing, or exactly one older run of equal extent.
        if !self.is_clear_at(spot, run.first, run.end()) {
            match self.runs.before(spot).filter(|old| old.first == run.first && old.length == run.length) {
                Some(old) => {
                    self.runs.set(spot.back(), run);
                    return replaced(old.into());
                }
                None => {
                    self.remove(lba, sectors, replaced);
                    spot = self.runs.after(run.first);
                }
            }
        }
        self.runs.insert(spot, run);
        self.sectors += sectors.0;
    }

    /// Returns the `sectors` from `lba` on as a gap (a run of unmapped sectors), or `None` if one of them is mapped,
    /// even as trimmed. The gap is not extended: sectors next to it may be unmapped too.
    #[inline]
    pub fn gap(&self, lba: Lba, sectors: Sectors) -> Option<Gap> {
        let spot = self.runs.after(lba.0);
        self.is_clear_at(spot, lba.0, lba.0 + sectors.0).then_some(Gap { lba, sectors, spot })
    }

    /// Returns the run that ends directly before the first sector of `gap`, and the run that begins exactly `sectors`
    /// after the first sector of `gap`. Each is `None` if there is no such run. The map must not have changed since the
    /// gap was found.
    #[inline]
    pub fn beside(&self, gap: &Gap, sectors: Sectors) -> (Option<MappedRun>, Option<MappedRun>) {
        let (start, end) = (gap.lba.0, gap.lba.0 + sectors.0);
        let before = self.runs.before(gap.spot).filter(|run| run.end() == start);
        let is_after = self.runs.first_from(gap.spot) == Some(end);
        let after = is_after.then(|| self.runs.at(gap.spot).expect("a run begins there").1);
        (before.map(MappedRun::from), after.map(MappedRun::from))
    }

    /// Maps the first `sectors` of `gap` to the place `target`, as one run. The map must not have changed since the gap
    /// was found.
    ///
    /// # Panics
    ///
    /// If `sectors` is 0 or more than the length of the gap.
    #[inline]
    pub fn fill(&mut self, gap: Gap, sectors: Sectors, target: Mapped) {
        assert!(sectors.0 > 0 && sectors <= gap.sectors, "{} of {} sectors that are clear", sectors.0, gap.sectors.0);
        let run = Run { first: gap.lba.0, length: sectors.0 as u32, place: target.to_place() };
        debug_assert_eq!(self.runs.after(run.first), gap.spot, "the map has changed since the gap was found");
        self.runs.insert(gap.spot, run);
        self.sectors += sectors.0;
    }

    /// Makes the processor prefetch memory that a look-up of `lba` reads. Has no other effect.
    #[inline]
    pub fn prefetch(&self, lba: Lba) {
        self.runs.prefetch(lba.0);
    }

    /// Returns whether no sector of `start..end` is mapped. `spot` is [`Leaves::after`] of `start`.
    #[inline]
    fn is_clear_at(&self, spot: Spot, start: u64, end: u64) -> bool {
        self.runs.before(spot).is_none_or(|before| before.end() <= start)
            && self.runs.first_from(spot).is_none_or(|first| first >= end)
    }

    /// Unmaps the `sectors` from `lba` on. Runs that reach out of that range keep their other sectors. Calls `removed`
    /// with each removed piece, in order of LBA.
    pub fn remove(&mut self, lba: Lba, sectors: Sectors, mut removed: impl FnMut(MappedRun)) {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        let mut from = self.first_reaching(start);
        while let Some((spot, run)) = self.runs.at(from).filter(|(_, run)| run.first < end) {
            if run.first >= start && run.end() <= end {
                let total = &mut self.sectors;
                self.runs.remove_until(spot, end, |run| {
                    *total -= run.length as u64;
                    removed(run.into());
                });
                from = self.first_reaching(start);
                continue;
            }
            let cut = part(run, run.first.max(start), run.end().min(end));
            self.sectors -= cut.length as u64;
            removed(cut.into());
            let left = (run.first < start).then(|| part(run, run.first, start));
            let right = (run.end() > end).then(|| part(run, end, run.end()));
            self.runs.set(spot, left.or(right).expect("a run that lies not whole in the range reaches out of it"));
            if let (Some(_), Some(right)) = (left, right) {
                self.runs.insert(self.runs.after(end), right);
            }
            if right.is_some() {
                return;
            }
            from = spot.behind();
        }
    }

    /// Returns the spot of the first run that ends past `start`.
    fn first_reaching(&self, start: u64) -> Spot {
        let spot = self.runs.after(start);
        match self.runs.before(spot) {
            Some(run) if run.end() > start => spot.back(),
            _ => spot,
        }
    }

    /// Returns the runs that overlap the `sectors` from `lba` on, clipped to that range, in order of LBA. Unmapped
    /// sectors are left out; trimmed runs are included.
    pub fn pieces(&self, lba: Lba, sectors: Sectors) -> impl Iterator<Item = MappedRun> + '_ {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        let runs = self.runs.iter_from(self.first_reaching(start)).take_while(move |run| run.first < end);
        runs.map(move |run| part(run, run.first.max(start), run.end().min(end)).into())
    }

    /// Returns the last run that begins at or before `lba`; it may also end before `lba`. Returns `None` if all runs
    /// begin later.
    #[inline]
    pub fn last_at_or_before(&self, lba: Lba) -> Option<MappedRun> {
        self.runs.before(self.runs.after(lba.0)).map(MappedRun::from)
    }

    /// Returns the run that contains `lba`, whole, or `None` if `lba` is not mapped.
    #[inline]
    pub fn run_at(&self, lba: Lba) -> Option<MappedRun> {
        self.last_at_or_before(lba).filter(|run| lba < run.end())
    }

    /// Calls `visit(lba, sectors, place)` with every part of the `sectors` from `lba` on, in order of LBA. The parts
    /// are the runs, clipped to that range, and the unmapped gaps between them, whose place is `None`. A trimmed run
    /// has the place `Some(Mapped::Absent)`.
    pub fn cover(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(Lba, Sectors, Option<Mapped>)) {
        let end = lba + sectors;
        let mut next = lba;
        for run in self.pieces(lba, sectors) {
            if run.lba > next {
                visit(next, run.lba - next, None);
            }
            visit(run.lba, run.sectors, Some(run.target));
            next = run.end();
        }
        if next < end {
            visit(next, end - next, None);
        }
    }

    /// Returns all runs, trimmed ones included, in order of LBA.
    pub fn iter(&self) -> impl Iterator<Item = MappedRun> + '_ {
        self.runs.iter().map(MappedRun::from)
    }

    /// Returns the bytes of heap memory that the map takes now.
    pub fn measured_bytes(&self) -> u64 {
        self.runs.measured_bytes()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the map equals a naive one. Method: random inserts, removes and look-ups in a small space, compared sector
    //! by sector. Then in a large space, where leaves and branches split and merge, compared with a `BTreeMap` of runs.

    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    const SPACE: usize = 64;

    fn naive_pieces(naive: &[Option<Mapped>; SPACE], map: &ExtentMap) {
        let mut seen: [Option<Mapped>; SPACE] = [None; SPACE];
        let mut total = 0;
        for run in map.iter() {
            for i in 0..run.sectors.0 {
                let slot = &mut seen[(run.lba.0 + i) as usize];
                assert!(slot.is_none(), "runs overlap at {}", run.lba.0 + i);
                *slot = Some(run.target.plus(i));
                total += 1;
            }
        }
        assert_eq!(&seen, naive);
        assert_eq!(map.sectors(), Sectors(total));
    }

    proptest! {
        #[test]
        fn equals_a_naive_map(steps in prop::collection::vec((0u64..60, 1u64..12, 0u8..4), 1..80)) {
            let mut map = ExtentMap::new();
            let mut naive = [None; SPACE];
            let mut next = 1000;
            for (lba, length, what) in steps {
                let length = length.min(SPACE as u64 - lba);
                let target = match what {
                    0 => None,
                    1 => Some(Mapped::Absent),
                    _ => { next += 100; Some(Mapped::At(Pba(next))) }
                };
                let mut hidden = 0;
                let expected = naive[lba as usize..(lba + length) as usize].iter().flatten().count() as u64;
                let count = |run: MappedRun| hidden += run.sectors.0;
                match target {
                    Some(target) => map.insert(Lba(lba), Sectors(length), target, count),
                    None => map.remove(Lba(lba), Sectors(length), count),
                }
                prop_assert_eq!(hidden, expected);
                for i in 0..length {
                    naive[(lba + i) as usize] = target.map(|target| target.plus(i));
                }
                naive_pieces(&naive, &map);
                let gap = map.gap(Lba(lba), Sectors(length));
                prop_assert_eq!(gap.is_some(), target.is_none());
                if let Some(gap) = gap {
                    let (before, after) = map.beside(&gap, Sectors(length));
                    let at = |lba| map.run_at(Lba(lba));
                    prop_assert_eq!(before, lba.checked_sub(1).and_then(at).filter(|run| run.end().0 == lba));
                    prop_assert_eq!(after, at(lba + length).filter(|run| run.lba.0 == lba + length));
                }
                let mut covered = 0;
                map.cover(Lba(3), Sectors(50), |at, sectors, target| {
                    assert_eq!(at.0, 3 + covered);
                    for i in 0..sectors.0 {
                        assert_eq!(target.map(|t| t.plus(i)), naive[(at.0 + i) as usize]);
                    }
                    covered += sectors.0;
                });
                prop_assert_eq!(covered, 50);
            }
        }
    }

    /// A reference map: runs by first sector, each with length and target.
    #[derive(Default)]
    struct Twin(BTreeMap<u64, (u64, Mapped)>);

    impl Twin {
        fn remove(&mut self, start: u64, end: u64) -> Vec<MappedRun> {
            let met: Vec<_> = self.0.range(..end).map(|(&first, &(length, target))| (first, length, target)).collect();
            let met = met.into_iter().filter(|&(first, length, _)| first + length > start);
            met.map(|(first, length, target)| {
                self.0.remove(&first);
                let (from, to) = (first.max(start), (first + length).min(end));
                if first < from {
                    self.0.insert(first, (from - first, target));
                }
                if to < first + length {
                    self.0.insert(to, (first + length - to, target.plus(to - first)));
                }
                MappedRun { lba: Lba(from), sectors: Sectors(to - from), target: target.plus(from - first) }
            })
            .collect()
        }

        fn runs(&self) -> Vec<MappedRun> {
            let run = |(&first, &(length, target)): (&u64, &(u64, Mapped))| MappedRun {
                lba: Lba(first),
                sectors: Sectors(length),
                target,
            };
            self.0.iter().map(run).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn equals_a_tree_where_leaves_split_and_join(
            spread in 2u64..9,
            steps in prop::collection::vec((any::<u32>(), 1u64..24, 0u8..16), 1500),
        ) {
            const RUNS: u64 = 5000;
            let (mut map, mut twin) = (ExtentMap::new(), Twin::default());
            for number in 0..RUNS {
                let lba = number.wrapping_mul(2_654_435_761) % RUNS * spread;
                let target = Mapped::At(Pba(number * 100));
                map.insert(Lba(lba), Sectors(1 + number % spread), target, |run| panic!("{run:?} was not there"));
                twin.0.insert(lba, (1 + number % spread, target));
            }
            prop_assert_eq!(map.iter().collect::<Vec<_>>(), twin.runs());
            for (number, (place, length, what)) in steps.into_iter().enumerate() {
                let lba = place as u64 % (RUNS * spread);
                // Now and then a long range is removed at once, so that branches become empty too.
                let length = if what == 0 { length * 700 } else { length };
                let target = if what == 1 { Mapped::Absent } else { Mapped::At(Pba(1_000_000 + number as u64 * 20_000)) };
                let expected = twin.remove(lba, lba + length);
                let gap = map.gap(Lba(lba), Sectors(length));
                prop_assert_eq!(gap.is_some(), expected.is_empty());
                prop_assert_eq!(map.pieces(Lba(lba), Sectors(length)).collect::<Vec<_>>(), &expected[..]);
                let mut hidden = Vec::new();
                if what < 5 {
                    map.remove(Lba(lba), Sectors(length), |run| hidden.push(run));
                } else {
                    match gap.filter(|_| what < 10) {
                        Some(gap) => map.fill(gap, Sectors(length), target),
                        None => map.insert(Lba(lba), Sectors(length), target, |run| hidden.push(run)),
                    }
                    twin.0.insert(lba, (length, target));
                }
                prop_assert_eq!(hidden, expected);
                prop_assert_eq!(map.len(), twin.0.len());
                prop_assert_eq!(map.runs.broken(), None);
            }
            prop_assert_eq!(map.iter().collect::<Vec<_>>(), twin.runs());
            let sectors: Sectors = twin.runs().iter().map(|run| run.sectors).sum();
            prop_assert_eq!(map.sectors(), sectors);
        }
    }
}
