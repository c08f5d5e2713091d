//! `caveat`: a disk that reports two distances to its host and leaves the rest to it (Singh 2014 §3.2). A write of
//! sectors i … j may damage max(i + 1 + DNOR, j + 1) … j + DID.
//!
//! The model does not decide which of these sectors are damaged in fact: all of them count as damaged, as the paper's
//! disk marks them.
//!
//! Invariants:
//! 1. 0 ≤ DNOR ≤ DID.
//! 2. With DNOR < DID the range is the union of the sectors that the single sectors of the write damage, less the write
//!    itself. With DNOR = DID no single sector damages any, yet the paper's range for a longer write is not empty; this
//!    model uses the paper's range.

use serde::Deserialize;

use super::distances::CaveatDistances;
use super::extents::clipped;
use super::kind::{self, BuildError, Keys, Kind, Recording, Refusal};
use crate::geometry::Geometry;
use crate::units::{Extent, Lba, Pba, Sectors};

/// Registry entry of the recording kind `caveat`.
pub const KIND: Kind = Kind {
    name: "caveat",
    summary: "a write of i … j destroys max(i + 1 + DNOR, j + 1) … j + DID (Singh 2014 §3.2)",
    build,
};

/// Recording of a caveat disk: a write of sectors i … j destroys max(i + 1 + DNOR, j + 1) … j + DID (Singh 2014 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caveat {
    /// DNOR, drive no overlap range: number of sectors directly after a written sector that its write never damages. At
    /// most DID.
    pub no_overlap_sectors: u64,
    /// DID, drive isolation distance: number of sectors directly after a written sector among which all damage by its
    /// write lies.
    pub isolation_sectors: u64,
}

fn build(keys: Keys<'_>) -> Result<Box<dyn Recording>, BuildError> {
    let caveat: Caveat = kind::read(keys)?;
    if caveat.no_overlap_sectors > caveat.isolation_sectors {
        let reason = format!(
            "DNOR of {} sectors is larger than DID of {}; give no_overlap_sectors ≤ isolation_sectors",
            caveat.no_overlap_sectors, caveat.isolation_sectors
        );
        return Err(Refusal::new("no_overlap_sectors", reason).into());
    }
    Ok(Box::new(caveat))
}

impl Caveat {
    fn distances(&self) -> CaveatDistances {
        CaveatDistances { no_overlap: Sectors(self.no_overlap_sectors), isolation: Sectors(self.isolation_sectors) }
    }
}

impl Recording for Caveat {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>) {
        if written.is_empty() {
            return;
        }
        let range = self.distances().destroyed_by(&(Lba(written.start.0)..Lba(written.end().0)));
        destroyed.extend(clipped(geometry, Pba(range.start.0), Pba(range.end.0)));
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Refusal> {
        let sectors = geometry.sectors().0;
        if self.isolation_sectors >= sectors {
            let reason = format!(
                "DID of {} sectors reaches past the whole disk of {sectors}; give fewer than the disk's sectors",
                self.isolation_sectors
            );
            return Err(Refusal::new("isolation_sectors", reason));
        }
        Ok(())
    }

    fn boxed(&self) -> Box<dyn Recording> {
        Box::new(*self)
    }

    fn is_harmless(&self) -> bool {
        self.isolation_sectors == 0
    }

    fn leaves_damage_to_host(&self) -> bool {
        true
    }

    fn caveat_distances(&self) -> Option<CaveatDistances> {
        Some(self.distances())
    }
}
