//! `imbrex drive import`: converts DiskSim's description of a drive to a profile.

use std::cell::RefCell;
use std::path::Path;

use imbrex_calibrate::disksim;

use crate::error::ExitCode;
use crate::probe::{check_writable, write_whole};
use imbrex::Failure;

/// Executes the command.
pub(super) fn run(description: &Path, out: Option<&Path>, quiet: bool) -> Result<ExitCode, Failure> {
    let folder = description.parent().unwrap_or(Path::new(""));
    let name = description.file_name().and_then(|name| name.to_str());
    let Some(name) = name else {
        return Err(Failure::usage(format!("{}: expected a file such as NAME.parv", description.display())));
    };
    if let Some(out) = out.filter(|out| out.extension().is_none_or(|ending| ending != "toml")) {
        return Err(Failure::usage(format!("--out {}: a profile's name ends in .toml", out.display())));
    }
    let inputs = RefCell::new(Vec::new());
    let read = |file: &str| {
        let path = folder.join(file);
        inputs.borrow_mut().push(path.clone());
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        // Some editors begin a text with a byte order mark.
        Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
    };
    let imported = disksim::import(name, &read).map_err(Failure::failed)?;
    if !quiet {
        for note in &imported.notes {
            message!("imbrex: {note}");
        }
    }
    match out {
        Some(out) => {
            check_writable(out, "--out", &inputs.borrow())?;
            write_whole(out, &imported.toml)?;
        }
        None => crate::output::part(&imported.toml),
    }
    Ok(ExitCode::Done)
}
