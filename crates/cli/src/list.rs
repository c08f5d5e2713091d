//! `imbrex list`: prints the entries of the registries.

use imbrex_layer::{LayerInfo, registry};
use serde_json::{Value, json};

use crate::args::{ListArgs, ListChoice};
use crate::error::ExitCode;
use crate::output;
use imbrex::Failure;
use imbrex::listing::{self, Listing};
use imbrex::table_form::Cells;

/// Executes the command.
pub(crate) fn run(args: &ListArgs) -> Result<ExitCode, Failure> {
    let all = [
        ListChoice::Profiles,
        ListChoice::Layers,
        ListChoice::Formats,
        ListChoice::Generators,
        ListChoice::Experiments,
    ];
    let chosen = args.what.as_ref().map_or(&all[..], std::slice::from_ref);
    if let (Some(choice), Some(name)) = (args.what, &args.name) {
        if args.table.table.is_some() {
            return Err(Failure::usage("--table is for lists, not for one entry").or_try("--json"));
        }
        return one(choice, name, args.json);
    }
    let listings: Vec<_> = chosen.iter().map(|choice| listing(*choice)).collect();
    if args.json {
        let document: serde_json::Map<String, Value> =
            listings.iter().map(|listing| (listing.name.to_string(), listing.as_json())).collect();
        let mut document = Value::Object(document);
        if chosen.contains(&ListChoice::Layers) {
            document["layers"] = registry::all().into_iter().map(listing::layer_json).collect();
        }
        if chosen.contains(&ListChoice::Profiles) {
            document["profiles"] = listing::profiles_json();
        }
        document["schema"] = json!("imbrex.list/1");
        output::json(&document)?;
        return Ok(ExitCode::Done);
    }
    if let Some(form) = args.table.table {
        let [listing] = &listings[..] else {
            return Err(
                Failure::usage("--table prints one list").or_try(format!("imbrex list layers --table {}", form.name()))
            );
        };
        output::part(&Cells::of_texts(listing.columns, listing.rows.iter().cloned()).in_form(form));
        return Ok(ExitCode::Done);
    }
    for (index, listing) in listings.iter().enumerate() {
        if index > 0 {
            output::line("");
        }
        print(listing, args.what.is_some())?;
    }
    Ok(ExitCode::Done)
}

/// Prints one layer with its parameters, or the text of one profile.
fn one(choice: ListChoice, name: &str, as_json: bool) -> Result<ExitCode, Failure> {
    match choice {
        ListChoice::Layers => {
            let info = listing::layer(name)?;
            if as_json {
                output::json(&listing::layer_json(info))?;
            } else {
                print_layer(info)?;
            }
        }
        ListChoice::Profiles => {
            let profile = imbrex::drives::find_profile(name)?;
            if as_json {
                output::json(&profile.table())?;
            } else {
                output::part(profile.source_text());
            }
        }
        _ => {
            return Err(Failure::usage(format!("'{name}': only layers and drives are listed one by one"))
                .or_try("imbrex list layers NAME, or imbrex list drives NAME"));
        }
    }
    Ok(ExitCode::Done)
}

fn print_layer(info: &LayerInfo) -> Result<(), Failure> {
    output::line(&format!("{}: {}", info.name, info.summary));
    output::line(&format!("recordings: {}; source: {}", info.recordings.join(", "), info.source));
    for parameter in info.parameters {
        output::line(&format!("\n  {}={}", parameter.key, parameter.default));
        output::line(&format!("      {}", parameter.help));
        output::line(&format!("      takes {}", parameter.kind.takes()));
    }
    Ok(())
}

fn listing(choice: ListChoice) -> Listing {
    match choice {
        ListChoice::Profiles => listing::profiles(),
        ListChoice::Layers => listing::layers(),
        ListChoice::Formats => listing::formats(),
        ListChoice::Generators => listing::generators(),
        ListChoice::Experiments => crate::reproduce::listing(),
    }
}

fn print(listing: &Listing, with_details: bool) -> Result<(), Failure> {
    let cells = Cells::of_texts(listing.columns, listing.rows.iter().cloned());
    output::line(&cells.within(output::terminal_columns()));
    if with_details && !listing.details.is_empty() {
        output::line("\nparameters, with their defaults:");
        for line in &listing.details {
            output::line(&format!("  {line}"));
        }
    }
    Ok(())
}
