//! Sizes of the sections of a disk and of their two rings (Cassuto 2010 §V.A, its five parameters).
//!
//! ```text
//!   section │ S-blocks: native + spare │ Λ │ disk guard │ cache buffer │ Λ │ disk guard │
//! ```
//!
//! The payload, to which the paper's shares refer, consists of native S-blocks, spare S-blocks and cache. The guards
//! lie outside the payload. Sectors that do not fill an S-block of a section, or a section of the payload, are left
//! unused.
//!
//! Invariants:
//! 1. A section has at least two spare S-blocks, one native one, and room for one sector in its cache.
//! 2. Λ (the guard band) ≥ interference + one S-block: a whole S-block is copied at once without destroying its source.

use imbrex_disk::Sectors;

/// The sizes of a section, equal for all sections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Number of sections.
    pub sections: u64,
    /// Sectors of an S-block.
    pub sblock_sectors: u64,
    /// S-blocks of a section that hold its LBAs.
    pub native_sblocks: u64,
    /// S-blocks of a section beside the native ones; their slots are free or dead.
    pub spare_sblocks: u64,
    /// Payload of a cache buffer in sectors.
    pub cache_sectors: u64,
    /// Λ: sectors of the guard band of either ring.
    pub guard_sectors: u64,
    /// Greatest number of sectors past the end of a write that the write destroys.
    pub interference_sectors: u64,
}

impl Shape {
    /// Returns the number of LBAs of a section.
    pub(super) fn section_sectors(&self) -> u64 {
        self.native_sblocks * self.sblock_sectors
    }

    /// Returns the number of LBAs of the drive.
    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.sections * self.section_sectors())
    }

    /// Returns the number of native S-blocks of the drive.
    pub(super) fn sblocks(&self) -> u64 {
        self.sections * self.native_sblocks
    }

    /// Returns the slot of an S-block on a fresh drive.
    pub(super) fn first_slot(&self, sblock: u64) -> u32 {
        (sblock % self.native_sblocks) as u32
    }

    /// Returns the most live sectors that a defrag may copy at once: the part of the guard that the head may enter.
    pub(super) fn copy_sectors(&self) -> u64 {
        self.guard_sectors - self.interference_sectors
    }

    /// Returns the payload of an S-block buffer in sectors.
    pub(super) fn sblock_payload(&self) -> u64 {
        (self.native_sblocks + self.spare_sblocks) * self.sblock_sectors
    }

    /// Returns the physical sectors of a section, guards included.
    pub(super) fn physical_sectors(&self) -> u64 {
        self.sblock_payload() + self.cache_sectors + 2 * (self.guard_sectors + self.interference_sectors)
    }
}
