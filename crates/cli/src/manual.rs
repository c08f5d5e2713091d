//! Shell completions and man pages, generated from the help texts.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::error::ExitCode;
use crate::output;
use imbrex::Failure;
use imbrex::files::ours::refuse_foreign;
use imbrex::files::replace;

/// Prints completions for `shell`.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "imbrex", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::Done)
}

/// Writes a man page for the program and each command into `folder`.
pub(crate) fn pages(folder: &Path, quiet: bool) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::failed(format!("cannot write man pages into {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    // The pages are generated elsewhere first, so that a file of that name that is not a page of ours is not
    // overwritten.
    let made = tempfile::tempdir().map_err(failed)?;
    clap_mangen::generate_to(Cli::command().disable_help_subcommand(true), made.path()).map_err(failed)?;
    let entries = std::fs::read_dir(made.path()).map_err(failed)?;
    let names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    refuse_foreign(folder, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    for name in &names {
        let page = std::fs::read(made.path().join(name)).map_err(failed)?;
        replace(&folder.join(name), &page)?;
    }
    if !quiet {
        message!("man pages are in {}: man -l {}", folder.display(), folder.join("imbrex.1").display());
    }
    Ok(ExitCode::Done)
}
