//! `imbrex drive`: emulated drives kept in files, and profiles made from descriptions of real drives.

mod adopt;
mod check;
mod create;
mod device;
mod dump;
mod facts;
pub(crate) mod fault;
mod import;
mod info;
mod snapshot;
mod upgrade;

use crate::args::DriveCommand;
use crate::error::ExitCode;
use imbrex::Failure;

/// Executes the command.
pub(crate) fn run(command: &DriveCommand, quiet: bool) -> Result<ExitCode, Failure> {
    match command {
        DriveCommand::Adopt { image } => adopt::run(image),
        DriveCommand::Create { image, drive, json } => create::run(image, drive, *json),
        DriveCommand::Check { image, repair, json } => check::run(image, *repair, *json),
        DriveCommand::Dump { image, parts, json } => dump::run(image, *parts, *json),
        DriveCommand::Fault { image, fault, schedule, json } => {
            fault::run(image, fault.as_ref(), schedule.as_deref(), *json)
        }
        DriveCommand::Import { description, out } => import::run(description, out.as_deref(), quiet),
        DriveCommand::Info { image, json, table } if device::is_one(image)? => device::run(image, *json, table.table),
        DriveCommand::Info { image, json, table } => info::run(image, *json, table.table),
        DriveCommand::Upgrade { image, json } => upgrade::run(image, *json, quiet),
        DriveCommand::Snapshot { image, copy, control, json } => {
            snapshot::run(image, copy, control.as_deref(), *json, quiet)
        }
    }
}
