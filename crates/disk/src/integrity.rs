//! The integrity map. For every physical sector it records whether the sector was never written, holds version v of an
//! LBA, or was destroyed, and by which write. A run of sectors with continuing contents shares one entry, so the
//! rewrite of a whole region takes as many steps as the region held runs.
//!
//! The map does not decide whether the contents of a destroyed sector still mattered: that is the checker's part.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered; neighbours whose contents continue are one run.
//! 2. A sector's contents change only by a write to the sector or by a write that destroys the sector. If several
//!    writes destroyed a sector, the map names the latest: so a guard band hit by every write beside it stays one run.
//! 3. Sectors never written have no run.

use std::collections::BTreeMap;

use crate::units::{Extent, Lba, Pba, Sectors};

/// Contents of a run of physical sectors, as the last write to it or near it left them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Contents {
    /// Never written since the drive was made: reads as zeros.
    Never,
    /// Sector i of the run holds version `version` of LBA `lba + i`; version 0 is the contents of a new drive.
    Holds {
        /// LBA whose contents the first sector of the run holds.
        lba: Lba,
        /// Version: the number of the host write that wrote the contents, counted from 1; 0 on a new drive.
        version: u64,
    },
    /// Written with data that are not the host's: padding, map or journal of a translation layer.
    Other,
    /// Destroyed by the write numbered `by`.
    Destroyed {
        /// The number of the destroying write, as given to [`IntegrityMap::destroy`].
        by: u64,
    },
}

impl Contents {
    /// Returns the contents of the sector that lies `offset` sectors after the first one of a run, whose first sector
    /// has the contents `self`. Only the LBA of `Holds` changes.
    pub fn plus(self, offset: Sectors) -> Contents {
        match self {
            Contents::Holds { lba, version } => Contents::Holds { lba: lba + offset, version },
            same => same,
        }
    }
}

/// A run of sectors, from its key in the map up to `end`.
#[derive(Clone, Copy, Debug)]
struct Run {
    end: Pba,
    contents: Contents,
}

/// The contents of every physical sector of a simulated drive: LBA and version, or the write that destroyed them. The
/// map stores no data bytes.
#[derive(Clone, Debug, Default)]
pub struct IntegrityMap {
    runs: BTreeMap<Pba, Run>,
}

impl IntegrityMap {
    /// Creates the map of a medium that was never written.
    pub fn new() -> IntegrityMap {
        IntegrityMap::default()
    }

    /// Sets the contents of the physical sectors `extent`. For [`Contents::Holds`], `lba` is the LBA of the first
    /// sector, and the LBAs rise by 1 with each further sector. An empty extent changes nothing.
    pub fn write(&mut self, extent: Extent, contents: Contents) {
        if extent.is_empty() {
            return;
        }
        self.clear(extent);
        if contents != Contents::Never {
            self.insert_joined(extent, contents);
        }
    }

    /// Marks the physical sectors `extent` as destroyed: their contents are lost. `by` is the number of the destroying
    /// write. The caller numbers the writes; the map only stores the number.
    pub fn destroy(&mut self, extent: Extent, by: u64) {
        self.write(extent, Contents::Destroyed { by });
    }

    /// Returns the contents of the sector at `pba`; [`Contents::Never`] if neither a write nor damage was recorded for
    /// it.
    pub fn at(&self, pba: Pba) -> Contents {
        match self.runs.range(..=pba).next_back() {
            Some((&start, run)) if pba < run.end => run.contents.plus(pba - start),
            _ => Contents::Never,
        }
    }

