//! A chunk: a part of the map, of [`CHUNK_BLOCKS`] blocks. A chunk is a list of runs while there are few of them, and
//! from then on an array with the place of each block, as in a page-mapped drive.
//!
//! Blocks written at random make runs of one block. A list of thousands of those is longer than an array of places. It
//! takes a search for each look-up, and an insertion moves later runs.
//!
//! Invariants:
//! 1. A part of a chunk is visited as one only if its blocks follow each other in one zone.

use crate::layer::PrefetchHint;
use crate::map::prefetch::prefetch;
use crate::map::run_list::RunList;
use crate::map::short_run::{ABSENT, ShortRun};

/// Number of blocks in a chunk: 8 MiB with blocks of 4 KiB, whose places take 8 KiB.
pub(super) const CHUNK_BLOCKS: u32 = 2048;
/// Maximum number of runs in a list. A longer list takes as much memory as the places do, within a factor of two either
/// way.
const RUNS_MAX: usize = CHUNK_BLOCKS as usize / 4;
/// Place of a block in no run: the block lies where the factory put it. `build` ensures that no real place is as large.
const UNMAPPED: u32 = ABSENT - 1;

/// A part of the map: the places of 2,048 consecutive logical blocks, as a list of runs or as an array.
#[derive(Clone, Debug)]
pub(super) enum Chunk {
    /// A list of runs. Blocks in no run lie where the new drive had them.
    Runs(RunList),
    /// The place of each block; [`ABSENT`] for a trimmed block, [`UNMAPPED`] for a block that lies where the new drive
    /// had it.
    Places(Box<[u32]>),
}

impl Chunk {
    /// Returns a chunk without runs, for blocks whose places are below `places`.
    pub(super) fn new(places: u32) -> Chunk {
        Chunk::Runs(RunList::new(places))
    }

    /// Moves the chunk out, so that the caller can change it and put it back. Leaves an empty array, which must not be
    /// used.
    pub(super) fn take(&mut self) -> Chunk {
        std::mem::replace(self, Chunk::Places(Box::default()))
    }

    /// Calls `visit(offset, length, place)` with every part of the blocks `from..to` of the chunk, in order. `place` is
    /// `None` for a part in no run, and [`ABSENT`] for a trimmed one. A zone has `zone_blocks` blocks, and no part with
    /// a place crosses the end of a zone.
    #[inline]
    pub(super) fn cover(&self, zone_blocks: u32, from: u32, to: u32, visit: impl FnMut(u32, u32, Option<u32>)) {
        match self {
            Chunk::Runs(list) => list.cover(from, to, visit),
            Chunk::Places(places) => cover(places, zone_blocks, from, to, visit),
        }
    }

    /// Sets the places of the blocks of `run`. Calls `hidden` with the old contents of its range, as [`Chunk::cover`]
    /// does. A list that becomes longer than 512 runs is converted to an array.
    pub(super) fn overlay(&mut self, zone_blocks: u32, run: ShortRun, hidden: impl FnMut(u32, u32, Option<u32>)) {
        match self {
            Chunk::Runs(list) => {
                // Runs never join across the end of a zone: a guard may lie there.
                list.overlay(run, run.is_absent() || !run.place.is_multiple_of(zone_blocks), hidden);
                if list.len() > RUNS_MAX {
                    *self = Chunk::Places(places_of(list));
                }
            }
            Chunk::Places(places) => {
                cover(places, zone_blocks, run.offset, run.end(), hidden);
                put(places, run);
            }
        }
    }

    /// Makes the processor prefetch memory that a look-up of the block at `offset` in the chunk reads.
    #[inline]
    pub(super) fn prefetch(&self, offset: u32, coming: PrefetchHint) {
        match (self, coming) {
            (_, PrefetchHint::Later) => prefetch(self),
            (Chunk::Runs(list), PrefetchHint::Next) => list.foresee(PrefetchHint::Next),
            (Chunk::Places(places), PrefetchHint::Next) => prefetch(&places[offset as usize]),
        }
    }

    /// Returns the bytes of heap memory that the chunk takes.
    pub(super) fn measured_bytes(&self) -> u64 {
        match self {
            Chunk::Runs(list) => list.measured_bytes(),
            Chunk::Places(places) => size_of_val(&**places) as u64,
        }
    }
}

