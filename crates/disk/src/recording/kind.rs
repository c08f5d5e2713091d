//! The trait of recordings, and the entries by which the registry lists them and creates them from a section
//! `[recording]`.

use std::fmt;

use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::DeValue;

use super::distances::CaveatDistances;
use crate::geometry::Geometry;
use crate::units::{Extent, Pba};

/// A recording: the rule that gives the sectors a write destroys elsewhere.
pub trait Recording: fmt::Debug + Send + Sync {
    /// Returns the name in profiles: `conventional`, `shingled`, `block-interference`, `caveat`, `interlaced`.
    fn name(&self) -> &'static str;

    /// Appends the extents that lose their contents when `written` is written, in one pass in PBA order.
    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>);

    /// Checks that this recording can work on `geometry`.
    ///
    /// # Errors
    ///
    /// Returns the wrong key and the reason if the recording cannot.
    fn check(&self, geometry: &Geometry) -> Result<(), Refusal>;

    /// Returns a boxed copy of this recording.
    fn boxed(&self) -> Box<dyn Recording>;

    /// Returns whether any sector can be rewritten without harm to another.
    fn is_harmless(&self) -> bool {
        false
    }

    /// Returns whether whole tracks written anywhere in the stroke that holds `track` destroy sectors at the same
    /// distances, as far as these lie in the stroke. If so, the result for one track gives those of the others.
    fn is_alike_in_stroke(&self, _geometry: &Geometry, _track: Pba) -> bool {
        false
    }

    /// Returns whether the host is responsible for the live data that a write destroys (a caveat disk). Otherwise
    /// destroyed live data is a bug of a layer.
    fn leaves_damage_to_host(&self) -> bool {
        false
    }

    /// Returns the number of tracks of a band without its guard, or `None` if the drive's format has no bands.
    fn band_tracks(&self) -> Option<u32> {
        None
    }

    /// Returns DNOR and DID of a caveat disk (Singh 2014 §3.2).
    fn caveat_distances(&self) -> Option<CaveatDistances> {
        None
    }

    /// Returns the share of a conventional surface's tracks that hold data, if bands have `band_tracks` tracks:
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
    /// Fault and remedy.
    pub reason: String,
}

impl Refusal {
    /// Creates a refusal of `key`.
    pub fn new(key: &'static str, reason: impl Into<String>) -> Refusal {
        Refusal { key, reason: reason.into() }
    }
}

/// Reason for which a section `[recording]` gives no recording.
#[derive(Debug)]
pub enum BuildError {
    /// A key that the kind does not know, or a value of the wrong type; carries its position.
    Syntax(toml::de::Error),
    /// An impossible value.
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

/// The keys of a section `[recording]` without `kind`, with their positions.
pub type Keys<'a> = Spanned<DeValue<'a>>;

/// A kind of recording, as listed in the registry.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Value of `kind` in `[recording]`.
    pub name: &'static str,
    /// One line about the sectors that a write destroys.
    pub summary: &'static str,
    /// Creates the recording from the keys.
    pub build: fn(Keys<'_>) -> Result<Box<dyn Recording>, BuildError>,
}

/// Parses the keys of one kind.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(keys: Keys<'de>) -> Result<T, toml::de::Error> {
    T::deserialize(keys.into_deserializer())
}
