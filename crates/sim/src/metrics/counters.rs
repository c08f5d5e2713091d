//! Counters at the host and at the medium, as Cassuto 2010 §III.B defines them.
//!
//! Invariants:
//! 1. An access of n blocks is one command, n blocks and ⌈n / 1000⌉ adjusted commands.

use imbrex_disk::Direction;
use imbrex_layer::Cause;

/// Longest piece that counts as one adjusted command.
pub const ADJUSTED_BLOCKS: u64 = 1000;

/// Commands, blocks and adjusted commands of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counter {
    /// Commands of any length.
    pub commands: u64,
    /// Blocks.
    pub blocks: u64,
    /// Pieces of at most [`ADJUSTED_BLOCKS`].
    pub adjusted: u64,
}

impl Counter {
    /// Counts one command of `blocks`.
    pub fn count(&mut self, blocks: u64) {
        self.commands += 1;
        self.blocks += blocks;
        self.adjusted += if blocks <= ADJUSTED_BLOCKS { 1 } else { blocks.div_ceil(ADJUSTED_BLOCKS) };
    }
}

/// Both directions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Reads.
    pub reads: Counter,
    /// Writes.
    pub writes: Counter,
}

impl Counters {
    /// Counts one command.
    pub fn count(&mut self, direction: Direction, blocks: u64) {
        match direction {
            Direction::Read => self.reads.count(blocks),
            Direction::Write => self.writes.count(blocks),
        }
    }
}

/// The medium's counters, and blocks by cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MediumCounters {
    /// In all.
    pub total: Counters,
    /// Blocks read, by [`Cause`].
    pub read_blocks: [u64; Cause::ALL.len()],
    /// Blocks written, by [`Cause`].
    pub write_blocks: [u64; Cause::ALL.len()],
}

impl MediumCounters {
    /// Counts one access.
    pub fn count(&mut self, direction: Direction, cause: Cause, blocks: u64) {
        self.total.count(direction, blocks);
        match direction {
            Direction::Read => self.read_blocks[cause as usize] += blocks,
            Direction::Write => self.write_blocks[cause as usize] += blocks,
        }
    }
}

/// Write overloading (Cassuto 2010, definition 4): (adjusted writes + adjusted reads at the medium − adjusted reads at
/// the host) / adjusted writes at the host. Zero where the host wrote nothing.
pub fn write_overloading(host: &Counters, medium: &Counters) -> f64 {
    if host.writes.adjusted == 0 {
        return 0.0;
    }
    let physical = medium.writes.adjusted as f64 + medium.reads.adjusted as f64 - host.reads.adjusted as f64;
    physical / host.writes.adjusted as f64
}

/// Blocks moved at the medium for each the host asked for; zero where it asked for none.
pub fn amplification(host: &Counter, medium: &Counter) -> f64 {
    if host.blocks == 0 {
        return 0.0;
    }
    medium.blocks as f64 / host.blocks as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_commands_are_pieces_of_at_most_a_thousand_blocks() {
        let mut counter = Counter::default();
        for blocks in [1, 1000, 1001, 50_000] {
            counter.count(blocks);
        }
        assert_eq!(counter, Counter { commands: 4, blocks: 52_002, adjusted: 1 + 1 + 2 + 50 });
    }

    #[test]
    fn overloading_follows_definition_4_on_the_counts_of_table_i() {
        let of = |reads, writes| Counters {
            reads: Counter { adjusted: reads, ..Counter::default() },
            writes: Counter { adjusted: writes, ..Counter::default() },
        };
        let overloading = write_overloading(&of(435_565, 75_615), &of(542_968, 180_613));
        // The paper prints 3.8; its counts give 288,016 / 75,615.
        assert!((overloading - 288_016.0 / 75_615.0).abs() < 1e-12);
        assert_eq!((overloading * 100.0).round(), 381.0);
    }
}
