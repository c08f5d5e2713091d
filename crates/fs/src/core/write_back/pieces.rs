//! Arithmetic on the pieces of a file: runs of its blocks, and the extents where they lie or will lie.

use super::staged::{Block, Blocks};
use crate::block_run::BlockRun;
use crate::format::change::Extent;

/// Joins neighbouring blocks to runs. Returns the first block and the count of each run.
pub(in crate::core) fn in_pieces(blocks: &[u32]) -> Vec<(u32, u32)> {
    let mut pieces: Vec<(u32, u32)> = Vec::new();
    for at in blocks {
        match pieces.last_mut() {
            Some((first, count)) if *first + *count == *at => *count += 1,
            _ => pieces.push((*at, 1)),
        }
    }
    pieces
}

/// Returns the block where the first `count` runs of blocks end, or `None` if there are no more. A run consists of
/// neighbours that all take room, or that are all holes.
pub(super) fn portion_end(blocks: &Blocks, count: usize) -> Option<u32> {
    let (mut runs, mut last) = (0, None);
    for (at, block) in blocks.range(0..u32::MAX) {
        let is_hole = matches!(block, Block::Zeros);
        runs += usize::from(last != Some((at.wrapping_sub(1), is_hole)));
        if runs > count {
            return Some(at);
        }
        last = Some((at, is_hole));
    }
    None
}

/// Removes the first `blocks` blocks from `pieces`, and returns them.
pub(in crate::core) fn take_first(pieces: &mut Vec<(u32, u32)>, blocks: u64) -> Vec<(u32, u32)> {
    let (mut taken, mut rest, mut left) = (Vec::new(), Vec::new(), blocks);
    for (at, count) in pieces.drain(..) {
        let first = left.min(u64::from(count)) as u32;
        left -= u64::from(first);
        taken.extend((first > 0).then_some((at, first)));
        rest.extend((first < count).then_some((at + first, count - first)));
    }
    *pieces = rest;
    taken
}

/// Returns the extents of `pieces` when they are placed one after the other in `runs`.
///
/// # Panics
/// If `runs` have too few blocks.
pub(in crate::core) fn place(pieces: &[(u32, u32)], runs: &[BlockRun]) -> Vec<Extent> {
    let (mut extents, mut runs) = (Vec::new(), runs.iter().copied());
    let mut run = BlockRun { start: 0, blocks: 0 };
    for &(mut at, mut left) in pieces {
        while left > 0 {
            if run.blocks == 0 {
                run = runs.next().expect("an allocation has room for what it was asked for");
                continue;
            }
            let blocks = u64::from(left).min(run.blocks) as u32;
            extents.push(Extent { at, blocks, start: run.start });
            (at, left) = (at + blocks, left - blocks);
            run = BlockRun { start: run.start + u64::from(blocks), blocks: run.blocks - u64::from(blocks) };
        }
    }
    extents
}

/// Returns the parts of `extents` that remain after the blocks in `replaced` were written elsewhere. Only blocks of the
/// file before `end` count as replaced.
pub(in crate::core) fn without(extents: &[Extent], replaced: &Blocks, end: u32) -> Vec<Extent> {
    let mut left = Vec::new();
    for extent in extents {
        let mut from = u64::from(extent.at);
        for (at, _) in replaced.range(extent.at..extent.end().min(u64::from(end)).max(u64::from(extent.at)) as u32) {
            left.extend(extent.within(from, u64::from(at)));
            from = u64::from(at) + 1;
        }
        left.extend(extent.within(from, extent.end()));
    }
    left
}

/// Returns the extents in the order of the file. Joins neighbours that are adjacent on the device and in the same band
/// of `band_blocks` blocks.
pub(in crate::core) fn joined(mut extents: Vec<Extent>, band_blocks: u64) -> Vec<Extent> {
    extents.sort_by_key(|extent| extent.at);
    let mut joined: Vec<Extent> = Vec::with_capacity(extents.len());
    for extent in extents {
        match joined.last_mut() {
            Some(last)
                if last.end() == u64::from(extent.at)
                    && last.start + u64::from(last.blocks) == extent.start
                    && !extent.start.is_multiple_of(band_blocks) =>
            {
                last.blocks += extent.blocks;
            }
            _ => joined.push(extent),
        }
    }
    joined
}

