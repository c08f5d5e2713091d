//! How the disk is cut into sections, and each section into its two rings (Cassuto 2010 §V.A, its five parameters).
//!
//! ```text
//!   section │ S-blocks: native + spare │ Λ │ disk guard │ cache buffer │ Λ │ disk guard │
//! ```
//!
//! The payload is what the paper's shares count: native S-blocks, spare S-blocks and cache. The guards lie outside it.
//! What does not fill an S-block in a section, or a section in the payload, is left unused.
//!
//! Invariants:
//! 1. A section has at least two spare S-blocks, one native one, and room for one sector in its cache.
//! 2. Λ ≥ interference + one S-block: a whole S-block is copied in one go without harm to its source.

use imbrex_disk::Sectors;

/// The sizes that all sections share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Sections.
    pub sections: u64,
    /// Sectors of an S-block.
    pub sblock_sectors: u64,
    /// S-blocks that hold a section's LBAs.
    pub native_sblocks: u64,
    /// S-blocks beside these, free or dead.
    pub spare_sblocks: u64,
    /// Payload of a cache buffer.
    pub cache_sectors: u64,
    /// Λ of both rings.
    pub guard_sectors: u64,
    /// How far past its end a write destroys.
    pub interference_sectors: u64,
}

impl Shape {
    /// LBAs of a section.
    pub fn section_sectors(&self) -> u64 {
        self.native_sblocks * self.sblock_sectors
    }

    /// LBAs of the drive.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.sections * self.section_sectors())
    }

    /// S-blocks of the drive, spare ones apart.
    pub fn sblocks(&self) -> u64 {
        self.sections * self.native_sblocks
    }

    /// The slot in which a fresh drive has an S-block.
    pub fn first_slot(&self, sblock: u64) -> u32 {
        (sblock % self.native_sblocks) as u32
    }

    /// Live sectors that one go of a defrag may copy: what the head may enter of the guard.
    pub fn copy_sectors(&self) -> u64 {
        self.guard_sectors - self.interference_sectors
    }

    /// Payload of an S-block buffer.
    pub fn sblock_payload(&self) -> u64 {
        (self.native_sblocks + self.spare_sblocks) * self.sblock_sectors
    }

    /// Physical sectors of a section, guards included.
    pub fn physical_sectors(&self) -> u64 {
        self.sblock_payload() + self.cache_sectors + 2 * (self.guard_sectors + self.interference_sectors)
    }
}
