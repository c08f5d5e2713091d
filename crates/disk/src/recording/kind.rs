//! What a recording is: the trait, and how the registry lists and makes one from a section `[recording]`.

use std::fmt;

use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::DeValue;

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

    /// Whether whole tracks that are written in the stroke which holds `track` destroy what others there do, only so much further
    /// on, as long as that lies in the stroke too. What is laid out track by track is then known by one of them.
    fn is_alike_in_stroke(&self, _geometry: &Geometry, _track: Pba) -> bool {
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

/// The kind's own keys.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(keys: Keys<'de>) -> Result<T, toml::de::Error> {
    T::deserialize(keys.into_deserializer())
}
