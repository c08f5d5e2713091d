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
pub mod interlaced;
pub mod shingled;
mod tracks;

use std::fmt;

use serde::de::IntoDeserializer;
use toml::de::DeValue;
use toml::Spanned;

use crate::geometry::Geometry;
use crate::units::{Extent, Pba};

/// What a write to a disk destroys elsewhere.
pub trait Recording: fmt::Debug + Send + Sync {
    /// The name in profiles: `conventional`, `shingled`, `block-interference`, `caveat`, `interlaced`.
    fn name(&self) -> &'static str;

    /// Appends the extents that lose their contents when `written` is written, in one pass in PBA order.
    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>);

    /// Whether this recording can work on `geometry`, and if not, which of its keys is wrong and why.
    fn check(&self, geometry: &Geometry) -> Result<(), Refusal>;

    /// A copy of its own.
    fn boxed(&self) -> Box<dyn Recording>;

    /// Whether any sector can be rewritten without harm to another.
    fn is_harmless(&self) -> bool {
        false
    }

    /// Whether destroying live data is the host's business (a caveat disk), not a bug of a layer.
    fn leaves_damage_to_host(&self) -> bool {
        false
    }

    /// Tracks of a band, its guard left out, where the drive's format has bands.
    fn band_tracks(&self) -> Option<u32> {
        None
    }

    /// DNOR and DID of a caveat disk, in sectors (Singh 2014 §3.2).
    fn caveat_distances(&self) -> Option<(u64, u64)> {
        None
    }

    /// Share of a conventional surface's tracks that hold data, where bands are of `band_tracks` tracks:
    /// b / (b + k − 1) for shingled tracks (Aghayev 2015 §2), 1 otherwise.
    fn stored_share(&self, _band_tracks: u32) -> f64 {
        1.0
    }
}

impl Clone for Box<dyn Recording> {
    fn clone(&self) -> Box<dyn Recording> {
        self.boxed()
    }
}

/// A refused key of the section `[recording]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The key, without the section's name.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl Refusal {
    /// `key` is wrong for `reason`.
    pub fn new(key: &'static str, reason: impl Into<String>) -> Refusal {
        Refusal { key, reason: reason.into() }
    }
}

/// Why a section `[recording]` makes no recording.
#[derive(Debug)]
pub enum BuildError {
    /// A key that the kind does not know, or a value of the wrong type; carries its position.
    Syntax(toml::de::Error),
    /// A value that cannot be.
    Refused(Refusal),
}

impl From<toml::de::Error> for BuildError {
    fn from(error: toml::de::Error) -> BuildError {
        BuildError::Syntax(error)
    }
}

impl From<Refusal> for BuildError {
    fn from(refusal: Refusal) -> BuildError {
        BuildError::Refused(refusal)
    }
}

/// The keys of a section `[recording]`, `kind` taken out, with their positions.
pub type Keys<'a> = Spanned<DeValue<'a>>;

/// A kind of recording, as the registry lists it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// `kind` in `[recording]`.
    pub name: &'static str,
    /// What a write destroys, in one line.
    pub summary: &'static str,
    /// Makes the recording that the keys describe.
    pub build: fn(Keys<'_>) -> Result<Box<dyn Recording>, BuildError>,
}

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

/// The kind's own keys.
fn read<'de, T: serde::Deserialize<'de>>(keys: Keys<'de>) -> Result<T, toml::de::Error> {
    T::deserialize(keys.into_deserializer())
}

/// The sectors from `start` up to `end` that `geometry` has, if any.
fn clipped(geometry: &Geometry, start: Pba, end: Pba) -> Option<Extent> {
    let end = end.min(Pba(geometry.sectors().0));
    (start < end).then(|| Extent::between(start, end))
}

/// Appends what `lost` has outside `spared`.
fn push_outside(lost: Extent, spared: Extent, destroyed: &mut Vec<Extent>) {
    let before = lost.end().min(spared.start);
    if lost.start < before {
        destroyed.push(Extent::between(lost.start, before));
    }
    let after = lost.start.max(spared.end());
    if after < lost.end() {
        destroyed.push(Extent::between(after, lost.end()));
    }
}

/// Orders and joins the extents from index `first` on: invariant 4.
fn normalize(destroyed: &mut Vec<Extent>, first: usize) {
    destroyed[first..].sort_unstable_by_key(|extent| extent.start);
    let mut kept = first;
    for index in first..destroyed.len() {
        let extent = destroyed[index];
        if kept > first && extent.start <= destroyed[kept - 1].end() {
            let last = &mut destroyed[kept - 1];
            *last = Extent::between(last.start, last.end().max(extent.end()));
        } else {
            destroyed[kept] = extent;
            kept += 1;
        }
    }
    destroyed.truncate(kept);
}

#[cfg(test)]
mod twin;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Sectors;

    fn extent(start: u64, sectors: u64) -> Extent {
        Extent::new(Pba(start), Sectors(sectors))
    }

    #[test]
    fn normalizing_leaves_what_was_there_before_alone() {
        let mut extents = vec![extent(50, 9), extent(7, 3), extent(1, 4), extent(10, 2), extent(2, 1)];
        normalize(&mut extents, 1);
        assert_eq!(extents, [extent(50, 9), extent(1, 4), extent(7, 5)]);
    }

    #[test]
    fn what_is_spared_is_not_lost() {
        let mut destroyed = Vec::new();
        push_outside(extent(10, 10), extent(13, 2), &mut destroyed);
        push_outside(extent(10, 10), extent(5, 15), &mut destroyed);
        push_outside(extent(10, 10), extent(20, 5), &mut destroyed);
        assert_eq!(destroyed, [extent(10, 3), extent(15, 5), extent(10, 10)]);
        // What is spared at one end leaves nothing there, not even an empty extent.
        destroyed.clear();
        push_outside(extent(10, 10), extent(10, 4), &mut destroyed);
        push_outside(extent(10, 10), extent(16, 4), &mut destroyed);
        assert_eq!(destroyed, [extent(14, 6), extent(10, 6)]);
    }
}