/// Appends the parts of `run` that are in no extent of `kept` to `left`.
pub(in crate::core) fn subtract(run: BlockRun, kept: &[Extent], left: &mut Vec<BlockRun>) {
    let mut inside: Vec<(u64, u64)> = kept
        .iter()
        .map(|extent| (extent.start.max(run.start), (extent.start + u64::from(extent.blocks)).min(run.end())))
        .filter(|(from, to)| from < to)
        .collect();
    inside.sort_unstable();
    let mut from = run.start;
    for (start, end) in inside {
        if start > from {
            left.push(BlockRun { start: from, blocks: start - from });
        }
        from = from.max(end);
    }
    if from < run.end() {
        left.push(BlockRun { start: from, blocks: run.end() - from });
    }
}

#[cfg(test)]
mod tests {
    use super::super::staged::Block;
    use super::*;

    #[test]
    fn pieces_lie_one_after_the_other() {
        let runs = [BlockRun { start: 100, blocks: 3 }, BlockRun { start: 200, blocks: 4 }];
        let extents = place(&[(0, 2), (7, 5)], &runs);
        let expected = [(0, 2, 100), (7, 1, 102), (8, 4, 200)];
        assert_eq!(extents, expected.map(|(at, blocks, start)| Extent { at, blocks, start }));
    }

    #[test]
    fn the_first_blocks_of_pieces_are_taken() {
        let mut pieces = vec![(0, 2), (7, 5), (20, 1)];
        assert_eq!(take_first(&mut pieces, 4), [(0, 2), (7, 2)]);
        assert_eq!(pieces, [(9, 3), (20, 1)]);
        assert_eq!(take_first(&mut pieces, 4), [(9, 3), (20, 1)]);
        assert_eq!(pieces, []);
    }

    #[test]
    fn what_is_kept_is_not_freed() {
        let extent = |start, blocks| Extent { at: 0, blocks, start };
        let mut left = Vec::new();
        subtract(BlockRun { start: 10, blocks: 10 }, &[extent(18, 9), extent(5, 7), extent(14, 1)], &mut left);
        assert_eq!(left, [BlockRun { start: 12, blocks: 2 }, BlockRun { start: 15, blocks: 3 }]);
    }

    #[test]
    fn neighbours_are_joined_and_others_are_not() {
        let extent = |at, blocks, start| Extent { at, blocks, start };
        let extents = vec![extent(2, 1, 12), extent(0, 2, 10), extent(3, 1, 20), extent(4, 5, 21)];
        assert_eq!(joined(extents.clone(), 100), [extent(0, 3, 10), extent(3, 6, 20)]);
        assert_eq!(joined(extents, 12), [extent(0, 2, 10), extent(2, 1, 12), extent(3, 6, 20)]);
    }

    #[test]
    fn a_portion_ends_where_another_run_would_begin() {
        let mut blocks = Blocks::default();
        for at in [0, 1, 5, 6, 9] {
            blocks.write(at, 0, b"x");
        }
        blocks.insert(7, Block::Zeros);
        blocks.insert(8, Block::Zeros);
        assert_eq!([1, 2, 3, 4, 5].map(|count| portion_end(&blocks, count)), [Some(5), Some(7), Some(9), None, None]);
    }

    #[test]
    fn replaced_blocks_leave_the_rest() {
        let mut replaced = Blocks::default();
        for at in [1, 2, 9] {
            replaced.insert(at, Block::Zeros);
        }
        let extent = |at, blocks| Extent { at, blocks, start: 50 + u64::from(at) };
        assert_eq!(without(&[extent(0, 5)], &replaced, u32::MAX), [extent(0, 1), extent(3, 2)]);
        let all = [extent(0, 5), extent(9, 1)];
        assert_eq!(without(&all, &replaced, 2), [extent(0, 1), extent(2, 3), extent(9, 1)], "what lies behind stays");
    }
}
