//! `block-interference`: the one-dimensional profile I_b of Cassuto 2010 §II.A, definition 2. A write affects I_b
//! addresses, its own included, so a write at PBA p destroys p + 1 … p + I_b − 1.
//!
//! The model knows no angles: sectors that follow on the same track count as destroyed too, an overstatement that the
//! paper accepts.
//!
//! Invariants:
//! 1. A write of a run destroys only sectors after the last one of the run.

use serde::Deserialize;

use super::extents::clipped;
use super::kind::{self, BuildError, Keys, Kind, Recording, Refusal};
use crate::geometry::Geometry;
use crate::units::{Extent, Pba, Sectors};

/// Registry entry of the recording kind `block-interference`.
pub const KIND: Kind = Kind {
    name: "block-interference",
    summary: "a write at p destroys p + 1 … p + I_b − 1 (Cassuto 2010 §II.A)",
    build,
};

/// Recording by the block interference profile I_b: a write that ends at sector p destroys p + 1 … p + I_b − 1 (Cassuto
/// 2010 §II.A).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockInterference {
    /// I_b: number of sectors that a write of one sector affects, the written one included. At least 1, which is a
    /// conventional disk.
    pub interference_sectors: u64,
}

fn build(keys: Keys<'_>) -> Result<Box<dyn Recording>, BuildError> {
    let profile: BlockInterference = kind::read(keys)?;
    if profile.interference_sectors == 0 {
        let reason = "I_b counts the written sector too, so it is at least 1; give 1 for no interference";
        return Err(Refusal::new("interference_sectors", reason).into());
    }
    Ok(Box::new(profile))
}

impl Recording for BlockInterference {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>) {
        if written.is_empty() {
            return;
        }
        let end = written.end() + Sectors(self.interference_sectors - 1);
        destroyed.extend(clipped(geometry, written.end(), end));
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Refusal> {
        let sectors = geometry.sectors().0;
        if self.interference_sectors > sectors {
            let reason = format!(
                "I_b of {} sectors reaches past the whole disk of {sectors}; give at most the disk's sectors",
                self.interference_sectors
            );
            return Err(Refusal::new("interference_sectors", reason));
        }
        Ok(())
    }

    fn boxed(&self) -> Box<dyn Recording> {
        Box::new(*self)
    }

    fn is_alike_in_stroke(&self, _geometry: &Geometry, _track: Pba) -> bool {
        true
    }

    fn is_harmless(&self) -> bool {
        self.interference_sectors == 1
    }
}
