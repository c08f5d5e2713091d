//! `imbrex drive check`: what is wrong with an image. It is mended in memory first, as an opening would; the file is not
//! written to.

use std::path::Path;

use imbrex_device::check::{check_image, Finding};
use imbrex_device::media::file::{FileMedium, Mode};
use serde_json::{json, Value};

use crate::error::{ExitCode, Failure};
use crate::output;

/// Checks it; damage is told on standard output and by the exit code.
pub fn run(image: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let media = FileMedium::open(image, Mode::Read, false)?;
    let findings = check_image(media, &image.display().to_string())?;
    if as_json {
        let listed: Vec<Value> =
            findings.iter().map(|finding| json!({ "kind": kind(finding), "text": finding.to_string() })).collect();
        let document = json!({
            "schema": "imbrex.drive-check/1",
            "image": image,
            "is_whole": findings.is_empty(),
            "findings": listed,
        });
        output::line(&serde_json::to_string_pretty(&document).map_err(Failure::failed)?)?;
    } else if findings.is_empty() {
        output::line(&format!("{}: whole", image.display()))?;
    } else {
        for finding in &findings {
            output::line(&format!("{}: {finding}", image.display()))?;
        }
    }
    Ok(if findings.is_empty() { ExitCode::Done } else { ExitCode::Damage })
}

/// A finding's kind in JSON.
fn kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::Unopenable(_) => "unopenable",
        Finding::Layer(_) => "layer",
        Finding::Journal { .. } => "journal",
        Finding::Slots(_) => "slots",
        Finding::Map { .. } => "map",
        Finding::Shared { .. } => "shared",
        Finding::Destroyed { .. } => "destroyed",
    }
}
