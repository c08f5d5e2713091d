//! Map of the sectors of S-blocks that lie in the cache buffers or are trimmed: sorted lists of runs, which override
//! the S-blocks' own copies.
//!
//! Each list covers a few consecutive S-blocks. A list for every S-block would take more memory for itself than for its
//! runs, because most S-blocks have one or two runs. One tree for the whole drive would make searches longer. A destage
//! needs the runs of one S-block; they are adjacent in its list, and no run extends into the next S-block.
//!
//! The map stores only the low bits of a position, as many as distinguish the sectors of one cache buffer. The full
//! position is computed from these bits and the tail of the buffer.
//!
//! Invariants:
//! 1. Runs are disjoint, non-empty and ordered by offset, each within an S-block; a later write hides the parts of
//!    older runs that it covers.
//! 2. A cache buffer with its guard is shorter than 2³¹ sectors.

use super::ring::Position;
use super::shape::Shape;
use crate::layer::PrefetchHint;
use crate::map::run_list::RunList;
use crate::map::short_run::{ABSENT, ShortRun};
use crate::map::sparse::Sparse;

/// Most S-blocks that one list covers.
const LIST_SBLOCKS: u64 = 32;
/// Most sectors that a list of several S-blocks covers: runs of a list of this length take the fewest bytes.
const LIST_SECTORS: u64 = 1 << 16;
/// Maximum length of a cache buffer in sectors, guard band included, because 31 bits of a position are stored.
pub(super) const CACHE_RING_SECTORS_MAX: u64 = (1 << 31) - 1;

/// A run of sectors of an S-block whose newest contents are not in the S-block's own copy: the sectors are cached or
/// trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CachedRun {
    /// First sector of the run, counted from 0 at the start of its S-block.
    pub offset: u32,
    /// Number of sectors of the run, all in one S-block.
    pub sectors: u32,
    /// Position of the first sector in the cache buffer of the section: the number of sectors that were allocated in
    /// the buffer before it, since the buffer was made. [`Position::NOWHERE`] if the run is trimmed.
    pub position: Position,
}

impl CachedRun {
    /// Returns one past the last sector of the run, counted from 0 within the S-block.
    pub(super) fn end(&self) -> u32 {
        self.offset + self.sectors
    }

    /// Returns whether the run is trimmed. If not, it is cached.
    pub(super) fn is_absent(&self) -> bool {
        self.position == Position::NOWHERE
    }
}

/// The runs of all S-blocks of the drive whose newest contents are not in the S-block's own copy: cached and trimmed
/// runs.
#[derive(Clone, Debug)]
pub(super) struct CachedRuns {
    lists: Sparse<RunList>,
    /// Empty list, which stands for the list of S-blocks of which nothing was ever cached or trimmed.
    no_runs: RunList,
    /// Base-2 logarithm of the number of S-blocks of a list.
    list_bits: u32,
    sblock_sectors: u32,
    /// Mask of the bits of a position that are stored.
    kept: u32,
}

impl CachedRuns {
    /// Returns a map without runs, for a drive of the given shape.
    ///
    /// # Panics
    ///
    /// If a cache buffer with its guard band has 2³¹ sectors or more.
    pub(super) fn new(shape: &Shape) -> CachedRuns {
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

    /// Returns read access to the cached and trimmed runs of an S-block. `tail` is the tail of the cache buffer of its
    /// section, from which full positions are computed.
    #[inline]
    pub(super) fn of(&self, sblock: u64, tail: Position) -> Cached<'_> {
        let (list, first) = self.place(sblock);
        let list = self.lists.get(list).unwrap_or(&self.no_runs);
        Cached { list, first, end: first + self.sblock_sectors, kept: self.kept, tail }
    }

    /// Returns the mask of the low bits of a position that the map stores.
    pub(super) fn kept(&self) -> u32 {
        self.kept
    }

    /// Adds `run` to an S-block and removes the parts of older runs that it covers. Calls `hidden(place, sectors)` with
    /// each removed part that lay in the cache; `place` holds the stored bits of its position.
    #[inline]
    pub(super) fn overlay(&mut self, sblock: u64, run: CachedRun, mut hidden: impl FnMut(u32, u32)) {
        let (list, first) = self.place(sblock);
        let place = if run.is_absent() { ABSENT } else { run.position.0 as u32 & self.kept };
        let run = ShortRun { offset: first + run.offset, length: run.sectors, place };
        self.lists.change(list, |_| self.no_runs.clone()).overlay(run, false, |_, sectors, place| {
            place.into_iter().filter(|&place| place != ABSENT).for_each(|place| hidden(place, sectors));
        });
    }

    /// Removes the runs, and the parts of runs, within the sectors `from..to` of an S-block. Calls `removed(place,
    /// sectors)` with each removed part that lay in the cache; `place` holds the stored bits of its position.
    pub(super) fn remove(&mut self, sblock: u64, from: u32, to: u32, mut removed: impl FnMut(u32, u32)) {
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

    /// Makes the processor prefetch memory that a search for the runs of an S-block reads.
    #[inline]
    pub(super) fn foresee(&self, sblock: u64, coming: PrefetchHint) {
        self.lists.get(self.place(sblock).0).into_iter().for_each(|list| list.foresee(coming));
    }

    /// Returns the bytes of heap memory that the map takes now.
    pub(super) fn measured_bytes(&self) -> u64 {
        self.lists.measured_bytes() + self.lists.iter().map(|(_, list)| list.measured_bytes()).sum::<u64>()
    }

    /// Returns the index of the list that covers an S-block, and the S-block's first sector within that list.
    #[inline]
    fn place(&self, sblock: u64) -> (usize, u32) {
        let list = sblock >> self.list_bits;
        (list as usize, (sblock - (list << self.list_bits)) as u32 * self.sblock_sectors)
    }
}

/// Read access to the cached and trimmed runs of one S-block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cached<'a> {
    list: &'a RunList,
    /// First sector of the S-block within the list, and the sector after its last.
    first: u32,
    end: u32,
    kept: u32,
    tail: Position,
}

impl<'a> Cached<'a> {
    /// Returns the number of sectors of the S-block that are cached. Trimmed sectors do not count.
    pub(super) fn sectors(self) -> u32 {
        let cached = self.list.within(self.first, self.end).filter(|run| !run.is_absent());
        cached.map(|run| run.length).sum()
    }

    /// Returns all cached and trimmed runs of the S-block, in order of offset.
    pub(super) fn runs(self) -> impl Iterator<Item = CachedRun> + 'a {
        self.list.within(self.first, self.end).map(move |run| self.unpacked(run))
    }

    /// Returns the cached and trimmed runs that overlap the sectors `from..to` of the S-block, clipped to that range,
    /// in order of offset.
    pub(super) fn within(self, from: u32, to: u32) -> impl Iterator<Item = CachedRun> + 'a {
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
    //! Goal: the runs of every S-block equal naive ones, sector by sector, at all positions of the buffer. Method:
    //! random overlays, trims and removals on both. The ring is so long that no stored bit of a position is
    //! superfluous, so positions wrap within runs; tails lie below and above 2³². At the end all runs are removed.

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
                // Three of the forty S-blocks; the first two share a list unless S-blocks are large.
                let sblock = [18, 19, 33][sblock as usize];
                let sectors = length.min(SECTORS as u32 - offset);
                let range = offset as usize..(offset + sectors) as usize;
                let expected = naive[range.clone()].iter().filter(|slot| in_cache(slot)).count() as u32;
                // All runs lie within the length of the ring, and none begins at the position where another ends.
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
