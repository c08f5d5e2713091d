//! Marks: blocks whose read times show where they lie: in the cache, in their home location, or somewhere new.
//!
//! Before each block, a distant block is read, the anchor. The time from the anchor's end to the block's end is the
//! seek plus the rotational wait. So the time depends only on where the block lies, and differs between two places
//! unless they lie at the same angle. Times that differ by exactly one rotation count as equal: the head just caught or
//! missed a pass.

use crate::bench::{BLOCK_BYTES, Bench};
use crate::statistics::median;
use crate::target::{Operation, TargetError};

/// Blocks and their anchor.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    /// Byte offset of the anchor: the distant block that is read before each mark, so that the head always starts from
    /// the same place.
    pub anchor: u64,
    /// Byte offsets of the marks, which are the blocks whose read times show where they lie.
    pub blocks: Vec<u64>,
}

/// Times from the end of the anchor's read to the end of each block's read, nanoseconds.
pub(crate) type Times = Vec<u64>;

impl Marks {
    /// Returns marks at `blocks`, with an anchor that is two fifths of the drive away.
    pub(crate) fn new(bench: &Bench<'_>, blocks: Vec<u64>) -> Marks {
        let size = bench.target.size_bytes();
        let first = blocks.iter().min().copied().unwrap_or(0);
        let anchor = (first + size * 2 / 5) % (size - (1 << 21)) / BLOCK_BYTES * BLOCK_BYTES;
        Marks { anchor, blocks }
    }

    /// Reads all marks.
    pub(crate) fn read(&self, bench: &mut Bench<'_>) -> Result<Times, TargetError> {
        let all: Vec<usize> = (0..self.blocks.len()).collect();
        self.read_some(bench, &all)
    }

    /// Reads the marks with these indices.
    pub(crate) fn read_some(&self, bench: &mut Bench<'_>, indices: &[usize]) -> Result<Times, TargetError> {
        self.read_times(bench, indices, bench.repeats)
    }

    /// Reads all marks with a third of the repeats: some times may be wrong.
    pub(crate) fn read_quickly(&self, bench: &mut Bench<'_>) -> Result<Times, TargetError> {
        let all: Vec<usize> = (0..self.blocks.len()).collect();
        self.read_times(bench, &all, bench.repeats.div_ceil(3))
    }

    fn read_times(&self, bench: &mut Bench<'_>, indices: &[usize], repeats: usize) -> Result<Times, TargetError> {
        // In passes over all marks: a disturbance on this machine delays several answers in a row, and would spoil all
        // repeats of one mark.
        let reads = (0..repeats).flat_map(|_| indices.iter().map(|&index| self.blocks[index]));
        let read = |offset| Operation::read(offset, BLOCK_BYTES);
        let operations: Vec<_> = reads.flat_map(|block| [read(self.anchor), read(block)]).collect();
        let timed = bench.one_by_one(&operations)?;
        let times: Vec<u64> = timed.chunks(2).map(|pair| pair[1].end_ns.saturating_sub(pair[0].end_ns)).collect();
        let of_one = |place: usize| times.iter().skip(place).step_by(indices.len()).copied().collect::<Vec<_>>();
        Ok((0..indices.len()).map(|place| median(&of_one(place))).collect())
    }
}

/// Two times that differ by less than this many tolerances may still belong to one place, because measurements vary.
const CLEARLY: f64 = 3.0;

/// Returns whether two times clearly belong to two different places.
pub(crate) fn is_elsewhere(bench: &Bench<'_>, one: u64, other: u64) -> bool {
    !is_within(bench, one, other, CLEARLY * bench.tolerance)
}

/// Returns whether two times belong to one place.
pub(crate) fn is_same(bench: &Bench<'_>, one: u64, other: u64) -> bool {
    is_within(bench, one, other, bench.tolerance)
}

/// Returns the share of moved blocks that seem unmoved, because the new place happens to lie at the same angle.
pub(crate) fn by_chance(bench: &Bench<'_>) -> f64 {
    2.0 * bench.tolerance
}

fn is_within(bench: &Bench<'_>, one: u64, other: u64, share: f64) -> bool {
    let rotation = bench.rotation_ns();
    let (apart, tolerance) = (one.abs_diff(other) as f64, share * rotation);
    // A time far shorter than a rotation does not come from a platter, and has no next pass.
    let turns = one.min(other) as f64 > rotation / 10.0;
    apart < tolerance || (turns && (apart - rotation).abs() < tolerance)
}

/// Returns, for each pair of times, whether both belong to one place.
pub(crate) fn same(bench: &Bench<'_>, one: &[u64], other: &[u64]) -> Vec<bool> {
    one.iter().zip(other).map(|(&one, &other)| is_same(bench, one, other)).collect()
}
