//! Counters at the host and at the medium, as defined in Cassuto 2010 §III.B. A block is one sector of the drive.
//!
//! Invariants:
//! 1. An access of n blocks is one command, n blocks and ⌈n / 1000⌉ adjusted commands.
//! 2. Each block at the medium is counted for one cause, and each block of the journal also for one kind of contents.

use imbrex_disk::Direction;
use imbrex_layer::{Cause, Kind, Step};

/// Maximum number of blocks (sectors) that count as one adjusted command: a command of n blocks is ⌈n / 1000⌉ adjusted
/// commands (Cassuto 2010 §III.B).
pub const ADJUSTED_BLOCKS: u64 = 1000;

/// Commands, blocks and adjusted commands of one direction (Cassuto 2010 §III.B). A block is one sector of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counter {
    /// Number of commands of any length in this direction (read or write).
    pub commands: u64,
    /// Number of blocks of all commands together; a block is one sector of the drive.
    pub blocks: u64,
    /// Number of adjusted commands: a command of n blocks (sectors) counts as ⌈n / 1000⌉, but at least as 1.
    pub adjusted: u64,
}

impl Counter {
    /// Counts one command of `blocks` blocks (sectors): adds 1 to the commands, `blocks` to the blocks, and ⌈`blocks` /
    /// 1000⌉, but at least 1, to the adjusted commands.
    pub fn count(&mut self, blocks: u64) {
        self.commands += 1;
        self.blocks += blocks;
        self.adjusted += if blocks <= ADJUSTED_BLOCKS { 1 } else { blocks.div_ceil(ADJUSTED_BLOCKS) };
    }
}

/// Counters of reads and of writes: commands, blocks (sectors) and adjusted commands of each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Commands, blocks (sectors) and adjusted commands of the reads.
    pub reads: Counter,
    /// Commands, blocks (sectors) and adjusted commands of the writes.
    pub writes: Counter,
}

impl Counters {
    /// Counts one read or write command of `blocks` blocks (sectors): adds 1 to the commands of `direction`, `blocks`
    /// to its blocks, and ⌈`blocks` / 1000⌉, but at least 1, to its adjusted commands.
    pub fn count(&mut self, direction: Direction, blocks: u64) {
        match direction {
            Direction::Read => self.reads.count(blocks),
            Direction::Write => self.writes.count(blocks),
        }
    }
}

/// Counters of the layer's reads and writes on platters and flash together, with blocks by cause. A block is one
/// sector.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MediumCounters {
    /// Commands, blocks (sectors) and adjusted commands at platters and flash, for all causes together.
    pub total: Counters,
    /// Number of sectors read from platters and flash, by cause: the index is `Cause as usize`.
    pub read_blocks: [u64; Cause::ALL.len()],
    /// Number of sectors written to platters and flash, by cause: the index is `Cause as usize`.
    pub write_blocks: [u64; Cause::ALL.len()],
    /// Number of sectors read from and written to the layer's journal, by direction (index 0 reads, 1 writes) and by
    /// kind of contents (`Kind as usize`). Only steps with cause `Journal` count, so the records of a backup do not.
    pub journal_blocks: [[u64; KINDS]; 2],
}

/// Number of kinds of contents of journal blocks.
const KINDS: usize = Kind::Checkpoint as usize + 1;

impl MediumCounters {
    /// Counts one command of `blocks` blocks (sectors) in `total`. The command is one step of a plan, or several steps
    /// that continue each other. Counts by cause are unchanged.
    pub fn count_command(&mut self, direction: Direction, blocks: u64) {
        self.total.count(direction, blocks);
    }

    /// Counts the sectors of `step` for its cause, and for its kind of contents if it belongs to the layer's journal.
    /// `total` is unchanged.
    pub fn count_blocks(&mut self, direction: Direction, step: &Step) {
        let blocks = u64::from(step.sectors);
        match direction {
            Direction::Read => self.read_blocks[step.cause as usize] += blocks,
            Direction::Write => self.write_blocks[step.cause as usize] += blocks,
        }
        if step.cause == Cause::Journal {
            self.journal_blocks[direction as usize][step.kind as usize] += blocks;
        }
    }

    /// Returns pairs of a cause's name in the results and the number of sectors moved in `direction` for it. Sectors of
    /// the journal are split by the names of their contents instead. Names without sectors are left out.
    pub fn named(&self, direction: Direction) -> impl Iterator<Item = (&'static str, u64)> {
        let blocks = match direction {
            Direction::Read => &self.read_blocks,
            Direction::Write => &self.write_blocks,
        };
        let causes = Cause::ALL.into_iter().filter(|cause| *cause != Cause::Journal);
        let of_causes = causes.map(|cause| (cause.name(), blocks[cause as usize]));
        let of_journal = JOURNAL.map(|(kind, name)| (name, self.journal_blocks[direction as usize][kind as usize]));
        of_causes.chain(of_journal).filter(|(_, blocks)| *blocks > 0)
    }
}

/// Kinds of contents of journal blocks, with their names in the results.
const JOURNAL: [(Kind, &str); 5] = [
    (Kind::OutOfBand, "packet_records"),
    (Kind::Padding, "packet_padding"),
    (Kind::Map, "map_records"),
    (Kind::Checkpoint, "checkpoints"),
    (Kind::Data, "journal_data"),
];

/// Returns the write overloading (Cassuto 2010, definition 4): (adjusted writes + adjusted reads at the medium −
/// adjusted reads at the host) / adjusted writes at the host. Zero if the host wrote nothing.
pub fn write_overloading(host: &Counters, medium: &Counters) -> f64 {
    if host.writes.adjusted == 0 {
        return 0.0;
    }
    let physical = medium.writes.adjusted as f64 + medium.reads.adjusted as f64 - host.reads.adjusted as f64;
    physical / host.writes.adjusted as f64
}

/// Returns the sectors moved at the medium divided by the sectors that the host requested, in one direction; 0 if the
/// host requested none.
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
    fn blocks_of_the_journal_are_told_apart_by_what_they_hold() {
        let step = |op, kind, cause, sectors| {
            let (medium, pba, lba) = (imbrex_layer::Medium::Disk, imbrex_disk::Pba(0), imbrex_disk::Lba(0));
            Step { op, medium, kind, cause, sectors, pba, lba }
        };
        let mut counters = MediumCounters::default();
        for (kind, cause, sectors) in [
            (Kind::OutOfBand, Cause::Journal, 3),
            (Kind::Data, Cause::Host, 8),
            (Kind::Padding, Cause::Journal, 5),
            (Kind::Map, Cause::Journal, 64),
            // A record that belongs to a backup counts for the backup.
            (Kind::OutOfBand, Cause::Backup, 1),
        ] {
            counters.count_blocks(Direction::Write, &step(imbrex_layer::StepOp::Write, kind, cause, sectors));
        }
        let named: Vec<_> = counters.named(Direction::Write).collect();
        let wanted = [("host", 8), ("backup", 1), ("packet_records", 3), ("packet_padding", 5), ("map_records", 64)];
        assert_eq!(named, wanted);
        assert_eq!(counters.write_blocks[Cause::Journal as usize], 72);
        assert_eq!(counters.named(Direction::Read).count(), 0);
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
