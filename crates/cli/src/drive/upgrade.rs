//! `imbrex drive upgrade`: converts an image of an older version to this version.

use std::path::Path;

use imbrex::{Failure, Progress};
use imbrex_device::upgrade::upgrade_file;
use serde_json::json;

use crate::error::ExitCode;
use crate::json;
use crate::output;

/// Converts the image.
pub(super) fn run(image: &Path, as_json: bool, quiet: bool) -> Result<ExitCode, Failure> {
    let progress = Progress::on_terminal(as_json || quiet);
    let bar = progress.steps("converting");
    let told = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let upgraded = upgrade_file(image, told)?;
    bar.finish_and_clear();
    let place = image.display();
    if as_json {
        let document = json!({
            "schema": "imbrex.drive-upgrade/1",
            "image": json::path(image),
            "uuid": upgraded.uuid,
            "from_version": upgraded.from,
            "version": upgraded.to,
        });
        output::json(&document)?;
    } else {
        output::line(&format!("{place}: converted from version {} to version {}", upgraded.from, upgraded.to));
    }
    Ok(ExitCode::Done)
}
