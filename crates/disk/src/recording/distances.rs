//! DNOR and DID, the two distances that a caveat disk reports to its host (Singh 2014 §3.2).

use std::ops::Range;

use crate::units::{Lba, Sectors};

/// The distances within which a write on a caveat disk destroys sectors. Logical and physical sectors have the same
/// numbers on such a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaveatDistances {
    /// DNOR, the drive no overlap range: number of sectors directly after a written one that its write never damages.
    pub no_overlap: Sectors,
    /// DID, the drive isolation distance: number of sectors directly after a written one among which all damage by its
    /// write lies.
    pub isolation: Sectors,
}

impl CaveatDistances {
    /// Returns the sectors that a write of `written` destroys: from the later of `written.start` + 1 + DNOR
    /// (`no_overlap`) and `written.end` up to, not including, `written.end` + DID (`isolation`). The range may reach
    /// past the end of the disk, and may be empty. `written` must not be empty.
    pub fn destroyed_by(&self, written: &Range<Lba>) -> Range<Lba> {
        let start = (written.start + Sectors(1) + self.no_overlap).max(written.end);
        start..(written.end + self.isolation).max(start)
    }

    /// Returns the last sectors of writes that end before `first`, but destroy `first` or a later sector: the DID
    /// (drive isolation distance) sectors directly before `first`, or fewer at the start of the disk.
    pub fn before(&self, first: Lba) -> Range<Lba> {
        Lba(first.0.saturating_sub(self.isolation.0))..first
    }
}
