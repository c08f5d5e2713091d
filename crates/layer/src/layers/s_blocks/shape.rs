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

/// The number of sections of a drive, and the sizes of one section, which are equal for all sections. A section has an
/// S-block buffer and a cache buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    /// Number of sections of the drive: equal parts of the LBA space, each with an S-block buffer and a cache buffer.
    pub sections: u64,
    /// Number of sectors of an S-block, a unit of consecutive LBAs that is moved as a whole.
    pub sblock_sectors: u64,
    /// Number of native S-blocks of a section: those into which its LBAs are divided.
    pub native_sblocks: u64,
    /// Number of slots for an S-block each in a section's S-block buffer, beyond one slot for each S-block of the
    /// section.
    pub spare_sblocks: u64,
    /// Payload of the cache buffer of a section in sectors: the maximum number of sectors in use. The guard band is not
    /// included.
    pub cache_sectors: u64,
    /// Number of sectors of the guard band (unused sectors between head and tail) in each of the two circular buffers
    /// of a section. It is Λ in Cassuto 2010.
    pub guard_sectors: u64,
    /// Maximum number of sectors after the last sector of a write that the write destroys.
    pub interference_sectors: u64,
}

impl Shape {
    /// Returns the number of logical sectors of a section.
    pub(super) fn section_sectors(&self) -> u64 {
        self.native_sblocks * self.sblock_sectors
    }

    /// Returns the number of logical sectors of the drive.
    pub(super) fn capacity(&self) -> Sectors {
        Sectors(self.sections * self.section_sectors())
    }

    /// Returns the number of native S-blocks of the drive.
    pub(super) fn sblocks(&self) -> u64 {
        self.sections * self.native_sblocks
    }

    /// Returns the number of the slot in which an S-block lies on a new drive, counted within its section from 0.
    pub(super) fn first_slot(&self, sblock: u64) -> u32 {
        (sblock % self.native_sblocks) as u32
    }

    /// Returns the maximum number of live sectors that may be copied from tail to head of a ring at once, so that the
    /// copy does not destroy its source: the length of the guard band less the sectors that a write destroys past its
    /// end.
    pub(super) fn copy_sectors(&self) -> u64 {
        self.guard_sectors - self.interference_sectors
    }

    /// Returns the payload of an S-block buffer in sectors: that of its native and spare slots, without the guard band.
    pub(super) fn sblock_payload(&self) -> u64 {
        (self.native_sblocks + self.spare_sblocks) * self.sblock_sectors
    }

    /// Returns the number of physical sectors that a section takes, guard bands included.
    pub(super) fn physical_sectors(&self) -> u64 {
        self.sblock_payload() + self.cache_sectors + 2 * (self.guard_sectors + self.interference_sectors)
    }
}
