//! `imbrex drive create`.

use std::io::ErrorKind;
use std::path::Path;

use imbrex_device::DeviceError;
use imbrex_device::drive::{Making, create_file_of, header_of};
use serde_json::json;

use crate::error::ExitCode;
use crate::json;
use crate::output;
use imbrex::Failure;
use imbrex::drives;
use imbrex::human;

/// Returns the failure of a creation.
fn not_made(image: &Path, error: DeviceError) -> Failure {
    match &error {
        DeviceError::Medium { cause, .. } if cause.kind() == ErrorKind::StorageFull => {
            let place = image.display();
            Failure::failed(format!(
                "no space left on the disk of {place}: free some and make it again; nothing was made"
            ))
        }
        _ => error.into(),
    }
}

/// Creates the image.
pub(super) fn run(image: &Path, words: &str, as_json: bool) -> Result<ExitCode, Failure> {
    // A dangling symbolic link counts as an existing file.
    if image.symlink_metadata().is_ok() {
        return Err(Failure::failed(format!("{} exists already, and was not changed", image.display()))
            .or_try("another name, or remove it first"));
    }
    let (drive, spec) = drives::build(words)?;
    let header = header_of(&drive, &spec, &Making::default()).map_err(Failure::usage)?;
    let (drive, _) = create_file_of(image, header.clone(), drive).map_err(|error| not_made(image, error))?;
    if as_json {
        let document = json!({
            "schema": "imbrex.drive-create/1",
            "image": json::path(image),
            "uuid": header.uuid,
            "drive": header.label,
            "layer": header.layer,
            "capacity_bytes": drive.capacity_bytes(),
        });
        output::json(&document)?;
    } else {
        let capacity = human::bytes(drive.capacity_bytes());
        output::line(&format!("{}: {capacity}, {} ({})", image.display(), header.layer, header.uuid));
    }
    Ok(ExitCode::Done)
}
