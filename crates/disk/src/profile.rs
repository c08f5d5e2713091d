//! Drive profiles: named disks in TOML, each value with its source. The built-in profiles are in
//! `crates/disk/profiles/`, one line each in [`BUILT_IN`].
//!
//! Top-level keys: `name`, `summary`, `default_layer`, `density_gain` with `density_source`, `sector_bytes`,
//! `nameplate_bytes`, `fill`. On an interlaced disk, `density_gain` is the gain with tops as full as bottoms; the
//! result is reduced if tops hold less. Sections: `[geometry]`, `[mechanics]`, `[recording]` (`kind` and its own keys),
//! `[host]`, `[flash]`, and `[layer.NAME]` for the parameters of layers.
//!
//! `base = "PROFILE"` takes missing keys from another profile. Tables are merged key by key, but a table with a `kind`
//! or a `model` is taken as it is. Times are `…_ns`, sizes `…_bytes` or `…_sectors`.
//!
//! Invariants:
//! 1. A [`Profile`] is checked: its disk can be built.
//! 2. Unknown keys and impossible values are refused with file and line, or the override's key, a reason and a remedy.

mod controller;
mod definition;
mod host;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use controller::{Controller, ExtraDisconnect, ImmediateReport, ReadOn, WatermarkOf};
pub use host::{Flash, Host};

use crate::geometry::{Geometry, GeometryConfig};
use crate::mechanics::{Mechanics, MechanicsConfig};
use crate::recording::Recording;
use crate::recording::conventional::Conventional;
use crate::{Disk, Sectors, SharedDisk};
use definition::Definition;
use source::Source;

/// The built-in drive profiles, as pairs of name and TOML text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("cmr-7200", include_str!("../profiles/cmr-7200.toml")),
    ("cmr-5900", include_str!("../profiles/cmr-5900.toml")),
    ("exos-x18", include_str!("../profiles/exos-x18.toml")),
    ("cassuto-307g", include_str!("../profiles/cassuto-307g.toml")),
    ("emulated-smr-1", include_str!("../profiles/emulated-smr-1.toml")),
    ("emulated-smr-2", include_str!("../profiles/emulated-smr-2.toml")),
    ("emulated-smr-3", include_str!("../profiles/emulated-smr-3.toml")),
    ("seagate-st5000as0011", include_str!("../profiles/seagate-st5000as0011.toml")),
    ("seagate-st8000as0011", include_str!("../profiles/seagate-st8000as0011.toml")),
    ("seagate-st5000as0011-as-sold", include_str!("../profiles/seagate-st5000as0011-as-sold.toml")),
    ("seagate-st8000as0011-as-sold", include_str!("../profiles/seagate-st8000as0011-as-sold.toml")),
    ("seagate-st8000as0022", include_str!("../profiles/seagate-st8000as0022.toml")),
    ("seagate-st8000dm004", include_str!("../profiles/seagate-st8000dm004.toml")),
    ("seagate-st8000dm004-as-sold", include_str!("../profiles/seagate-st8000dm004-as-sold.toml")),
    ("imr-1t", include_str!("../profiles/imr-1t.toml")),
    ("imr-20t", include_str!("../profiles/imr-20t.toml")),
    ("hm-zoned", include_str!("../profiles/hm-zoned.toml")),
    ("strict-append", include_str!("../profiles/strict-append.toml")),
    ("strict-append-2t", include_str!("../profiles/strict-append-2t.toml")),
    ("caveat-1g", include_str!("../profiles/caveat-1g.toml")),
    ("caveat-1g-512", include_str!("../profiles/caveat-1g-512.toml")),
    ("caveat-2t", include_str!("../profiles/caveat-2t.toml")),
    ("maxline-250g", include_str!("../profiles/maxline-250g.toml")),
    ("flash-2010", include_str!("../profiles/flash-2010.toml")),
];

/// Contents of the drive at the start of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// No sector was ever written.
    #[default]
    Empty,
    /// Every LBA was written once.
    Full,
}

