//! Recording: what a write destroys. One file per kind, one line in [`KINDS`].
//!
//! Invariants:
//! 1. A write goes over its sectors in PBA order. What it destroys and then writes is whole; what it writes and then
//!    destroys is destroyed, as where one write runs from a top track on to the next group's first bottom track.
//! 2. What is destroyed lies on the disk: extents are clipped to the geometry.
//! 3. The cost is per track touched, never per sector.
//! 4. The extents of one write are ordered, disjoint and non-empty.

mod angles;
pub mod block_interference;
pub mod caveat;
pub mod conventional;
mod extents;
pub mod interlaced;
mod kind;
pub mod shingled;
mod tracks;

pub use kind::{BuildError, Keys, Kind, Recording, Refusal};
pub use shingled::HEAD_TRACKS_MAX;

/// Every kind there is.
pub const KINDS: &[Kind] =
    &[conventional::KIND, shingled::KIND, block_interference::KIND, caveat::KIND, interlaced::KIND];

/// Makes the recording of `kind` that `keys` describe.
pub fn build(kind: &str, keys: Keys<'_>) -> Result<Box<dyn Recording>, BuildError> {
    match KINDS.iter().find(|known| known.name == kind) {
        Some(known) => (known.build)(keys),
        None => {
            let names: Vec<_> = KINDS.iter().map(|known| known.name).collect();
            Err(Refusal::new("kind", format!("unknown kind '{kind}'; there are: {}", names.join(", "))).into())
        }
    }
}

#[cfg(test)]
mod twin;