/// Returns the place of each block of a list.
fn places_of(list: &RunList) -> Box<[u32]> {
    let mut places = vec![UNMAPPED; CHUNK_BLOCKS as usize].into_boxed_slice();
    list.runs().for_each(|run| put(&mut places, run));
    places
}

/// Writes the places of a run's blocks.
fn put(places: &mut [u32], run: ShortRun) {
    let places = &mut places[run.offset as usize..run.end() as usize];
    match run.is_absent() {
        true => places.fill(ABSENT),
        false => places.iter_mut().zip(run.place..).for_each(|(place, new)| *place = new),
    }
}

/// Calls `visit` as [`Chunk::cover`] does.
fn cover(places: &[u32], zone_blocks: u32, from: u32, to: u32, mut visit: impl FnMut(u32, u32, Option<u32>)) {
    let mut next = from;
    while next < to {
        let first = places[next as usize];
        let mut length = 1;
        while next + length < to {
            let (before, place) = (places[(next + length - 1) as usize], places[(next + length) as usize]);
            let follows = match before {
                ABSENT | UNMAPPED => place == before,
                _ => place == before + 1 && !place.is_multiple_of(zone_blocks),
            };
            if !follows {
                break;
            }
            length += 1;
        }
        visit(next, length, (first != UNMAPPED).then_some(first));
        next += length;
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a chunk equals an array of places, as a list, as an array, and when it changes from the former to the
    //! latter. Method: random runs on both; parts are compared block by block, and each must lie in one zone.

    use proptest::prelude::*;

    use super::*;

    const ZONE_BLOCKS: u32 = 70;

    proptest! {
        #[test]
        fn equals_an_array(
            alone in prop::sample::select(vec![0usize, 500, 600]),
            steps in prop::collection::vec((0..CHUNK_BLOCKS, 1u32..90, 0u32..100_000, any::<bool>()), 1..60),
        ) {
            let mut chunk = Chunk::new(1 << 20);
            let mut naive = vec![None; CHUNK_BLOCKS as usize];
            // First `alone` runs of one block each, then runs of any length over them.
            let alone = (0..alone as u32).map(|number| (number * 3, 1, number * 5, false));
            for (offset, length, place, is_trim) in alone.chain(steps) {
                let place = if is_trim { ABSENT } else { place };
                let length = length.min(CHUNK_BLOCKS - offset).min(if is_trim { length } else { ZONE_BLOCKS - place % ZONE_BLOCKS });
                let at = |block: u32| if is_trim { ABSENT } else { place + block - offset };
                chunk.overlay(ZONE_BLOCKS, ShortRun { offset, length, place }, |from, count, hidden| {
                    for block in from..from + count {
                        let was = hidden.map(|hidden| if hidden == ABSENT { ABSENT } else { hidden + block - from });
                        assert_eq!(was, naive[block as usize], "block {block} was hidden");
                    }
                });
                (offset..offset + length).for_each(|block| naive[block as usize] = Some(at(block)));
            }
            let mut next = 5;
            chunk.cover(ZONE_BLOCKS, 5, 2000, |from, count, place| {
                assert_eq!(from, next, "parts follow each other");
                next = from + count;
                let placed = place.filter(|&place| place != ABSENT);
                assert!(placed.is_none_or(|place| place % ZONE_BLOCKS + count <= ZONE_BLOCKS), "{place:?} in one zone");
                for block in from..next {
                    let is = place.map(|place| if place == ABSENT { ABSENT } else { place + block - from });
                    assert_eq!(is, naive[block as usize], "block {block}");
                }
            });
            prop_assert_eq!(next, 2000);
        }
    }

    #[test]
    fn it_takes_the_place_of_each_block_once_most_stand_alone() {
        let mut chunk = Chunk::new(1 << 20);
        for number in 0..=RUNS_MAX as u32 {
            assert!(matches!(chunk, Chunk::Runs(_)), "{number} runs");
            chunk.overlay(ZONE_BLOCKS, ShortRun { offset: number * 2, length: 1, place: number * 2 }, |_, _, _| {});
        }
        assert_eq!(chunk.measured_bytes(), u64::from(CHUNK_BLOCKS) * 4);
    }
}
