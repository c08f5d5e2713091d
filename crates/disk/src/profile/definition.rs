//! Builds a checked drive from text: parses the sections of a profile, and finds the faults in their values.
//!
//! Invariants:
//! 1. The result of [`load`] can be built: geometry, mechanics and recording were built once as a check.
//! 2. An error names the line of the file, or the override that caused it.

use serde::de::{Deserialize, IgnoredAny};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::source::{Positions, Source};
use super::{Fill, Flash, Host, ProfileError};
use crate::geometry::{Geometry, GeometryConfig};
use crate::mechanics::{Mechanics, MechanicsConfig, Rotation};
use crate::recording::{self, BuildError, Recording};

/// A profile as stated by its text; `recording` is parsed separately, by its kind.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    name: String,
    summary: String,
    default_layer: String,
    #[serde(default = "no_gain")]
    density_gain: f64,
    #[serde(default)]
    density_source: String,
    #[serde(default = "small_sectors")]
    sector_bytes: u32,
    nameplate_bytes: Option<u64>,
    #[serde(default)]
    fill: Fill,
    geometry: GeometryConfig,
    mechanics: MechanicsConfig,
    #[serde(rename = "recording")]
    _recording: IgnoredAny,
    #[serde(default)]
    host: Host,
    flash: Option<Flash>,
    #[serde(default)]
    layer: toml::Table,
}

fn no_gain() -> f64 {
    1.0
}

fn small_sectors() -> u32 {
    512
}

/// A checked drive.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) default_layer: String,
    pub(super) density_gain: f64,
    pub(super) density_source: String,
    pub(super) sector_bytes: u32,
    pub(super) nameplate_bytes: Option<u64>,
    pub(super) fill: Fill,
    pub(super) geometry: GeometryConfig,
    pub(super) mechanics: MechanicsConfig,
    pub(super) recording: Box<dyn Recording>,
    pub(super) host: Host,
    pub(super) flash: Option<Flash>,
    pub(super) layer: toml::Table,
}

/// Parses and checks a profile.
pub(super) fn load(source: &Source) -> Result<Definition, ProfileError> {
    load_as_is(source).map_err(|error| blame(source, error))
}

fn load_as_is(source: &Source) -> Result<Definition, ProfileError> {
    let (root, positions) = source.tree()?;
    let recording = build_recording(source, &positions, root.get_ref())?;
    let sections = Sections::deserialize(Deserializer::from(root)).map_err(|error| source.syntax_error(&error))?;
    let definition = Definition {
        name: sections.name,
        summary: sections.summary,
        default_layer: sections.default_layer,
        density_gain: sections.density_gain,
        density_source: sections.density_source,
        sector_bytes: sections.sector_bytes,
        nameplate_bytes: sections.nameplate_bytes,
        fill: sections.fill,
        geometry: sections.geometry,
        mechanics: sections.mechanics,
        recording,
        host: sections.host,
        flash: sections.flash,
        layer: sections.layer,
    };
    definition.check().map_err(|(key, reason)| source.refuse(&positions, &placed(&positions, key, &reason), reason))?;
    Ok(definition)
}

/// Returns `error` with the override that caused it as its place, if the profile is valid without overrides. That is
/// the override after the longest series of first overrides with which the profile is valid.
fn blame(source: &Source, error: ProfileError) -> ProfileError {
    let count = source.overrides();
    if (0..count).any(|index| source.given(index) == error.place) {
        return error;
    }
    match (0..count).rev().find(|&count| load_as_is(&source.with_first(count)).is_ok()) {
        Some(right) => ProfileError { place: source.given(right).into(), reason: error.reason },
        None => error,
    }
}

fn build_recording(
    source: &Source,
    positions: &Positions,
    root: &DeTable<'_>,
) -> Result<Box<dyn Recording>, ProfileError> {
    let names = || recording::KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
    let Some(section) = root.get("recording") else {
        return Err(source.refuse(
            positions,
            "recording",
            format!("missing; add [recording] with kind = one of {}", names()),
        ));
    };
    let mut keys = section.get_ref().clone();
    let kind = match &mut keys {
        DeValue::Table(table) => table.remove("kind").map(Spanned::into_inner),
        _ => None,
    };
    let Some(DeValue::String(kind)) = kind else {
        return Err(source.refuse(positions, "recording.kind", format!("give kind = one of {}", names())));
    };
    recording::build(&kind, Spanned::new(section.span(), keys)).map_err(|error| match error {
        BuildError::Syntax(error) => source.syntax_error(&error),
        BuildError::Refused(refusal) => source.refuse(positions, &format!("recording.{}", refusal.key), refusal.reason),
    })
}

/// Returns the key that an error is about. If `reason` quotes a key inside the section `key` in backticks, that is the
/// quoted key.
fn placed(positions: &Positions, key: String, reason: &str) -> String {
    let quoted = reason.split('`').skip(1).step_by(2);
    quoted.filter_map(|word| positions.find(&key, word)).next().map(str::to_string).unwrap_or(key)
}

impl Definition {
    /// Returns the first key that is wrong, and the reason.
    fn check(&self) -> Result<(), (String, String)> {
        self.check_head()?;
        let geometry = Geometry::new(&self.geometry).map_err(|reason| ("geometry".into(), reason))?;
        Mechanics::new(&self.mechanics, &geometry).map_err(|reason| ("mechanics".into(), reason))?;
        self.recording.check(&geometry).map_err(|refusal| (format!("recording.{}", refusal.key), refusal.reason))?;
        self.host.check(self.sector_bytes).map_err(|(key, reason)| (format!("host.{key}"), reason))?;
        if self.host.controller.is_some() && self.mechanics.rotation != Rotation::Exact {
            let reason = "a controller in detail needs `rotation = \"exact\"`: data move while sectors pass";
            return Err(("host.controller".into(), reason.into()));
        }
        if let Some(flash) = &self.flash {
            flash.check().map_err(|(key, reason)| (format!("flash.{key}"), reason))?;
        }
        self.check_layers()
    }

    fn check_head(&self) -> Result<(), (String, String)> {
        if self.sector_bytes != 512 && self.sector_bytes != 4096 {
            let reason = format!("sectors of {} bytes are not made; give 512 or 4096", self.sector_bytes);
            return Err(("sector_bytes".into(), reason));
        }
        if !(1.0..=10.0).contains(&self.density_gain) {
            let reason = format!("{} is no gain over a conventional disk; give 1 to 10", self.density_gain);
            return Err(("density_gain".into(), reason));
        }
        if self.density_gain > 1.0 && self.density_source.is_empty() {
            let reason = "a gain needs its source; say in density_source where the figure comes from, or 'assumed'";
            return Err(("density_gain".into(), reason.into()));
        }
        Ok(())
    }

    fn check_layers(&self) -> Result<(), (String, String)> {
        for (layer, parameters) in &self.layer {
            let Some(table) = parameters.as_table() else {
                let reason = format!("write the parameters of a layer as a section, [layer.{layer}]");
                return Err((format!("layer.{layer}"), reason));
            };
            if let Some((key, _)) = table.iter().find(|(_, value)| super::parameter_text(value).is_none()) {
                let reason = "a layer takes words, numbers and true or false; write the value as text in quotes";
                return Err((format!("layer.{layer}.{key}"), reason.into()));
            }
        }
        Ok(())
    }
}
