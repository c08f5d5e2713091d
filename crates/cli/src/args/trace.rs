//! Arguments of `imbrex trace`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{TableArgs, WorkloadArgs};

/// `imbrex trace`.
#[derive(Subcommand, Debug)]
pub(crate) enum TraceCommand {
    /// Print statistics of a workload: counts, sizes, locality, gaps, devices.
    Info {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// Print the statistics as JSON.
        #[arg(long)]
        json: bool,
        /// Form of the table.
        #[command(flatten)]
        table: TableArgs,
        /// Draw the addresses of reads and writes over time into this file (SVG).
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
    },
    /// Write a workload in another format.
    Convert {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// The file to write, or `-` for standard output. An existing file of that name is replaced only when the new
        /// one is whole.
        #[arg(value_name = "FILE")]
        output: PathBuf,
        /// The format to write [default: by the file's ending].
        #[arg(long, value_name = "FORMAT", add = crate::complete::written_format())]
        to: Option<String>,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the first requests.
    Head {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// Number of requests.
        #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        count: u64,
        /// Print the requests as JSON, one per line.
        #[arg(long)]
        json: bool,
    },
}
