//! `imbrex drive`: emulated drives kept in files.

mod create;
mod info;

use crate::args::DriveCommand;
use crate::error::{ExitCode, Failure};

/// Runs the command.
pub fn run(command: &DriveCommand) -> Result<ExitCode, Failure> {
    match command {
        DriveCommand::Create { image, drive, json } => create::run(image, drive, *json),
        DriveCommand::Info { image, json } => info::run(image, *json),
    }
}