    /// Calls `visit` for each run of sectors with continuing contents in `extent`, in PBA order and clipped to
    /// `extent`, with the contents of its first sector. Sectors for which neither a write nor damage was recorded are
    /// visited as [`Contents::Never`].
    pub fn for_each(&self, extent: Extent, mut visit: impl FnMut(Extent, Contents)) {
        if extent.is_empty() {
            return;
        }
        let first = match self.runs.range(..=extent.start).next_back() {
            Some((&start, run)) if extent.start < run.end => start,
            _ => extent.start,
        };
        let mut reached = extent.start;
        for (&start, run) in self.runs.range(first..extent.end()) {
            let from = start.max(extent.start);
            if reached < from {
                visit(Extent::between(reached, from), Contents::Never);
            }
            reached = run.end.min(extent.end());
            visit(Extent::between(from, reached), run.contents.plus(from - start));
        }
        if reached < extent.end() {
            visit(Extent::between(reached, extent.end()), Contents::Never);
        }
    }

    /// Returns the number of runs that the map stores, for memory accounting. Neighbouring sectors with continuing
    /// contents share one run; sectors with [`Contents::Never`] have none.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Removes all runs within `extent`, and cuts those that reach into it.
    fn clear(&mut self, extent: Extent) {
        self.cut(extent.start);
        self.cut(extent.end());
        while let Some((&start, _)) = self.runs.range(extent.start..extent.end()).next() {
            self.runs.remove(&start);
        }
    }

    /// Makes `at` a boundary between runs.
    fn cut(&mut self, at: Pba) {
        let Some((&start, run)) = self.runs.range_mut(..at).next_back() else {
            return;
        };
        if run.end <= at {
            return;
        }
        let tail = Run { end: run.end, contents: run.contents.plus(at - start) };
        run.end = at;
        self.runs.insert(at, tail);
    }

