//! The words of the command line. Help, completions and man pages follow from here and from the registries.

#![allow(rustdoc::broken_intra_doc_links)] // These comments are the words of the help: their brackets are no links.

mod drive;
mod list;
mod measured;
mod probe;
mod serve;
mod simulate;
mod trace;
mod workload;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use self::drive::{DriveCommand, DumpParts, FaultWords, ZoneState};
pub use self::list::{ListArgs, ListChoice};
pub use self::measured::{FitArgs, ValidateArgs};
pub use self::probe::ProbeArgs;
pub use self::serve::{LimitArgs, ServeArgs};
pub use self::simulate::{SimulateArgs, SweepArgs};
pub use self::trace::TraceCommand;
pub use self::workload::WorkloadArgs;
pub use crate::fs::args::FsCommand;

/// Simulate, characterise and emulate disks whose tracks overlap: shingled (SMR) and interlaced (IMR).
#[derive(Parser, Debug)]
#[command(name = "imbrex", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Say nothing but results and errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run one workload on several drives, side by side.
    Simulate(SimulateArgs),
    /// Run workloads on drives with every value of their parameters, one row a point in one dataset.
    Sweep(SweepArgs),
    /// Look at traces and convert them.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Make, look at and check emulated drives that hold data in a file.
    #[command(subcommand)]
    Drive(DriveCommand),
    /// Serve an emulated drive as a block device.
    Serve(ServeArgs),
    /// Make, mount, check and look at file systems for raw shingled disks.
    #[command(subcommand)]
    Fs(FsCommand),
    /// Hold a simulated drive against a real one, by what was measured of it.
    Validate(ValidateArgs),
    /// Fit a profile to what was measured of a real drive.
    Fit(FitArgs),
    /// Find out what is inside a drive: shingled or not, its cache, how it cleans.
    Probe(ProbeArgs),
    /// List what there is: profiles, layers, formats, generators, experiments.
    List(ListArgs),
    /// Reproduce the papers' tables and figures, ours beside theirs.
    Reproduce(ReproduceArgs),
    /// Print shell completions.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    Man {
        /// The folder; it is made if need be.
        folder: PathBuf,
    },
}

/// `imbrex reproduce`.
#[derive(Args, Debug)]
pub struct ReproduceArgs {
    /// A paper (`cassuto`) or one of its experiments (`cassuto/fig12`) [default: all].
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: Option<String>,
    /// Where reproduction.md and the figures go.
    #[arg(long, value_name = "FOLDER", default_value = "docs")]
    pub out: PathBuf,
    /// Print the claims as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A number of bytes, such as 64MiB.
pub fn size(text: &str) -> Result<u64, String> {
    imbrex_units::quantity::bytes(text).ok_or_else(|| format!("expected a size such as 64MiB, not '{text}'"))
}
