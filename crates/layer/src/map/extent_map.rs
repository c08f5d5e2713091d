//! An ordered map from runs of LBAs to where they lie: the exception map of every cache-based layer.
//!
//! A run is (LBA, sectors) → place; a place is a physical run of the same length, or absence (trimmed). Inserting
//! overlays: what it covers of older runs is cut away. Runs that continue each other in both spaces are not merged,
//! unless asked (journal entries and cached blocks keep their identity).
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by LBA.
//! 2. `sectors()` is the sum of the runs' lengths.

use std::collections::BTreeMap;

use imbrex_disk::{Lba, Pba, Sectors};

/// Where a run lies: its first physical sector, or nowhere (trimmed).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mapped {
    /// At this physical sector and those after it.
    At(Pba),
    /// Nowhere: trimmed.
    Absent,
}

impl Mapped {
    /// The target of the sector `offset` sectors into the run.
    pub fn plus(self, offset: u64) -> Mapped {
        match self {
            Mapped::At(pba) => Mapped::At(Pba(pba.0 + offset)),
            Mapped::Absent => Mapped::Absent,
        }
    }
}

/// A run of logical sectors that the map holds, and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MappedRun {
    /// First logical sector.
    pub lba: Lba,
    /// How many sectors.
    pub sectors: Sectors,
    /// Where it lies.
    pub target: Mapped,
}

impl MappedRun {
    /// One past the last logical sector.
    pub fn end(&self) -> Lba {
        self.lba + self.sectors
    }

    /// Where it lies, unless trimmed.
    pub fn place(&self) -> Option<Pba> {
        match self.target {
            Mapped::At(pba) => Some(pba),
            Mapped::Absent => None,
        }
    }
}

/// The map.
#[derive(Clone, Debug, Default)]
pub struct ExtentMap {
    runs: BTreeMap<u64, (u32, Mapped)>,
    sectors: u64,
}

impl ExtentMap {
    /// An empty map.
    pub fn new() -> ExtentMap {
        ExtentMap::default()
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Sectors mapped, absent ones included.
    pub fn sectors(&self) -> Sectors {
        Sectors(self.sectors)
    }

    /// Maps `sectors` from `lba` to `target`; `replaced` is called with each older piece that this hides.
    pub fn insert(&mut self, lba: Lba, sectors: Sectors, target: Mapped, replaced: impl FnMut(MappedRun)) {
        assert!(sectors.0 > 0 && sectors.0 <= u32::MAX as u64, "a run of {} sectors", sectors.0);
        // Most inserts hide nothing, which is seen in one descent.
        if !self.is_clear(lba, sectors) {
            self.remove(lba, sectors, replaced);
        }
        self.runs.insert(lba.0, (sectors.0 as u32, target));
        self.sectors += sectors.0;
    }

    /// Whether nothing of the range is mapped: the last run that begins before its end says so.
    pub fn is_clear(&self, lba: Lba, sectors: Sectors) -> bool {
        let last = self.runs.range(..lba.0 + sectors.0).next_back();
        last.is_none_or(|(&first, &(length, _))| first + length as u64 <= lba.0)
    }

    /// Unmaps `sectors` from `lba`; `removed` is called with each piece that was mapped, in order.
    pub fn remove(&mut self, lba: Lba, sectors: Sectors, mut removed: impl FnMut(MappedRun)) {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        // The run that begins before `start` and may reach into the range, then those that begin inside it.
        if let Some((&first, &(length, target))) = self.runs.range(..start).next_back() {
            let run_end = first + length as u64;
            if run_end > start {
                self.runs.insert(first, ((start - first) as u32, target));
                let cut_end = run_end.min(end);
                self.sectors -= cut_end - start;
                removed(MappedRun {
                    lba: Lba(start),
                    sectors: Sectors(cut_end - start),
                    target: target.plus(start - first),
                });
                if run_end > end {
                    self.runs.insert(end, ((run_end - end) as u32, target.plus(end - first)));
                    return;
                }
            }
        }
        let mut rest = None;
        for (first, (length, target)) in self.runs.extract_if(start..end, |_, _| true) {
            let run_end = first + length as u64;
            let cut_end = run_end.min(end);
            self.sectors -= cut_end - first;
            removed(MappedRun { lba: Lba(first), sectors: Sectors(cut_end - first), target });
            rest = (run_end > end).then(|| ((run_end - end) as u32, target.plus(end - first)));
        }
        if let Some(rest) = rest {
            self.runs.insert(end, rest);
        }
    }

    /// The mapped pieces of `sectors` from `lba`, clipped to that range, in order.
    pub fn pieces(&self, lba: Lba, sectors: Sectors) -> impl Iterator<Item = MappedRun> + '_ {
        let (start, end) = (lba.0, lba.0 + sectors.0);
        let before = self.runs.range(..start).next_back();
        let reaching = before.filter(move |&(&first, &(length, _))| first + length as u64 > start);
        reaching.into_iter().chain(self.runs.range(start..end)).map(move |(&first, &(length, target))| {
            let from = first.max(start);
            let to = (first + length as u64).min(end);
            MappedRun { lba: Lba(from), sectors: Sectors(to - from), target: target.plus(from - first) }
        })
    }

    /// The whole run that `lba` lies in.
    pub fn run_at(&self, lba: Lba) -> Option<MappedRun> {
        let (&first, &(length, target)) = self.runs.range(..=lba.0).next_back()?;
        let run = MappedRun { lba: Lba(first), sectors: Sectors(length as u64), target };
        (lba < run.end()).then_some(run)
    }

    /// The run that ends where the range begins, and that which begins where it ends.
    pub fn neighbours(&self, lba: Lba, sectors: Sectors) -> (Option<MappedRun>, Option<MappedRun>) {
        let end = lba + sectors;
        let mut runs = self.runs.range(..=end.0).rev().map(|(&first, &(length, target))| MappedRun {
            lba: Lba(first),
            sectors: Sectors(length as u64),
            target,
        });
        let last = runs.next();
        let before = last.filter(|run| run.lba < lba).or_else(|| runs.find(|run| run.lba < lba));
        (before.filter(|run| run.end() == lba), last.filter(|run| run.lba == end))
    }

    /// Calls `visit` with every part of the range in order: mapped pieces, and the gaps between them as `None`.
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

    /// All runs, in order of LBA.
    pub fn iter(&self) -> impl Iterator<Item = MappedRun> + '_ {
        self.runs.iter().map(|(&lba, &(sectors, target))| MappedRun {
            lba: Lba(lba),
            sectors: Sectors(sectors as u64),
            target,
        })
    }

    /// Bytes it takes, as the standard library lays out its tree: keys and values in nodes of eleven, two thirds full.
    pub fn measured_bytes(&self) -> u64 {
        let entry = std::mem::size_of::<u64>() + std::mem::size_of::<(u32, Mapped)>();
        (self.runs.len() * entry * 3 / 2) as u64
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the map equals a naive one, sector by sector. Method: random inserts, removes and look-ups in a small
    //! space, on both.

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
                let (before, after) = map.neighbours(Lba(lba), Sectors(length));
                let at = |lba| map.run_at(Lba(lba));
                prop_assert_eq!(before, lba.checked_sub(1).and_then(at).filter(|run| run.end().0 == lba));
                prop_assert_eq!(after, at(lba + length).filter(|run| run.lba.0 == lba + length));
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
}
