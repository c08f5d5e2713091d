//! Recording: the sectors that a write destroys. There is one file per kind of recording, and one entry in [`KINDS`].
//!
//! Invariants:
//! 1. A write goes over its sectors in PBA order. A sector that the write first destroys and later writes is whole. A
//!    sector that the write first writes and later destroys is destroyed: for example where one write runs from a top
//!    track on to the next group's first bottom track.
//! 2. Destroyed sectors lie on the disk: extents are clipped to the geometry.
//! 3. The cost is per track touched, never per sector.
//! 4. The extents that one write destroys are ordered, disjoint and non-empty.

mod angles;
pub mod block_interference;
pub mod caveat;
pub mod conventional;
pub mod distances;
mod extents;
pub mod interlaced;
mod kind;
pub mod shingled;
mod tracks;

pub use kind::{BuildError, Keys, Kind, Recording, Refusal};
pub use shingled::HEAD_TRACKS_MAX;

/// All kinds of recording that a profile can name.
pub const KINDS: &[Kind] =
    &[conventional::KIND, shingled::KIND, block_interference::KIND, caveat::KIND, interlaced::KIND];

/// Creates the recording called `kind` from the keys of the section `[recording]`, without the key `kind`.
///
/// # Errors
///
/// [`BuildError::Syntax`] if a key is unknown or missing, or a value has the wrong type. [`BuildError::Refused`] if the
/// kind is unknown or a value is impossible.
pub fn build(kind: &str, keys: Keys<'_>) -> Result<Box<dyn Recording>, BuildError> {
    match KINDS.iter().find(|known| known.name == kind) {
        Some(known) => (known.build)(keys),
        None => {
            let names: Vec<_> = KINDS.iter().map(|known| known.name).collect();
            Err(Refusal::new("kind", format!("unknown kind '{kind}'; known kinds: {}", names.join(", "))).into())
        }
    }
}

#[cfg(test)]
mod twin;
