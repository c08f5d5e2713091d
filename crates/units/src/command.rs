//! Commands of the block interface, which a host sends to a drive. Source: the Linux block layer's request operations.

use crate::units::{Lba, Sectors};

/// Whether an access reads or writes the medium.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Sectors are read.
    Read,
    /// Sectors are written.
    Write,
}

/// The operation of a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Operation {
    /// Fetch sectors.
    Read = 0,
    /// Store sectors.
    Write = 1,
    /// Make all acknowledged writes durable; carries no sectors.
    Flush = 2,
    /// Discard the sectors' contents (TRIM).
    Trim = 3,
}

/// One command to a drive, in the drive's sectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Command {
    /// The operation.
    pub operation: Operation,
    /// Force unit access: a write is acknowledged only when it is on the medium.
    pub fua: bool,
    /// Number of sectors; zero for a flush.
    pub sectors: u32,
    /// The first sector.
    pub lba: Lba,
}

impl Command {
    /// Returns a read of `sectors` sectors of the drive, from `lba` on.
    pub const fn read(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Read, fua: false, sectors, lba: Lba(lba) }
    }

    /// Returns a write of `sectors` sectors of the drive, from `lba` on.
    pub const fn write(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Write, fua: false, sectors, lba: Lba(lba) }
    }

    /// Returns a trim of `sectors` sectors of the drive, from `lba` on.
    pub const fn trim(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Trim, fua: false, sectors, lba: Lba(lba) }
    }

    /// Returns a flush.
    pub const fn flush() -> Command {
        Command { operation: Operation::Flush, fua: false, sectors: 0, lba: Lba(0) }
    }

    /// Returns one past the last sector.
    pub fn end(&self) -> Lba {
        self.lba + Sectors(self.sectors as u64)
    }

    /// Returns whether the command and `other` have a sector in common.
    pub fn overlaps(&self, other: &Command) -> bool {
        self.lba < other.end() && other.lba < self.end()
    }
}