/// A drive profile whose values were checked: its disk can be built.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Name of the drive, which the profile's text states.
    pub name: String,
    /// One-line description of the drive.
    pub summary: String,
    /// Name of the translation layer that is used if the user names none.
    pub default_layer: String,
    /// Parameters of translation layers that the profile sets: one table for each layer, by the name of the layer.
    pub layer_parameters: toml::Table,
    /// Interface of the drive to its host: queue, scheduler, volatile caches, and the controller's times.
    pub host: Host,
    /// Areal density divided by that of a conventional disk of the same technology; 1 for a conventional disk. On an
    /// interlaced disk it is the figure of the profile's text times [`GeometryConfig::fullness`], because top tracks
    /// may hold fewer sectors than bottom tracks.
    pub density_gain: f64,
    /// Source of the density figure; empty for a conventional disk.
    pub density_source: String,
    /// Size of a sector in bytes: 512 or 4096.
    pub sector_bytes: u32,
    /// User capacity that the maker or the paper states, in bytes; `None` if the profile gives none.
    pub nameplate_bytes: Option<u64>,
    /// Contents of the drive at the start of a simulation, unless the user sets others.
    pub fill: Fill,
    geometry: GeometryConfig,
    mechanics: MechanicsConfig,
    recording: Box<dyn Recording>,
    flash: Option<Flash>,
    source: Source,
    /// Changes made after the text was parsed, which [`Profile::with`] repeats.
    changes: Vec<Change>,
}

/// A change to a whole profile.
#[derive(Clone, Copy, Debug)]
enum Change {
    Grown(Sectors),
    Conventional,
}

/// Reason for which a profile was refused: the place, the fault and the remedy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ProfileError {
    /// File and line (`FILE:LINE`, from 1), the file alone, or the key of the override that is at fault.
    pub place: String,
    /// Text that states the fault and how to correct it.
    pub reason: String,
}

impl Profile {
    /// Returns the built-in profile called `name`, or `None` if there is none of exactly this name.
    pub fn named(name: &str) -> Option<Profile> {
        let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(Profile::parse(&format!("{name}.toml"), text, &[]).expect("a test parses every built-in profile"))
    }

    /// Returns the names of all built-in profiles, in the order of [`BUILT_IN`].
    pub fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// Parses the TOML `text`, then sets each pair (dotted key, value) of `overrides` in turn, then checks the result.
    /// `file` is the name that errors show; it is not opened.
    ///
    /// # Errors
    ///
    /// Returns the first fault that is found: a syntax error, an unknown or missing key, or an impossible value.
    pub fn parse(file: &str, text: &str, overrides: &[(String, String)]) -> Result<Profile, ProfileError> {
        Profile::load(Source::new(file, text).with(overrides))
    }

    /// Returns this profile with the pairs (dotted key, value) of `overrides` set, after those set before. Changes by
    /// [`Profile::grown`] and [`Profile::conventional`] are repeated afterwards.
    ///
    /// # Errors
    ///
    /// Returns the first fault that is found: an unknown key, or an impossible value.
    pub fn with(&self, overrides: &[(String, String)]) -> Result<Profile, ProfileError> {
        let fresh = Profile::load(self.source.with(overrides))?;
        Ok(self.changes.iter().fold(fresh, |profile, change| match change {
            Change::Grown(sectors) => profile.grown(*sectors),
            Change::Conventional => profile.conventional(),
        }))
    }

    fn load(source: Source) -> Result<Profile, ProfileError> {
        let definition: Definition = definition::load(&source)?;
        let fullness = definition.geometry.fullness().expect("checked when the profile was read");
        Ok(Profile {
            name: definition.name,
            summary: definition.summary,
            default_layer: definition.default_layer,
            layer_parameters: definition.layer,
            host: definition.host,
            density_gain: definition.density_gain * fullness,
            density_source: definition.density_source,
            sector_bytes: definition.sector_bytes,
            nameplate_bytes: definition.nameplate_bytes,
            fill: definition.fill,
            geometry: definition.geometry,
            mechanics: definition.mechanics,
            recording: definition.recording,
            flash: definition.flash,
            source,
            changes: Vec::new(),
        })
    }

    /// Returns an error about the dotted `key`, with the place of the key in the profile's file, or of the nearest section
    /// around it. For checks by callers that know more than this crate, such as the names of layers.
    pub fn refuse(&self, key: &str, reason: &str) -> ProfileError {
        match self.source.tree() {
            Ok((_, positions)) => self.source.refuse(&positions, key, reason),
            Err(error) => error,
        }
    }

