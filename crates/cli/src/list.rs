//! `imbrex list`: what there is, from the registries.

use comfy_table::{presets, ContentArrangement, Table};
use imbrex_disk::Profile;
use imbrex_layer::parameters::ParameterKind;
use imbrex_layer::{registry, LayerInfo};
use imbrex_trace::{formats, generators};
use serde_json::{json, Value};

use crate::args::{ListArgs, ListChoice};
use crate::error::ExitCode;
use crate::listing::Listing;
use crate::output;
use imbrex::human;
use imbrex::Failure;

/// Runs the command.
pub fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let all = [
        ListChoice::Profiles,
        ListChoice::Layers,
        ListChoice::Formats,
        ListChoice::Generators,
        ListChoice::Experiments,
    ];
    let chosen = args.what.as_ref().map_or(&all[..], std::slice::from_ref);
    if let (Some(choice), Some(name)) = (args.what, &args.name) {
        return one(choice, name, args.json);
    }
    let listings: Vec<_> = chosen.iter().map(|choice| listing(*choice)).collect();
    if args.json {
        let document: serde_json::Map<String, Value> =
            listings.iter().map(|listing| (listing.name.to_string(), as_json(listing))).collect();
        let mut document = Value::Object(document);
        if chosen.contains(&ListChoice::Layers) {
            document["layers"] = registry::all().into_iter().map(layer_json).collect();
        }
        document["schema"] = json!("imbrex.list/1");
        output::line(&serde_json::to_string_pretty(&document).map_err(Failure::failed)?)?;
        return Ok(ExitCode::Done);
    }
    for (index, listing) in listings.iter().enumerate() {
        if index > 0 {
            output::line("")?;
        }
        print(listing, args.what.is_some())?;
    }
    Ok(ExitCode::Done)
}

/// One layer with its parameters, or one profile as its text.
fn one(choice: ListChoice, name: &str, as_json: bool) -> Result<ExitCode, Failure> {
    match choice {
        ListChoice::Layers => {
            let names = || registry::all().iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
            let info = registry::named(name).ok_or_else(|| {
                Failure::usage(format!("no layer is called '{name}'")).or_try(format!("one of {}", names()))
            })?;
            if as_json {
                output::line(&serde_json::to_string_pretty(&layer_json(info)).map_err(Failure::failed)?)?;
            } else {
                print_layer(info)?;
            }
        }
        ListChoice::Profiles => {
            let profile = imbrex::drives::find_profile(name)?;
            if as_json {
                let table = serde_json::to_string_pretty(&profile.table()).map_err(Failure::failed)?;
                output::line(&table)?;
            } else {
                output::part(profile.source_text())?;
            }
        }
        _ => {
            return Err(Failure::usage(format!("'{name}': only layers and drives are listed one by one"))
                .or_try("imbrex list layers NAME, or imbrex list drives NAME"));
        }
    }
    Ok(ExitCode::Done)
}

fn layer_json(info: &LayerInfo) -> Value {
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

fn print_layer(info: &LayerInfo) -> Result<(), Failure> {
    output::line(&format!("{}: {}", info.name, info.summary))?;
    output::line(&format!("recordings: {}; source: {}", info.recordings.join(", "), info.source))?;
    for parameter in info.parameters {
        output::line(&format!("\n  {}={}", parameter.key, parameter.default))?;
        output::line(&format!("      {}", parameter.help))?;
        output::line(&format!("      takes {}", parameter.kind.takes()))?;
    }
    Ok(())
}

fn listing(choice: ListChoice) -> Listing {
    match choice {
        ListChoice::Profiles => profiles(),
        ListChoice::Layers => layers(),
        ListChoice::Formats => trace_formats(),
        ListChoice::Generators => workloads(),
        ListChoice::Experiments => crate::reproduce::listing(),
    }
}

fn profiles() -> Listing {
    let rows = Profile::names().into_iter().map(|name| {
        let profile = Profile::named(name).expect("every listed profile parses: a test of the disk crate");
        let disk = profile.disk();
        let raw_bytes = disk.geometry.sectors().0 * disk.sector_bytes as u64;
        vec![
            name.to_string(),
            human::bytes(raw_bytes),
            disk.recording.name().to_string(),
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

fn layers() -> Listing {
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

fn trace_formats() -> Listing {
    let rows = formats::all().iter().map(|format| vec![format.name.to_string(), format.summary.to_string()]);
    Listing { name: "formats", columns: &["format", "what it is"], rows: rows.collect(), details: Vec::new() }
}

fn workloads() -> Listing {
    let rows = generators::built_in().iter().map(|entry| vec![entry.name.to_string(), entry.summary.to_string()]);
    Listing { name: "generators", columns: &["workload", "what it does"], rows: rows.collect(), details: Vec::new() }
}

fn as_json(listing: &Listing) -> Value {
    let rows = listing.rows.iter().map(|row| {
        let fields = listing.columns.iter().zip(row);
        Value::Object(fields.map(|(column, cell)| (column.replace(' ', "_"), json!(cell))).collect())
    });
    Value::Array(rows.collect())
}

fn print(listing: &Listing, with_details: bool) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(listing.columns);
    table.add_rows(&listing.rows);
    for line in table.lines() {
        output::line(line.trim_end())?;
    }
    if with_details && !listing.details.is_empty() {
        output::line("\nparameters, with their defaults:")?;
        for line in &listing.details {
            output::line(&format!("  {line}"))?;
        }
    }
    Ok(())
}
