//! Which sectors of the S-blocks lie in the cache buffers, or are trimmed: sorted lists of runs, overlaid on the S-blocks' own copies.
//!
//! A list for a few S-blocks that follow each other: one for each alone would take more for its own sake than for its runs, of which
//! most S-blocks have one or two; one tree for the drive would make a search longer. A destage wants the runs of one S-block, which
//! lie side by side in its list, and none of them reaches into the next.
//!
//! Of a position so many of the low bits are kept as tell the sectors of a cache buffer apart; with the tail of the buffer they say it
//! whole.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by offset, each within an S-block; a later write hides what it covers.
//! 2. A cache buffer with its guard is shorter than 2³¹ sectors.

use super::ring::Position;
use super::shape::Shape;
use crate::layer::Coming;
use crate::map::run_list::{ABSENT, RunList, ShortRun};
use crate::map::sparse::Sparse;

/// S-blocks of a list, at most.
const LIST_SBLOCKS: u64 = 32;
/// Sectors of a list of several S-blocks: in so many its runs take least.
const LIST_SECTORS: u64 = 1 << 16;
/// The longest cache buffer, guard included: of a position in it 31 bits are kept.
pub(super) const CACHE_RING_SECTORS_MAX: u64 = (1 << 31) - 1;

/// A run of sectors of an S-block whose newest contents are not in the S-block's own copy: they are cached, or trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CachedRun {
    /// First sector within the S-block.
    pub offset: u32,
    /// How many sectors.
    pub sectors: u32,
    /// Where in the section's cache buffer; [`Position::NOWHERE`] if trimmed.
    pub position: Position,
}

impl CachedRun {
    /// One past its last sector within the S-block.
    pub fn end(&self) -> u32 {
        self.offset + self.sectors
    }

    /// Whether it is trimmed rather than cached.
    pub fn is_absent(&self) -> bool {
        self.position == Position::NOWHERE
    }
}

/// The runs of all S-blocks.
#[derive(Clone, Debug)]
pub(super) struct CachedRuns {
    lists: Sparse<RunList>,
    /// That of S-blocks of which nothing was ever cached.
    no_runs: RunList,
    /// A list has 2 to this power S-blocks.
    list_bits: u32,
    sblock_sectors: u32,
    /// The bits of a position that are kept.
    kept: u32,
}

impl CachedRuns {
    /// No runs.
    pub fn new(shape: &Shape) -> CachedRuns {
        let list_bits = (LIST_SECTORS / shape.sblock_sectors).clamp(1, LIST_SBLOCKS).ilog2();
        let ring = shape.cache_sectors + shape.guard_sectors;
        assert!(ring <= CACHE_RING_SECTORS_MAX, "invariant 2: a cache buffer of {ring} sectors");
        let kept = (ring.next_power_of_two() - 1) as u32;
        CachedRuns {
            lists: Sparse::new(shape.sblocks().div_ceil(1 << list_bits) as usize),
            no_runs: RunList::new(kept),
            list_bits,
            sblock_sectors: shape.sblock_sectors as u32,
            kept,
        }
    }

    /// Those of an S-block, in a buffer whose tail is at `tail`.
    #[inline]
    pub fn of(&self, sblock: u64, tail: Position) -> Cached<'_> {
        let (list, first) = self.place(sblock);
        let list = self.lists.get(list).unwrap_or(&self.no_runs);
        Cached { list, first, end: first + self.sblock_sectors, kept: self.kept, tail }
    }

    /// The bits of a position that are kept.
    pub fn kept(&self) -> u32 {
        self.kept
    }

    /// Puts `run` over what was there; `hidden` is called with the place and the sectors of what it hides in the cache.
    #[inline]
    pub fn overlay(&mut self, sblock: u64, run: CachedRun, mut hidden: impl FnMut(u32, u32)) {
        let (list, first) = self.place(sblock);
        let place = if run.is_absent() { ABSENT } else { run.position.0 as u32 & self.kept };
        let run = ShortRun { offset: first + run.offset, length: run.sectors, place };
        self.lists.change(list, |_| self.no_runs.clone()).overlay(run, false, |_, sectors, place| {
            place.into_iter().filter(|&place| place != ABSENT).for_each(|place| hidden(place, sectors));
        });
    }

    /// Forgets what lies in `from..to` of an S-block; `removed` is called with the place and the sectors of what lay in the cache.
    pub fn remove(&mut self, sblock: u64, from: u32, to: u32, mut removed: impl FnMut(u32, u32)) {
        let (list, first) = self.place(sblock);
        if self.lists.get(list).is_none_or(RunList::is_empty) {
            return;
        }
        self.lists.change(list, |_| self.no_runs.clone()).remove(first + from, first + to, |run| {
            if !run.is_absent() {
                removed(run.place, run.length);
            }
        });
    }

    /// Has what a search for an S-block reads fetched.
    #[inline]
    pub fn foresee(&self, sblock: u64, coming: Coming) {
        self.lists.get(self.place(sblock).0).into_iter().for_each(|list| list.foresee(coming));
    }

    /// Bytes that they take beside themselves.
    pub fn measured_bytes(&self) -> u64 {
        self.lists.measured_bytes() + self.lists.iter().map(|(_, list)| list.measured_bytes()).sum::<u64>()
    }

    /// The list of an S-block, and where in it the S-block begins.
    #[inline]
    fn place(&self, sblock: u64) -> (usize, u32) {
        let list = sblock >> self.list_bits;
        (list as usize, (sblock - (list << self.list_bits)) as u32 * self.sblock_sectors)
    }
}

