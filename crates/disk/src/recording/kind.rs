//! The trait of recordings, and the entries by which the registry lists them and creates them from a section
//! `[recording]`.

use std::fmt;

use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::DeValue;

use super::distances::CaveatDistances;
use crate::geometry::Geometry;
use crate::units::{Extent, Pba};

/// A recording: the rule that gives the sectors that a write destroys beside those that it writes.
pub trait Recording: fmt::Debug + Send + Sync {
    /// Returns the name of the kind, as in profiles: `conventional`, `shingled`, `block-interference`, `caveat` or
    /// `interlaced`.
    fn name(&self) -> &'static str;

    /// Appends to `destroyed` the extents that lose their contents when the sectors `written` are written once, in PBA
    /// order. The extents are ordered, disjoint and non-empty. A sector of `written` is among them if the write
    /// destroys it after having written it.
    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>);

    /// Checks that this recording can be used on a disk of `geometry`.
    ///
    /// # Errors
    ///
    /// Returns the key of `[recording]` that does not fit, and the reason.
    fn check(&self, geometry: &Geometry) -> Result<(), Refusal>;

    /// Returns a boxed copy of this recording.
    fn boxed(&self) -> Box<dyn Recording>;

    /// Returns whether no write ever destroys another sector, as on a conventional disk.
    fn is_harmless(&self) -> bool {
        false
    }

    /// Returns whether all whole tracks in the stroke of `track` destroy sectors at the same distances in PBAs, leaving
    /// out sectors outside the stroke. Then the result for one track gives those of the others. A stroke is the tracks
    /// of one recording zone on one surface. The default is false, which claims nothing.
    fn is_alike_in_stroke(&self, _geometry: &Geometry, _track: Pba) -> bool {
        false
    }

    /// Returns whether the host is responsible for avoiding writes that destroy live data, as on a caveat disk. If not,
    /// destroyed live data is a bug of the translation layer.
    fn leaves_damage_to_host(&self) -> bool {
        false
    }

    /// Returns the number of tracks of a shingled band, without the guard tracks behind it; `None` if the profile gives
    /// no bands.
    fn band_tracks(&self) -> Option<u32> {
        None
    }

    /// Returns the distances of a caveat disk (Singh 2014 §3.2): DNOR, the number of sectors after a written one that
    /// it never damages, and DID, the number within which all damage lies. `None`, the default, for other recordings.
    fn caveat_distances(&self) -> Option<CaveatDistances> {
        None
    }

    /// Returns the share of tracks that hold data, the rest being guard tracks, if bands have `band_tracks` tracks of
    /// data. For shingled recording with a head of k tracks at its widest: b / (b + k − 1), with b = `band_tracks`
    /// (Aghayev 2015 §2). Otherwise 1.
    fn stored_share(&self, _band_tracks: u32) -> f64 {
        1.0
    }
}

impl Clone for Box<dyn Recording> {
    fn clone(&self) -> Box<dyn Recording> {
        self.boxed()
    }
}

/// A refusal of the section `[recording]` of a profile: the key at fault, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The key of the section `[recording]` that is at fault, without the name of the section.
    pub key: &'static str,
    /// Text that states the fault and how to correct it.
    pub reason: String,
}

impl Refusal {
    /// Creates a refusal of the key `key` of `[recording]`.
    pub fn new(key: &'static str, reason: impl Into<String>) -> Refusal {
        Refusal { key, reason: reason.into() }
    }
}

/// The reason why no recording can be built from a section `[recording]`.
#[derive(Debug)]
pub enum BuildError {
    /// An unknown or missing key, or a value of the wrong type, with its position in the text.
    Syntax(toml::de::Error),
    /// An unknown kind, or an impossible value.
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

/// The keys and values of a section `[recording]` without `kind`, with their positions in the text.
pub type Keys<'a> = Spanned<DeValue<'a>>;

/// A kind of recording, as listed in the registry.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Name of the kind: the value of the key `kind` in the section `[recording]` of a profile.
    pub name: &'static str,
    /// One line about the sectors that a write destroys.
    pub summary: &'static str,
    /// Creates the recording from the keys of `[recording]` without `kind`. Returns an error for an unknown or missing
    /// key, and for a value that is impossible or has the wrong type.
    pub build: fn(Keys<'_>) -> Result<Box<dyn Recording>, BuildError>,
}

/// Parses the keys of one kind.
pub(super) fn read<'de, T: serde::Deserialize<'de>>(keys: Keys<'de>) -> Result<T, toml::de::Error> {
    T::deserialize(keys.into_deserializer())
}
