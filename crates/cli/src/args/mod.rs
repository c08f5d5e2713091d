//! Arguments of the command line. Help, completions and man pages are generated from these types and from the
//! registries.

#![allow(rustdoc::broken_intra_doc_links)] // These comments are the help texts: their brackets are no links.

mod chart;
mod drive;
mod events;
mod explain;
mod lab;
mod list;
mod measured;
mod probe;
mod run;
mod serve;
mod simulate;
pub(crate) mod size;
mod table;
mod trace;
mod workload;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Command as Clap, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::complete;

pub(crate) use self::chart::ChartArgs;
pub(crate) use self::drive::{DriveCommand, DumpParts, FaultWords, ZoneState};
pub(crate) use self::events::EventArgs;
pub(crate) use self::explain::ExplainArgs;
pub(crate) use self::lab::{LabBuildArgs, LabCommand, LabRunArgs};
pub(crate) use self::list::{ListArgs, ListChoice};
pub(crate) use self::measured::{FitArgs, ValidateArgs};
pub(crate) use self::probe::ProbeArgs;
pub(crate) use self::run::RunArgs;
pub(crate) use self::serve::{LimitArgs, ServeArgs};
pub(crate) use self::simulate::{SimulateArgs, SweepArgs};
pub(crate) use self::table::TableArgs;
pub(crate) use self::trace::TraceCommand;
pub(crate) use self::workload::WorkloadArgs;
pub(crate) use crate::fs::args::FsCommand;

/// Exit codes, below the help of the program.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed, refused or interrupted
  2  the command line is wrong
  3  damage was found
  4  done, but standard output failed: its reader left, or its disk is full";

/// Simulate, characterise and emulate disks whose tracks overlap: shingled (SMR) and interlaced (IMR).
#[derive(Parser, Debug)]
#[command(name = "imbrex", version, max_term_width = 100, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,

    /// Print nothing but results, warnings and errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// Returns the command line in `words`, of which the first is the name of the program.
///
/// # Errors
/// The error or the help that the words ask for, with the usage of their command.
pub(crate) fn parse<W: Into<OsString> + Clone>(words: impl IntoIterator<Item = W>) -> Result<Cli, clap::Error> {
    let mut command = with_negative_numbers(Cli::command());
    let found = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&found).map_err(|error| error.format(&mut command))
}

/// Lets every option take a negative number as its value, so that the option itself says which numbers it takes.
fn with_negative_numbers(command: Clap) -> Clap {
    let command = command.mut_args(|argument| {
        let takes_value = !argument.is_positional() && argument.get_action().takes_values();
        argument.allow_negative_numbers(takes_value)
    });
    command.mut_subcommands(with_negative_numbers)
}

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run one workload on several drives, side by side.
    Simulate(SimulateArgs),
    /// State why requests were slow: which requests, cleanings and write-backs they waited for.
    Explain(ExplainArgs),
    /// Run workloads on drives with every value of their parameters, one row per point in one dataset.
    Sweep(SweepArgs),
    /// Inspect traces and convert them.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Create, inspect and check emulated drives that hold data in a file.
    #[command(subcommand)]
    Drive(DriveCommand),
    /// Serve an emulated drive as a block device.
    Serve(ServeArgs),
    /// Create, mount, check and inspect file systems for raw shingled disks.
    #[command(subcommand)]
    Fs(FsCommand),
    /// Run unmodified Linux in virtual time on emulated drives.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Compare a simulated drive with measurements of a real one.
    Validate(ValidateArgs),
    /// Fit a profile to measurements of a real drive.
    Fit(FitArgs),
    /// Find out the internals of a drive: shingled or not, its cache, its cleaning.
    Probe(ProbeArgs),
    /// List the built-in entries: profiles, layers, formats, generators, experiments.
    List(ListArgs),
    /// Reproduce the papers' tables and figures, ours beside theirs.
    Reproduce(ReproduceArgs),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    Man {
        /// The folder; it is created if it does not exist.
        folder: PathBuf,
    },
}

/// `imbrex reproduce`.
#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// A paper (`cassuto`) or one of its experiments (`cassuto/fig12`) [default: all].
    #[arg(value_name = "EXPERIMENT", add = complete::experiment())]
    pub experiment: Option<String>,
    /// The folder that receives reproduction.md and the figures. It is made if it does not exist.
    #[arg(long, value_name = "FOLDER", default_value = "reproduction")]
    pub out: PathBuf,
    /// Run each experiment with this many seeds: means, 95 % intervals, and claims that depend on the seed. Each run is
    /// kept in the folder, so that a later call continues. An experiment without random choices runs once.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// A folder with traces of the machines of Hajkazemi 2019, such as w106.csv.gz. They replace the stand-ins of these
    /// machines.
    #[arg(long, value_name = "FOLDER")]
    pub traces: Option<PathBuf>,
    /// Print the claims as JSON.
    #[arg(long)]
    pub json: bool,
    /// Run the part of the experiment that runs in a guest of the lab, with these words. The experiment itself calls this.
    #[arg(long, value_name = "WORDS", hide = true, requires = "experiment")]
    pub in_guest: Option<String>,
}
