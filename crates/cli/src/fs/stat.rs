//! `imbrex fs stat`: prints the state of a file system. For a mounted one it asks the serving process, by an extended
//! attribute of the directory.

use std::path::{Path, PathBuf};

use imbrex::Failure;
use imbrex::table_form::{Cells, TableForm};
use imbrex_fuse::{OUTCOME_ATTRIBUTE, STATUS_ATTRIBUTE};
use serde_json::{Value, json};

use super::devices::Purpose;
use super::{Offline, status};
use crate::error::ExitCode;
use crate::output;

/// Maximum length of an answer in bytes: the kernel's limit on attribute values.
pub(super) const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Prints the state of the file system.
pub(super) fn run(places: &[PathBuf], as_json: bool, table: Option<TableForm>) -> Result<ExitCode, Failure> {
    let document = match places {
        [directory] if directory.is_dir() => ask(directory)?,
        devices => {
            let Offline { devices, fs, .. } = Offline::open(devices, Purpose::Look)?;
            let mut document = status::document(&fs, &devices.paths, None);
            document["time_s"] = json!(fs.time_ns() / 1_000_000_000);
            document
        }
    };
    if as_json {
        output::json(&document)?;
        return Ok(ExitCode::Done);
    }
    if let Some(form) = table {
        output::part(&Cells::of_document(&document).in_form(form));
        return Ok(ExitCode::Done);
    }
    let lines = status::lines(&document);
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in lines {
        output::line(&format!("{name:width$}  {value}"));
    }
    Ok(ExitCode::Done)
}

/// Returns the status of the file system mounted on `directory`, as its serving process reports it.
pub(super) fn ask(directory: &Path) -> Result<Value, Failure> {
    let place = directory.display();
    let mut answer = vec![0; ANSWER_BYTES_MAX];
    let length = rustix::fs::getxattr(directory, STATUS_ATTRIBUTE, &mut answer).map_err(|error| match error {
        rustix::io::Errno::NODATA | rustix::io::Errno::NOTSUP => {
            Failure::failed(format!("no file system of Imbrex is mounted on {place}"))
                .or_try("the directory itself, not one in it; `findmnt -t fuse.imbrex` lists them")
        }
        rustix::io::Errno::NOTCONN => Failure::failed(format!("{place} was served by a process that is gone"))
            .or_try(format!("`imbrex fs umount {place}`")),
        _ => Failure::failed(format!("{place}: {error}")),
    })?;
    serde_json::from_slice(&answer[..length]).map_err(|error| Failure::failed(format!("{place}: {error}")))
}

/// Returns the outcome of the ended task `id` of the file system mounted on `directory`: its document, or its error
/// message. `None` if the serving process does not have it any more. The outcome is read in parts, because an extended
/// attribute is at most 64 KiB long.
pub(super) fn outcome(directory: &Path, id: &str) -> Result<Option<Value>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("{}: {error}", directory.display()));
    let (mut part, mut text) = (vec![0; ANSWER_BYTES_MAX], Vec::new());
    loop {
        let name = format!("{OUTCOME_ATTRIBUTE}{id}.{}", text.len());
        match rustix::fs::getxattr(directory, name, &mut part) {
            Ok(0) => return serde_json::from_slice(&text).map(Some).map_err(|error| failed(&error)),
            Ok(length) => text.extend(&part[..length]),
            Err(rustix::io::Errno::NODATA) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        }
    }
}
