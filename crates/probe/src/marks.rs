//! Marks: blocks whose read times show where they lie: in the cache, in their home location, or somewhere new.
//!
//! Before each block, a distant block is read, the anchor. The time from the anchor's end to the block's end is the
//! seek plus the rotational wait. So the time depends only on where the block lies, and differs between two places
//! unless they lie at the same angle. Times that differ by exactly one rotation count as equal: the head just caught or
//! missed a pass.

use crate::bench::{BLOCK_BYTES, Bench};
use crate::statistics::{around, median};
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
        let rotation = bench.rotation_ns();
        Ok((0..indices.len()).map(|place| typical(&of_one(place), rotation)).collect())
    }
}

/// Number of repeats from which times of one block are compared by their phases.
const MANY: usize = 5;

/// Returns the typical one of several times of one block. If the head reaches the block about when it passes, some of
/// the times are a rotation longer. So the times are compared by their phases: the phase of the result has the smallest
/// sum of distances to the others, and the result may be a rotation longer or shorter than the median.
fn typical(times: &[u64], rotation: f64) -> u64 {
    let usual = median(times);
    // A time far shorter than a rotation does not come from a platter. Few repeats are read where times deviate only now
    // and then, and the median is not one of those.
    if times.len() < MANY || (usual as f64) < rotation / 10.0 {
        return usual;
    }
    let period = rotation as i64;
    let apart = |one: u64, other: u64| around(one as i64 - other as i64, period);
    let distance = |&&time: &&u64| times.iter().map(|&other| apart(time, other).unsigned_abs()).sum::<u64>();
    let central = *times.iter().min_by_key(distance).expect("there are three or more");
    (usual as i64 - apart(usual, central)) as u64
}

/// Two times that differ by less than this many tolerances may still belong to one place, because measurements vary;
/// the second number if the tolerance is several times the standard error.
const CLEARLY: (f64, f64) = (3.0, 1.5);
/// Tolerance from which it is several times the standard error.
const WIDE: f64 = 0.08;

fn clearly(bench: &Bench<'_>) -> f64 {
    bench.tolerance * if bench.tolerance > WIDE { CLEARLY.1 } else { CLEARLY.0 }
}

/// Returns the share of the moved blocks that are seen to lie elsewhere, if the new places have random angles.
pub(crate) fn share_seen(bench: &Bench<'_>) -> f64 {
    1.0 - 2.0 * clearly(bench)
}

/// Returns whether two times clearly belong to two different places.
pub(crate) fn is_elsewhere(bench: &Bench<'_>, one: u64, other: u64) -> bool {
    !is_within(bench, one, other, clearly(bench))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_a_rotation_apart_are_of_one_place() {
        assert_eq!(typical(&[120, 122, 219, 221, 223], 100.0), 221);
        // Half the times missed a pass: the median alone would be at the edge of either half.
        assert_eq!(typical(&[90, 99, 110, 112, 188, 190, 200, 210], 100.0) % 100, 99);
        assert_eq!(typical(&[150, 120, 122, 121, 119], 100.0), 121, "one of five was delayed");
        assert_eq!(typical(&[1, 2, 3, 50], 100.0), 3, "not from a platter");
        assert_eq!(typical(&[777], 100.0), 777);
    }
}
