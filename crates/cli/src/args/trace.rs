//! The words of `imbrex trace`.

use std::path::PathBuf;

use clap::Subcommand;

use super::WorkloadArgs;

/// `imbrex trace`.
#[derive(Subcommand, Debug)]
pub enum TraceCommand {
    /// Print what is in a workload: counts, sizes, locality, gaps, devices.
    Info {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
        /// Draw where and when it reads and writes into this file (SVG).
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
    },
    /// Write a workload in another format.
    Convert {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// The file to write; it replaces one of that name only when it is whole.
        #[arg(value_name = "FILE")]
        output: PathBuf,
        /// The format to write [default: by the file's ending].
        #[arg(long, value_name = "FORMAT")]
        to: Option<String>,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the first requests.
    Head {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// How many.
        #[arg(short = 'n', long, default_value_t = 10)]
        count: u64,
        /// Print them as JSON, one a line.
        #[arg(long)]
        json: bool,
    },
}
