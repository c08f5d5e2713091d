//! `interlaced`: bottom tracks are written wide, and top tracks narrower over the edges of two neighbouring bottoms
//! (Hajkazemi 2019 §1). A write on a bottom track destroys the sectors of both neighbouring top tracks at the same
//! angle; a write on a top track destroys nothing. Tops may hold fewer sectors than bottoms.
//!
//! The model does not widen the angles: the paper names the adjacent top track's sectors at the same place.
//!
//! Invariants:
//! 1. Only top tracks are ever destroyed.
//! 2. A bottom track at the edge of a surface has one neighbour, and a write destroys only that one.

use serde::Deserialize;

use super::angles::Margin;
use super::extents::normalize;
use super::kind::{self, BuildError, Keys, Kind, Recording, Refusal};
use super::tracks::push_facing;
use crate::geometry::Geometry;
use crate::units::Extent;

/// Registry entry of the recording kind `interlaced`.
pub const KIND: Kind = Kind {
    name: "interlaced",
    summary: "a write on a bottom track destroys both neighbouring tops at the same angle (Hajkazemi 2019 §1)",
    build,
};

/// Interlaced recording: a write on a bottom track destroys the sectors of both neighbouring top tracks at the same
/// angle; a write on a top track destroys nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interlaced {}

fn build(keys: Keys<'_>) -> Result<Box<dyn Recording>, BuildError> {
    Ok(Box::new(kind::read::<Interlaced>(keys)?))
}

impl Recording for Interlaced {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>) {
        let first = destroyed.len();
        for piece in geometry.tracks(written).filter(|piece| geometry.is_bottom(piece.place.radial_track)) {
            let radial_track = piece.place.radial_track;
            let outer = radial_track.checked_sub(1);
            let inner = Some(radial_track + 1).filter(|&inner| inner < geometry.radial_tracks());
            for top in [outer, inner].into_iter().flatten() {
                push_facing(geometry, &piece, top, Margin::default(), written, destroyed);
            }
        }
        normalize(destroyed, first);
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Refusal> {
        if !geometry.is_interlaced() {
            let reason =
                "interlaced recording needs top and bottom tracks; give [geometry] layout = \"bottom-then-top\"";
            return Err(Refusal::new("kind", reason));
        }
        Ok(())
    }

    fn boxed(&self) -> Box<dyn Recording> {
        Box::new(*self)
    }
}
