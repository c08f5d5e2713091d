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
    /// Reads sectors.
    Read = 0,
    /// Writes sectors.
    Write = 1,
    /// Makes all writes that were acknowledged before it durable; has no sectors.
    Flush = 2,
    /// Discards the contents of sectors (TRIM, UNMAP).
    Trim = 3,
}

/// One command to a drive. Address and length are in sectors: of 512 bytes in a trace or workload, of the drive's size
/// (512 or 4096 bytes) once the command has entered a drive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Command {
    /// The operation.
    pub operation: Operation,
    /// Force unit access (FUA): a write is acknowledged only when it is on the medium.
    pub fua: bool,
    /// Number of sectors; zero for a flush.
    pub sectors: u32,
    /// Address of the first sector; without meaning for a flush.
    pub lba: Lba,
}

impl Command {
    /// Returns a read, without FUA, of `sectors` sectors from sector `lba` on.
    pub const fn read(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Read, fua: false, sectors, lba: Lba(lba) }
    }

    /// Returns a write, without FUA, of `sectors` sectors from sector `lba` on.
    pub const fn write(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Write, fua: false, sectors, lba: Lba(lba) }
    }

    /// Returns a trim of `sectors` sectors from sector `lba` on.
    pub const fn trim(lba: u64, sectors: u32) -> Command {
        Command { operation: Operation::Trim, fua: false, sectors, lba: Lba(lba) }
    }

    /// Returns a flush; its address and its number of sectors are 0.
    pub const fn flush() -> Command {
        Command { operation: Operation::Flush, fua: false, sectors: 0, lba: Lba(0) }
    }

    /// Returns the address of the sector after the last one: `lba + sectors`.
    pub fn end(&self) -> Lba {
        self.lba + Sectors(self.sectors as u64)
    }

    /// Returns whether the address ranges of the two commands overlap, whatever their operations. A flush overlaps
    /// nothing; any other command must have at least one sector.
    pub fn overlaps(&self, other: &Command) -> bool {
        self.lba < other.end() && other.lba < self.end()
    }
}