    /// Inserts a run where there is none, joined with the neighbours that it continues.
    fn insert_joined(&mut self, extent: Extent, contents: Contents) {
        let mut end = extent.end();
        if let Some(next) = self.runs.get(&end).copied()
            && contents.plus(end - extent.start) == next.contents
        {
            self.runs.remove(&end);
            end = next.end;
        }
        if let Some((&start, before)) = self.runs.range_mut(..extent.start).next_back() {
            assert!(before.end <= extent.start, "invariant 1: run {start}..{} reaches into {extent:?}", before.end);
            if before.end == extent.start && before.contents.plus(before.end - start) == contents {
                before.end = end;
                return;
            }
        }
        self.runs.insert(extent.start, Run { end, contents });
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the map of runs agrees with a plain array about every sector. Method: random writes and destructions on
    //! both.

    use super::*;
    use proptest::prelude::*;

    const SECTORS: u64 = 64;

    fn extent(start: u64, sectors: u64) -> Extent {
        Extent::new(Pba(start), Sectors(sectors))
    }

    fn collect(map: &IntegrityMap, extent: Extent) -> Vec<(Extent, Contents)> {
        let mut runs = Vec::new();
        map.for_each(extent, |run, contents| runs.push((run, contents)));
        runs
    }

    fn holds(lba: u64, version: u64) -> Contents {
        Contents::Holds { lba: Lba(lba), version }
    }

    #[test]
    fn continuing_writes_share_a_run_and_others_do_not() {
        let mut map = IntegrityMap::new();
        map.write(extent(10, 5), holds(100, 1));
        map.write(extent(20, 5), holds(110, 1));
        map.write(extent(15, 5), holds(105, 1));
        assert_eq!(map.runs(), 1);
        map.write(extent(25, 5), holds(115, 2));
        assert_eq!(map.runs(), 2, "another version does not continue");
        map.destroy(extent(12, 2), 7);
        assert_eq!(
            collect(&map, extent(8, 10)),
            [
                (extent(8, 2), Contents::Never),
                (extent(10, 2), holds(100, 1)),
                (extent(12, 2), Contents::Destroyed { by: 7 }),
                (extent(14, 4), holds(104, 1)),
            ]
        );
    }

    #[test]
    fn an_empty_extent_changes_nothing_and_shows_nothing() {
        let mut map = IntegrityMap::new();
        map.write(extent(10, 5), holds(100, 1));
        map.write(extent(12, 0), Contents::Other);
        map.destroy(extent(12, 0), 1);
        assert_eq!(map.runs(), 1);
        assert_eq!(collect(&map, extent(12, 0)), []);
    }

    #[test]
    fn a_guard_hit_by_every_write_stays_one_run() {
        let mut map = IntegrityMap::new();
        for number in 1..=100 {
            map.write(extent(number * 8, 8), holds(number * 8, 1));
            map.destroy(extent(number * 8 + 8, 512), number);
        }
        assert_eq!(map.runs(), 2);
    }

    fn any_contents() -> impl Strategy<Value = Contents> {
        // Few versions and LBAs near each other, so that runs often continue.
        prop_oneof![
            Just(Contents::Never),
            Just(Contents::Other),
            (0..3u64).prop_map(|by| Contents::Destroyed { by }),
            (0..4u64, 0..2u64).prop_map(|(lba, version)| holds(lba, version)),
        ]
    }

    proptest! {
        #[test]
        fn agrees_with_an_array_of_sectors(
            changes in prop::collection::vec((0..SECTORS, 1..20u64, any_contents(), any::<bool>()), 1..60),
            windows in prop::collection::vec((0..SECTORS, 1..20u64), 20),
        ) {
            let mut map = IntegrityMap::new();
            let mut twin = vec![Contents::Never; SECTORS as usize];
            for (start, sectors, contents, identity) in changes {
                let sectors = sectors.min(SECTORS - start);
                let contents = match contents {
                    Contents::Holds { version, .. } if identity => holds(start, version),
                    other => other,
                };
                map.write(extent(start, sectors), contents);
                for offset in 0..sectors {
                    twin[(start + offset) as usize] = match contents {
                        Contents::Holds { lba, version } => holds(lba.0 + offset, version),
                        other => other,
                    };
                }
            }
            compare(&map, &twin)?;
            for (start, sectors) in windows {
                compare_window(&map, &twin, start, sectors.min(SECTORS - start))?;
            }
        }
    }

    /// Compares one window of the map with the array: its runs are not empty, follow each other, and have the array's
    /// contents.
    fn compare_window(map: &IntegrityMap, twin: &[Contents], start: u64, sectors: u64) -> Result<(), TestCaseError> {
        let mut reached = start;
        for (run, contents) in collect(map, extent(start, sectors)) {
            prop_assert!(run.start.0 == reached && !run.is_empty(), "{:?} after {}", run, reached);
            for offset in 0..run.sectors.0 {
                prop_assert_eq!(contents.plus(Sectors(offset)), twin[(reached + offset) as usize]);
            }
            reached = run.end().0;
        }
        prop_assert_eq!(reached, start + sectors);
        Ok(())
    }

    fn compare(map: &IntegrityMap, twin: &[Contents]) -> Result<(), TestCaseError> {
        let mut seen = Vec::new();
        map.for_each(extent(0, SECTORS), |run, contents| {
            for offset in 0..run.sectors.0 {
                seen.push(match contents {
                    Contents::Holds { lba, version } => holds(lba.0 + offset, version),
                    other => other,
                });
            }
        });
        prop_assert_eq!(&seen, twin);
        for (pba, contents) in twin.iter().enumerate() {
            prop_assert_eq!(map.at(Pba(pba as u64)), *contents);
        }
        // Runs are maximal: as many as there are breaks in the array, not counting never-written stretches.
        let continues = |pair: &[Contents]| match (pair[0], pair[1]) {
            (Contents::Holds { lba, version }, next) => next == holds(lba.0 + 1, version),
            (one, next) => one == next,
        };
        let written = |contents: &Contents| *contents != Contents::Never;
        let breaks = twin.windows(2).filter(|pair| !continues(pair) && written(&pair[1])).count();
        prop_assert_eq!(map.runs(), breaks + usize::from(written(&twin[0])));
        Ok(())
    }
}
