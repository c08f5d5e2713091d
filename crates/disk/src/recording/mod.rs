//! Recording: what a write destroys. One file per kind, one line in [`build`].
//!
//! Invariants:
//! 1. A write never destroys a sector it has itself just written.
//! 2. What is destroyed lies on the disk: extents are clipped to the geometry.
//! 3. The cost is per track touched, never per sector.

use std::fmt;

use crate::geometry::Geometry;
use crate::units::Extent;

/// What a write to a disk destroys elsewhere.
pub trait Recording: fmt::Debug + Send + Sync {
    /// The name in profiles: `conventional`, `shingled`, `block-interference`, `caveat`, `interlaced`.
    fn name(&self) -> &'static str;

    /// Appends the extents that lose their contents when `written` is written, in one pass in PBA order.
    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>);

    /// Whether any sector can be rewritten without harm to another.
    fn is_harmless(&self) -> bool {
        false
    }

    /// Whether destroying live data is the host's business (a caveat disk), not a bug of a layer.
    fn leaves_damage_to_host(&self) -> bool {
        false
    }

    /// Share of a conventional surface's tracks that hold data, where bands are of `band_tracks` tracks:
    /// b / (b + k − 1) for shingled tracks (Aghayev 2015 §2), 1 otherwise.
    fn stored_share(&self, _band_tracks: u32) -> f64 {
        1.0
    }
}
