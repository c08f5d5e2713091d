//! Neighbouring tracks of a write: collects the sectors of another track that lie beside the part of a write on one
//! track.
//!
//! Invariants:
//! 1. Sectors that the same write covers later in PBA order are never collected: they are written after they were
//!    destroyed.

use super::angles::{Margin, Ring, facing};
use super::extents::push_outside;
use crate::geometry::{Geometry, TrackPiece};
use crate::units::Extent;

/// Appends the sectors of the track at `radial_track`, on the surface of `piece`, that lie beside `piece`. The piece is
/// part of the write `written`; sectors that this write covers after `piece` are left out.
pub(super) fn push_facing(
    geometry: &Geometry,
    piece: &TrackPiece,
    radial_track: u32,
    margin: Margin,
    written: Extent,
    destroyed: &mut Vec<Extent>,
) {
    let beside = geometry.track_place(radial_track, piece.place.surface);
    let track = beside.track();
    let later = Extent::between(piece.extent().end(), written.end());
    let is_rewritten = later.start <= track.start && track.end() <= later.end();
    if is_rewritten {
        return;
    }
    let own = geometry.track_place(piece.place.radial_track, piece.place.surface);
    let (own, other) = (Ring::of(&own), Ring::of(&beside));
    for lost in facing(own, piece.extent(), other, margin, geometry.rotation_ns()).into_iter().flatten() {
        push_outside(lost, later, destroyed);
    }
}
