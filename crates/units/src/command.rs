//! The words of the block interface: what a host asks of a drive. Source: the Linux block layer's request operations.

use crate::units::{Lba, Sectors};

/// Whether an access reads or writes the medium.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Sectors are read.
    Read,
    /// Sectors are written.
    Write,
}

/// What a command does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Operation {
    /// Fetch sectors.
    Read = 0,
    /// Store sectors.
    Write = 1,
    /// Make all that was acknowledged durable; carries no sectors.
    Flush = 2,
    /// The sectors' contents are no longer needed (discard, TRIM).
    Trim = 3,
}

/// One command to a drive, in the drive's sectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Command {
    /// What to do.
    pub operation: Operation,
    /// Force unit access: acknowledged only when on the medium.
    pub fua: bool,
    /// How many sectors; zero for a flush.
    pub sectors: u32,
    /// The first sector.
    pub lba: Lba,
}

impl Command {
    /// A read of `sectors` from `lba`.
    pub const fn read(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Read, fua: false, sectors, lba: Lba(lba) }
    }

    /// A write of `sectors` from `lba`.
    pub const fn write(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Write, fua: false, sectors, lba: Lba(lba) }
    }

    /// A trim of `sectors` from `lba`.
    pub const fn trim(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Trim, fua: false, sectors, lba: Lba(lba) }
    }

    /// A flush.
    pub const fn flush() -> Command {
        Command { operation: Operation::Flush, fua: false, sectors: 0, lba: Lba(0) }
    }

    /// One past the last sector.
    pub fn end(&self) -> Lba {
        self.lba + Sectors(self.sectors as u64)
    }

    /// Whether it names a sector that `other` names too.
    pub fn overlaps(&self, other: &Command) -> bool {
        self.lba < other.end() && other.lba < self.end()
    }
}
