//! Measurements of several drives: files without serial numbers and paths, and their comparison.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use imbrex::Failure;
use imbrex::drives::profile_file;
use imbrex::table_form::{Cell, Cells, Column};
use serde_json::Value;

use crate::args::ProbeArgs;
use crate::output;

/// Schema of the documents that are compared.
const SCHEMA: &str = "imbrex.probe/1";

/// Facts that do not identify a drive or its machine, and stay in a shared measurement.
const SHARED_FACTS: [&str; 6] = ["model", "firmware", "zones", "volatile cache", "TRIM", "rotates, as the drive says"];

/// Returns the measurement for others: without serial number, paths and names of volumes. The model stands for the name of the
/// target.
pub(super) fn shared(mut document: Value) -> Value {
    let facts = document["facts"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let is_shared = |fact: &Value| fact["name"].as_str().is_some_and(|name| SHARED_FACTS.contains(&name));
    let facts: Vec<Value> = facts.into_iter().filter(is_shared).collect();
    let model = facts.iter().find(|fact| fact["name"] == "model").and_then(|fact| fact["value"].as_str());
    // The path of a profile may name a person; that of a built-in one is no path.
    let is_built_in = |target: &&str| target.strip_prefix("sim:").is_some_and(|words| profile_file(words).is_none());
    let target = document["target"].as_str().filter(is_built_in);
    document["target"] = target.or(model).unwrap_or("a drive").into();
    document["facts"] = facts.into();
    // Reasons and warnings may name paths.
    document["warnings"] = Value::Array(Vec::new());
    document["left_out"] = Value::Array(Vec::new());
    if !document["ended"].is_null() {
        document["ended"] = "the probe ended early".into();
    }
    document
}

/// Prints the properties of the measurements in `files` beside each other.
pub(super) fn run(args: &ProbeArgs, files: &[PathBuf]) -> Result<(), Failure> {
    let mut documents = files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = documents.iter().map(|(name, _)| name.clone()).collect();
    for ((name, _), path) in documents.iter_mut().zip(files) {
        // Files of one name in several folders are named by their paths.
        if names.iter().filter(|other| *other == name).count() > 1 {
            *name = path.display().to_string();
        }
    }
    let cells = cells(&documents);
    if args.json {
        let documents: Vec<&Value> = documents.iter().map(|(_, document)| document).collect();
        return output::json(&serde_json::json!({ "schema": "imbrex.probe-compare/1", "measurements": documents }));
    }
    match args.table.table {
        Some(form) => output::part(&cells.in_form(form)),
        None => output::line(&cells.within(output::terminal_columns())),
    }
    Ok(())
}

fn read(path: &Path) -> Result<(String, Value), Failure> {
    let failed = |what: &dyn std::fmt::Display| {
        Failure::failed(format!("{}: {what}", path.display()))
            .or_try("a file of `imbrex probe --share FILE.json` or `imbrex probe --json`")
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    // Some editors begin a text with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let document: Value = serde_json::from_str(text).map_err(|error| failed(&format!("is no JSON: {error}")))?;
    if document["schema"] != SCHEMA || !document["properties"].is_array() {
        return Err(failed(&"is no measurement of the probe"));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, document))
}

/// Returns a table with a row per property, and a column per measurement.
fn cells(documents: &[(String, Value)]) -> Cells {
    let mut columns = vec![Column::text("property", "property")];
    columns.extend(documents.iter().map(|(name, _)| Column::text(name, name)));
    let mut order: Vec<String> = Vec::new();
    let mut found: BTreeMap<(String, usize), String> = BTreeMap::new();
    let of_all = |name: &str, cell: &dyn Fn(&Value) -> String| {
        let cells = documents.iter().map(|(_, document)| Cell::text(cell(document)));
        std::iter::once(Cell::text(name)).chain(cells).collect::<Vec<_>>()
    };
    for (index, (_, document)) in documents.iter().enumerate() {
        for property in document["properties"].as_array().into_iter().flatten() {
            let name = property["name"].as_str().unwrap_or_default().to_string();
            if !order.contains(&name) {
                order.push(name.clone());
            }
            found.insert((name, index), shown(property));
        }
    }
    let text = |document: &Value, key: &str| document[key].as_str().unwrap_or("–").to_string();
    let size = |document: &Value| document["size_bytes"].as_u64().map_or_else(|| "–".into(), imbrex::human::bytes);
    let mut rows = vec![of_all("drive", &|document| text(document, "target")), of_all("measured size", &size)];
    for name in order {
        let cell = |index| found.get(&(name.clone(), index)).cloned().unwrap_or_else(|| "–".into());
        let cells = (0..documents.len()).map(|index| Cell::text(cell(index)));
        rows.push(std::iter::once(Cell::text(name.replace('_', " "))).chain(cells).collect());
    }
    Cells { columns, rows }
}

/// Returns the value of a property with its unit and, unless it is high, its confidence.
fn shown(property: &Value) -> String {
    let unit = property["unit"].as_str().unwrap_or_default();
    let value = match &property["value"] {
        Value::String(word) => word.clone(),
        Value::Number(number) if unit == "B" => imbrex::human::bytes(number.as_f64().unwrap_or(0.0).round() as u64),
        Value::Number(number) => format!("{number} {unit}").trim_end().to_string(),
        _ => return "cannot tell".into(),
    };
    let bound = if property["at_least"] == true { "at least " } else { "" };
    match property["confidence"].as_str() {
        Some("high") | None => format!("{bound}{value}"),
        Some(confidence) => format!("{bound}{value} ({confidence})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "schema": SCHEMA, "target": "/home/me/secret", "size_bytes": 4096, "ended": "/home/me: failed",
            "facts": [{"name": "model", "value": "ST8000AS0022"}, {"name": "serial number", "value": "Z8407"},
                      {"name": "through", "value": "the LVM volume vg-me"}],
            "left_out": ["/home/me"], "warnings": ["/home/me"],
            "properties": [{"name": "type", "value": "shingled", "unit": "", "confidence": "high", "at_least": false},
                           {"name": "burst_bytes", "value": 1048576, "unit": "B", "confidence": "medium", "at_least": true}],
        })
    }

    #[test]
    fn a_shared_measurement_names_no_serial_number_and_no_path() {
        let text = shared(document()).to_string();
        for private in ["secret", "Z8407", "vg-me", "/home"] {
            assert!(!text.contains(private), "{private}: {text}");
        }
        assert!(text.contains("\"target\":\"ST8000AS0022\"") && text.contains("shingled"), "{text}");
    }

    #[test]
    fn measurements_stand_beside_each_other() {
        let mut other = document();
        other["properties"] = json!([{"name": "rotation", "value": 10.5, "unit": "ms", "confidence": "low"},
                                     {"name": "type", "value": null, "confidence": "low"}]);
        let text = cells(&[("one".into(), shared(document())), ("two".into(), other)])
            .in_form(imbrex::table_form::TableForm::Csv);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "property,one,two");
        assert_eq!(
            lines[3..],
            ["type,shingled,cannot tell", "burst bytes,at least 1 MiB (medium),", "rotation,,10.5 ms (low)"]
        );
    }
}
