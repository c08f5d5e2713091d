//! `imbrex drive adopt`: accepts, unchanged, a copy of an image that was not closed.

use std::path::Path;

use imbrex_device::snapshot;

use crate::error::ExitCode;
use crate::output;
use imbrex::Failure;

/// Adopts the image.
pub(super) fn run(image: &Path) -> Result<ExitCode, Failure> {
    let words = match snapshot::adopt(image)? {
        true => "is adopted as it is; `imbrex drive check` looks whether it is whole",
        false => "needs no adoption, and was left as it is",
    };
    output::line(&format!("{}: {words}", image.display()));
    Ok(ExitCode::Done)
}
