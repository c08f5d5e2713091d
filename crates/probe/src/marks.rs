//! Marks: blocks of which single reads tell where they lie, in the cache, in their place, or somewhere new.
//!
//! Before each block the same far one is read, the anchor. From its end to the block's end passes what the seek takes and
//! what is left until the block comes by; so the time depends on nothing but where the block lies, and differs between
//! two places unless they lie at the same angle. A rotation more or less is no difference: a pass just caught or missed.

use crate::bench::{BLOCK_BYTES, Bench};
use crate::statistics::median;
use crate::target::{Operation, TargetError};

/// Blocks and their anchor.
#[derive(Clone, Debug)]
pub struct Marks {
    /// What is read before each.
    pub anchor: u64,
    /// The blocks.
    pub blocks: Vec<u64>,
}

/// From the end of the anchor to the end of each block, nanoseconds.
pub type Times = Vec<u64>;

impl Marks {
    /// Marks at `blocks`, with an anchor a good part of the drive away.
    pub fn new(bench: &Bench<'_>, blocks: Vec<u64>) -> Marks {
        let size = bench.target.size_bytes();
        let first = blocks.iter().min().copied().unwrap_or(0);
        let anchor = (first + size * 2 / 5) % (size - (1 << 21)) / BLOCK_BYTES * BLOCK_BYTES;
        Marks { anchor, blocks }
    }

    /// Reads them all.
    pub fn read(&self, bench: &mut Bench<'_>) -> Result<Times, TargetError> {
        let all: Vec<usize> = (0..self.blocks.len()).collect();
        self.read_some(bench, &all)
    }

    /// Reads those with these indices.
    pub fn read_some(&self, bench: &mut Bench<'_>, indices: &[usize]) -> Result<Times, TargetError> {
        self.read_times(bench, indices, bench.repeats)
    }

    /// Reads them all less often: some times may be wrong.
    pub fn read_quickly(&self, bench: &mut Bench<'_>) -> Result<Times, TargetError> {
        let all: Vec<usize> = (0..self.blocks.len()).collect();
        self.read_times(bench, &all, bench.repeats.div_ceil(3))
    }

    fn read_times(&self, bench: &mut Bench<'_>, indices: &[usize], repeats: usize) -> Result<Times, TargetError> {
        // In passes over all: what holds this machine up holds up several answers in a row.
        let reads = (0..repeats).flat_map(|_| indices.iter().map(|&index| self.blocks[index]));
        let read = |offset| Operation::read(offset, BLOCK_BYTES);
        let operations: Vec<_> = reads.flat_map(|block| [read(self.anchor), read(block)]).collect();
        let timed = bench.one_by_one(&operations)?;
        let times: Vec<u64> = timed.chunks(2).map(|pair| pair[1].end_ns.saturating_sub(pair[0].end_ns)).collect();
        let of_one = |place: usize| times.iter().skip(place).step_by(indices.len()).copied().collect::<Vec<_>>();
        Ok((0..indices.len()).map(|place| median(&of_one(place))).collect())
    }
}

/// Two times that differ by less than so many tolerances may be those of one place, by what they vary.
const CLEARLY: f64 = 3.0;

/// Whether two times are clearly not those of one place.
pub fn is_elsewhere(bench: &Bench<'_>, one: u64, other: u64) -> bool {
    !is_within(bench, one, other, CLEARLY * bench.tolerance)
}

/// Whether two times are those of one place.
pub fn is_same(bench: &Bench<'_>, one: u64, other: u64) -> bool {
    is_within(bench, one, other, bench.tolerance)
}

/// The share of blocks put elsewhere that seem to lie where they lay, because it is at the same angle.
pub fn by_chance(bench: &Bench<'_>) -> f64 {
    2.0 * bench.tolerance
}

fn is_within(bench: &Bench<'_>, one: u64, other: u64, share: f64) -> bool {
    let rotation = bench.rotation_ns();
    let (apart, tolerance) = (one.abs_diff(other) as f64, share * rotation);
    // What is answered faster than a platter turns lies on none, and has no next pass.
    let turns = one.min(other) as f64 > rotation / 10.0;
    apart < tolerance || (turns && (apart - rotation).abs() < tolerance)
}

/// For each pair whether it is of one place.
pub fn same(bench: &Bench<'_>, one: &[u64], other: &[u64]) -> Vec<bool> {
    one.iter().zip(other).map(|(&one, &other)| is_same(bench, one, other)).collect()
}
