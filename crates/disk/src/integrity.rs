//! The integrity map: for every physical sector, whether it was never written, holds version v of an LBA, or was
//! destroyed, and by which write. Runs of sectors that continue each other share one entry.
//!
//! Invariants:
//! 1. Runs are disjoint, ordered, maximal where contents continue.
//! 2. A sector's contents change only by a write to it or by a write that destroys it.

use crate::units::{Extent, Lba};

/// What a write left in a run of sectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Contents {
    /// Nothing since the drive was made: reads as zeros.
    Never,
    /// Sector i of the run holds version `version` of LBA `lba + i`; version 0 is what the drive held when made.
    Holds {
        /// LBA of the first sector.
        lba: Lba,
        /// Version: the number of the host write that gave it, counted from 1.
        version: u64,
    },
    /// Not data of the host: padding, map, journal.
    Other,
    /// Lost to the write numbered `by`.
    Destroyed {
        /// The number of the write that destroyed it, as given to [`IntegrityMap::destroy`].
        by: u64,
    },
}

/// What every sector holds.
#[derive(Clone, Debug, Default)]
pub struct IntegrityMap {}

impl IntegrityMap {
    /// A fresh medium.
    pub fn new() -> IntegrityMap {
        IntegrityMap {}
    }
    /// `extent` now holds `contents` (for `Holds`, `lba` is that of its first sector).
    pub fn write(&mut self, _extent: Extent, _contents: Contents) {
        todo!()
    }
    /// `extent` lost its contents to the write numbered `by`.
    pub fn destroy(&mut self, _extent: Extent, _by: u64) {
        todo!()
    }
    /// Calls `visit` with the runs that make up `extent`, in order, clipped to it.
    pub fn for_each(&self, _extent: Extent, _visit: impl FnMut(Extent, Contents)) {
        todo!()
    }
    /// Runs held: for memory accounting.
    pub fn runs(&self) -> usize {
        todo!()
    }
}
