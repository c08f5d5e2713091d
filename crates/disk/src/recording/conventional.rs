//! `conventional`: tracks as wide as the head. A write destroys nothing.
//!
//! Invariants:
//! 1. No sector is ever destroyed.

use serde::Deserialize;

use super::kind::{self, BuildError, Keys, Kind, Recording, Refusal};
use crate::geometry::Geometry;
use crate::units::{Extent, Pba};

/// Registry entry of the recording kind `conventional`.
pub const KIND: Kind = Kind { name: "conventional", summary: "a write destroys nothing", build };

/// Recording without overlapping tracks: no write destroys another sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conventional {}

fn build(keys: Keys<'_>) -> Result<Box<dyn Recording>, BuildError> {
    Ok(Box::new(kind::read::<Conventional>(keys)?))
}

impl Recording for Conventional {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn destroys(&self, _geometry: &Geometry, _written: Extent, _destroyed: &mut Vec<Extent>) {}

    fn check(&self, _geometry: &Geometry) -> Result<(), Refusal> {
        Ok(())
    }

    fn boxed(&self) -> Box<dyn Recording> {
        Box::new(*self)
    }

    fn is_alike_in_stroke(&self, _geometry: &Geometry, _track: Pba) -> bool {
        true
    }

    fn is_harmless(&self) -> bool {
        true
    }
}