    /// Returns the name of the profile's file, as given to [`Profile::parse`]; `NAME.toml` for a built-in profile.
    pub fn source_file(&self) -> &str {
        self.source.file()
    }

    /// Returns the TOML text that the profile was parsed from, without overrides and without the text of its base.
    pub fn source_text(&self) -> &str {
        self.source.text()
    }

    /// Returns the profile's text as a TOML table, with missing keys taken from the profile that its key `base` names.
    /// Overrides and later changes are not applied.
    pub fn table(&self) -> toml::Table {
        source::merged(self.source.text())
    }

    /// Returns the parameters that the profile sets for the layer called `layer`, as pairs of key and text; empty if it
    /// sets none. Booleans are "on" and "off". The caller adds the user's own parameters after these, so that they win.
    pub fn parameters_for(&self, layer: &str) -> Vec<(String, String)> {
        let table = self.layer_parameters.get(layer).and_then(toml::Value::as_table);
        let text = |value| parameter_text(value).expect("checked when the profile was read");
        table.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
    }

    /// Builds the disk that the profile describes.
    pub fn disk(&self) -> SharedDisk {
        let geometry = self.built_geometry();
        let mechanics = Mechanics::new(&self.mechanics, &geometry).expect("checked when the profile was read");
        let (recording, flash, sector_bytes) = (self.recording.clone(), self.flash, self.sector_bytes);
        Arc::new(Disk { geometry, mechanics, recording, flash, sector_bytes })
    }

    fn built_geometry(&self) -> Geometry {
        Geometry::new(&self.geometry).expect("checked when the profile was read")
    }

    /// Returns this drive enlarged to at least `sectors` physical sectors: every recording zone gets more tracks in
    /// proportion. Returns an unchanged copy if the drive is large enough already, or if a drive of that size cannot be
    /// built.
    pub fn grown(&self, sectors: Sectors) -> Profile {
        let before = self.built_geometry().sectors();
        let mut wanted = sectors;
        // Slipped tracks do not grow with the zones, so the first attempt may be too small by the sectors that they
        // lack.
        while wanted > before {
            let Ok(geometry) = self.geometry.grown(wanted.0, before.0) else { break };
            let Ok(built) = Geometry::new(&geometry) else { break };
            if Mechanics::new(&self.mechanics, &built).is_err() || self.recording.check(&built).is_err() {
                break;
            }
            if built.sectors() >= sectors {
                let mut grown = Profile { geometry, ..self.clone() };
                grown.changes.push(Change::Grown(sectors));
                return grown;
            }
            wanted += sectors - built.sectors();
        }
        self.clone()
    }

    /// Returns whether the conventional drives of both profiles (see [`Profile::conventional`]) are equal in all but their
    /// names: whether geometry, mechanics, host side, sector size and contents at the start are equal.
    pub fn has_same_conventional(&self, other: &Profile) -> bool {
        self.geometry == other.geometry
            && self.mechanics == other.mechanics
            && self.host == other.host
            && self.sector_bytes == other.sector_bytes
            && self.fill == other.fill
    }

    /// Returns the conventional drive with the same geometry and mechanics: layout, zones and skews stay, recording and
    /// layer become `conventional`. It has a density gain of 1, no flash, no parameters of layers and no nameplate
    /// capacity. The name gets the suffix `-conventional`.
    pub fn conventional(&self) -> Profile {
        let mut changes = self.changes.clone();
        changes.push(Change::Conventional);
        Profile {
            name: format!("{}-conventional", self.name),
            summary: format!("conventional drive of like geometry: {}", self.summary),
            default_layer: "conventional".into(),
            layer_parameters: toml::Table::new(),
            density_gain: 1.0,
            density_source: String::new(),
            nameplate_bytes: None,
            recording: Box::new(Conventional::default()),
            flash: None,
            changes,
            ..self.clone()
        }
    }
}

/// Returns a parameter as a user would write it, or `None` for dates, lists and tables.
fn parameter_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(is_on) => Some(if *is_on { "on" } else { "off" }.into()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}