/// The runs of an S-block, as they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached<'a> {
    list: &'a RunList,
    /// Where in the list the S-block begins and ends.
    first: u32,
    end: u32,
    kept: u32,
    tail: Position,
}

impl<'a> Cached<'a> {
    /// Sectors of it in the cache; absent runs take no cache space.
    pub fn sectors(self) -> u32 {
        let cached = self.list.within(self.first, self.end).filter(|run| !run.is_absent());
        cached.map(|run| run.length).sum()
    }

    /// All runs, in order.
    pub fn runs(self) -> impl Iterator<Item = CachedRun> + 'a {
        self.list.within(self.first, self.end).map(move |run| self.unpacked(run))
    }

    /// The parts of the runs within `from..to`, in order.
    pub fn within(self, from: u32, to: u32) -> impl Iterator<Item = CachedRun> + 'a {
        self.list.within(self.first + from, self.first + to).map(move |run| self.unpacked(run))
    }

    #[inline]
    fn unpacked(self, run: ShortRun) -> CachedRun {
        let behind_tail = run.place.wrapping_sub(self.tail.0 as u32) & self.kept;
        let position = match run.is_absent() {
            true => Position::NOWHERE,
            false => Position(self.tail.0.wrapping_add(u64::from(behind_tail))),
        };
        CachedRun { offset: run.offset - self.first, sectors: run.length, position }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the runs of every S-block equal naive ones, sector by sector, wherever in the buffer they lie. Method: random overlays,
    //! trims and removals on both, in a ring of which no bit of a position is kept too much, so that places wrap within runs, and with
    //! positions below and above 2³²; then what is left is taken away.

    use proptest::prelude::*;

    use super::*;

    const SBLOCKS: u64 = 40;
    const SECTORS: usize = 48;
    type Naive = [Option<Position>; SECTORS];

    fn shape(sblock_sectors: u64) -> Shape {
        Shape {
            sections: 2,
            sblock_sectors,
            native_sblocks: SBLOCKS / 2,
            spare_sblocks: 2,
            cache_sectors: 400,
            guard_sectors: 112,
            interference_sectors: 1,
        }
    }

    fn in_cache(slot: &Option<Position>) -> bool {
        slot.is_some_and(|at| at != Position::NOWHERE)
    }

    fn check(cached: Cached, naive: &Naive) -> Result<(), TestCaseError> {
        let mut seen = [None; SECTORS];
        let mut end = 0;
        for run in cached.runs() {
            prop_assert!(run.offset >= end && run.sectors > 0);
            end = run.end();
            for i in run.offset..run.end() {
                seen[i as usize] = cached.within(i, i + 1).next().map(|part| part.position);
            }
        }
        prop_assert_eq!(&seen, naive);
        prop_assert_eq!(cached.sectors(), naive.iter().filter(|slot| in_cache(slot)).count() as u32);
        let part: u32 = cached.within(7, 31).map(|run| run.sectors).sum();
        prop_assert_eq!(part, naive[7..31].iter().flatten().count() as u32);
        Ok(())
    }

    proptest! {
        #[test]
        fn equal_naive_ones(
            sblock_sectors in prop::sample::select(vec![SECTORS as u64, 3000, 100_000]),
            tail in prop::sample::select(vec![0, (1 << 32) - 150, 7 << 32, (1 << 40) - 1]),
            steps in prop::collection::vec((0u64..3, 0u32..46, 1u32..12, 0u8..4), 1..38),
        ) {
            let mut runs = CachedRuns::new(&shape(sblock_sectors));
            let mut naive = [[None; SECTORS]; 3];
            for (number, (sblock, offset, length, what)) in (0..).zip(steps) {
                let naive = &mut naive[sblock as usize];
                // Three of the forty, the first two in one list unless S-blocks are large.
                let sblock = [18, 19, 33][sblock as usize];
                let sectors = length.min(SECTORS as u32 - offset);
                let range = offset as usize..(offset + sectors) as usize;
                let expected = naive[range.clone()].iter().filter(|slot| in_cache(slot)).count() as u32;
                // All lie within the length of the ring, and none goes on where another ends.
                let position = if what == 1 { Position::NOWHERE } else { Position(tail + number * 13) };
                let mut hidden = 0;
                match what {
                    0 => runs.remove(sblock, offset, offset + sectors, |_, sectors| hidden += sectors),
                    _ => runs.overlay(sblock, CachedRun { offset, sectors, position }, |_, sectors| hidden += sectors),
                }
                prop_assert_eq!(hidden, expected);
                for (i, slot) in naive[range].iter_mut().enumerate() {
                    let place = if what == 1 { position } else { Position(position.0 + i as u64) };
                    *slot = (what != 0).then_some(place);
                }
                check(runs.of(sblock, Position(tail)), naive)?;
            }
            for (sblock, naive) in [18, 19, 33].into_iter().zip(&naive) {
                check(runs.of(sblock, Position(tail)), naive)?;
                runs.remove(sblock, 0, SECTORS as u32, |_, _| {});
                prop_assert_eq!(runs.of(sblock, Position(tail)).runs().count(), 0);
            }
            prop_assert_eq!(runs.measured_bytes(), runs.lists.measured_bytes());
        }
    }
}
