//! `imbrex drive info /dev/sdX`: properties of a real drive, from sysfs and from smartctl where it is installed. Nothing is
//! written, and no data is read.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};

use imbrex::Failure;
use imbrex::human;
use imbrex::table_form::TableForm;
use imbrex_probe::models::{Statement, statement};
use imbrex_safety::usage::Device;
use serde_json::{Value, json};

use super::facts::{Fact, print};
use crate::error::ExitCode;

/// Returns whether `path` is a block device.
///
/// # Errors
///
/// The path is one of a device, and there is none.
pub(super) fn is_one(path: &Path) -> Result<bool, Failure> {
    match std::fs::metadata(path) {
        Ok(facts) => Ok(facts.file_type().is_block_device()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.starts_with("/dev") => {
            Err(Failure::failed(format!("{}: there is no such device", path.display()))
                .or_try("lsblk -d -o NAME,MODEL,SIZE, which lists the drives"))
        }
        Err(_) => Ok(false),
    }
}

/// Prints the properties of the block device at `path`.
pub(super) fn run(path: &Path, as_json: bool, table: Option<TableForm>) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let number = std::fs::metadata(path).map_err(failed)?.rdev();
    let device = Device::of(number).map_err(failed)?;
    let smart = smartctl(path);
    let mut facts = facts(&device, smart.as_ref().ok());
    let model = facts.iter().find(|fact| fact.key == "model").and_then(|fact| fact.value.as_str());
    let stated = model.and_then(statement);
    facts.insert(0, Fact::new("device", "device", crate::json::path(path), path.display()));
    let (asked, words) = match smart {
        Ok(_) => ("asked".to_string(), String::new()),
        Err(reason) => (reason.clone(), format!("not asked: {reason}")),
    };
    facts.push(Fact::new("smartctl", "smartctl", asked, words));
    facts.push(Fact::new("statement", "recording, stated", json!(stated), in_words(stated.as_ref())));
    print("imbrex.device-info/1", &facts, as_json, table)?;
    Ok(ExitCode::Done)
}

fn in_words(stated: Option<&Statement>) -> String {
    match stated {
        Some(Statement { says, source, .. }) => {
            format!("{}, says {} ({}: {})", says.in_words(), source.by.in_words(), source.date, source.what)
        }
        None => {
            "unknown; `imbrex probe --file FOLDER` measures it, in a new file on the drive's file system".to_string()
        }
    }
}

/// Returns the answer of smartctl about the drive, or the reason for which there is none.
fn smartctl(path: &Path) -> Result<Value, String> {
    let output = Command::new("smartctl").args(["--json=c", "-i"]).arg(path).stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "it is not installed (package smartmontools)".to_string(),
        _ => error.to_string(),
    })?;
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(|_| "its answer is no JSON".to_string())?;
    // The two lowest bits of the status: the command line was wrong, or the drive could not be opened.
    match output.status.code() {
        Some(status) if status & 3 == 0 => Ok(answer),
        _ => Err(answer["smartctl"]["messages"][0]["string"]
            .as_str()
            .unwrap_or("it could not ask the drive")
            .to_string()),
    }
}

/// Returns the properties that the kernel tells, and those of smartctl that the kernel does not tell. Unknown ones are null.
fn facts(device: &Device, smart: Option<&Value>) -> Vec<Fact> {
    let smart = |pointer: &str| smart.and_then(|answer| answer.pointer(pointer)).cloned().unwrap_or(Value::Null);
    let text = |file: &str| device.attribute(file);
    let number = |file: &str| text(file).and_then(|text| text.parse::<u64>().ok());
    let either = |kernel: Option<String>, pointer: &str| kernel.map_or_else(|| smart(pointer), Value::from);
    let mut facts: Vec<Fact> = Vec::new();
    let mut of_text = |key, name, value: Value| {
        let words = value.as_str().unwrap_or_default().to_string();
        facts.push(Fact::new(key, name, value, words));
    };
    // The kernel cuts names of SATA drives to 16 characters.
    let model = match smart("/model_name") {
        Value::Null => text("device/model").map_or(Value::Null, Value::from),
        model => model,
    };
    of_text("model", "model", model);
    of_text("serial_number", "serial number", either(device.serial(), "/serial_number"));
    of_text("firmware", "firmware", either(text("device/rev").or(text("device/firmware_rev")), "/firmware_version"));
    of_text("zoned", "zones, as the drive says", text("queue/zoned").map_or(Value::Null, Value::from));
    of_text("write_cache", "volatile cache", text("queue/write_cache").map_or(Value::Null, Value::from));
    of_text("form_factor", "form factor", smart("/form_factor/name"));
    let of_number = |key, name, number: Option<u64>, words: fn(u64) -> String| {
        Fact::new(key, name, json!(number), number.map_or_else(String::new, words))
    };
    let bytes = |key, name, bytes| of_number(key, name, bytes, human::bytes);
    let count = |key, name, count| of_number(key, name, count, human::count);
    let truth = |key, name, truth: Option<bool>| {
        Fact::new(key, name, json!(truth), truth.map_or("", |truth| if truth { "yes" } else { "no" }))
    };
    facts.push(bytes("size_bytes", "size", number("size").map(|sectors| sectors * 512)));
    facts.push(bytes("logical_sector_bytes", "logical sector", number("queue/logical_block_size")));
    facts.push(bytes("physical_sector_bytes", "physical sector", number("queue/physical_block_size")));
    facts.push(truth("is_rotational", "rotates, as the drive says", number("queue/rotational").map(|flag| flag != 0)));
    let rotation = smart("/rotation_rate").as_u64().filter(|&rotations| rotations > 0);
    facts.push(count("rotations_per_minute", "rotations a minute", rotation));
    facts.push(truth("has_trim", "TRIM", number("queue/discard_max_bytes").map(|most| most > 0)));
    let granularity = number("queue/discard_granularity").filter(|&bytes| bytes > 0);
    facts.push(bytes("trim_granularity_bytes", "granularity of TRIM", granularity));
    let is_zoned = text("queue/zoned").is_some_and(|zoned| zoned != "none");
    let of_zones = |file: &str| number(file).filter(|_| is_zoned);
    facts.push(count("zones", "zones", of_zones("queue/nr_zones")));
    facts.push(bytes("zone_bytes", "zone", of_zones("queue/chunk_sectors").map(|sectors| sectors * 512)));
    facts.push(count("open_zones_max", "open zones at a time", of_zones("queue/max_open_zones")));
    facts.push(count("active_zones_max", "active zones at a time", of_zones("queue/max_active_zones")));
    facts
}
