//! Lists of the registered profiles, layers, trace formats and generators, for printing or as JSON.

use imbrex_disk::Profile;
use imbrex_layer::parameters::ParameterKind;
use imbrex_layer::{LayerInfo, registry};
use imbrex_trace::{formats as trace_formats, generators as trace_generators};
use serde_json::{Value, json};

use crate::error::Failure;
use crate::human;
use imbrex_units::names::suggestion;

/// A list of names with their descriptions, as a table of text.
pub struct Listing {
    /// Name of the list, such as `layers`.
    pub name: &'static str,
    /// Headings of the columns.
    pub columns: &'static [&'static str],
    /// Rows of cells, each with one cell per column.
    pub rows: Vec<Vec<String>>,
    /// Further lines, such as a layer's parameters. `imbrex list` prints them only if the user asks for this list
    /// alone.
    pub details: Vec<String>,
}

impl Listing {
    /// Returns the rows as a JSON array with one object per row. Keys are the column headings, with underscores for
    /// spaces; values are the cells as strings. Leaves out `details`.
    pub fn as_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let fields = self.columns.iter().zip(row);
            Value::Object(fields.map(|(column, cell)| (column.replace(' ', "_"), json!(cell))).collect())
        });
        Value::Array(rows.collect())
    }
}

/// Returns the description of the translation layer with exactly this name.
///
/// # Errors
///
/// If no layer has this name; the failure suggests others.
pub fn layer(name: &str) -> Result<&'static LayerInfo, Failure> {
    let names = || registry::all().iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
    let meant = || suggestion(name, registry::all().iter().map(|info| info.name));
    registry::named(name).ok_or_else(|| {
        Failure::usage(format!("no layer is called '{name}'{}", meant())).or_try(format!("one of {}", names()))
    })
}

/// Returns a JSON object that describes a layer and all its parameters: their types, accepted values, defaults and help
/// texts.
pub fn layer_json(info: &LayerInfo) -> Value {
    let parameters: Vec<Value> = info
        .parameters
        .iter()
        .map(|parameter| {
            let mut entry = json!({
                "key": parameter.key,
                "type": parameter.kind.name(),
                "takes": parameter.kind.takes(),
                "default": parameter.default,
                "help": parameter.help,
            });
            if let ParameterKind::Choice(words) = parameter.kind {
                entry["choices"] = json!(words);
            }
            entry
        })
        .collect();
    json!({
        "layer": info.name,
        "recordings": info.recordings,
        "maps": info.mapping_unit,
        "source": info.source,
        "what_it_does": info.summary,
        "parameters": parameters,
    })
}

/// Returns the list of built-in drive profiles as JSON: [`profiles`], with the size of the whole disk in bytes as `raw_bytes`.
pub fn profiles_json() -> Value {
    let mut rows = profiles().as_json();
    for (row, name) in rows.as_array_mut().into_iter().flatten().zip(Profile::names()) {
        row["raw_bytes"] = json!(raw_bytes_of(&profile(name)));
    }
    rows
}

fn profile(name: &str) -> Profile {
    Profile::named(name).expect("every listed profile parses: a test of the disk crate")
}

fn raw_bytes_of(profile: &Profile) -> u64 {
    let disk = profile.disk();
    disk.geometry.sectors().0 * u64::from(disk.sector_bytes)
}

/// Returns the list of built-in drive profiles. The raw size is that of the whole disk, before the layer reserves any
/// part.
pub fn profiles() -> Listing {
    let rows = Profile::names().into_iter().map(|name| {
        let profile = profile(name);
        vec![
            name.to_string(),
            human::bytes(raw_bytes_of(&profile)),
            profile.disk().recording.name().to_string(),
            profile.default_layer.clone(),
            profile.summary.clone(),
        ]
    });
    Listing {
        name: "profiles",
        columns: &["profile", "raw size", "recording", "default layer", "what it is"],
        rows: rows.collect(),
        details: Vec::new(),
    }
}

/// Returns the list of translation layers, with one detail line for each parameter of each layer.
pub fn layers() -> Listing {
    let rows = registry::all().into_iter().map(|info| {
        vec![
            info.name.to_string(),
            info.recordings.join(", "),
            info.mapping_unit.to_string(),
            info.source.to_string(),
            info.summary.to_string(),
        ]
    });
    let parameters = registry::all().into_iter().flat_map(|info| {
        info.parameters
            .iter()
            .map(|parameter| format!("{}:{}={}  {}", info.name, parameter.key, parameter.default, parameter.help))
    });
    Listing {
        name: "layers",
        columns: &["layer", "recordings", "maps", "source", "what it does"],
        rows: rows.collect(),
        details: parameters.collect(),
    }
}

/// Returns the list of trace formats that can be read, with their names and descriptions.
pub fn formats() -> Listing {
    let rows = trace_formats::all().iter().map(|format| vec![format.name.to_string(), format.summary.to_string()]);
    Listing { name: "formats", columns: &["format", "what it is"], rows: rows.collect(), details: Vec::new() }
}

/// Returns the list of built-in workloads, with their names and descriptions.
pub fn generators() -> Listing {
    let rows = trace_generators::built_in().iter().map(|entry| vec![entry.name.to_string(), entry.summary.to_string()]);
    Listing { name: "generators", columns: &["workload", "what it does"], rows: rows.collect(), details: Vec::new() }
}
