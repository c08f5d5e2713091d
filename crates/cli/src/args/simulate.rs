//! Arguments of `imbrex simulate` and `imbrex sweep`.

use std::path::PathBuf;

use clap::Args;
use imbrex::simulate_options::window;
use imbrex_disk::SimDuration;

use super::{ChartArgs, EventArgs, RunArgs, TableArgs, WorkloadArgs};

/// `imbrex simulate`.
#[derive(Args, Debug)]
pub(crate) struct SimulateArgs {
    /// The workload.
    #[command(flatten)]
    pub workload: WorkloadArgs,

    /// A drive: PROFILE[+LAYER][:key=value,…] or a TOML file; `all` for one of each translation layer that is not
    /// host-managed. May be given several times. Without it, `all`, or for `demo` six drives.
    #[arg(long = "drive", short = 'd', value_name = "DRIVE", add = crate::complete::drives())]
    pub drives: Vec<String>,

    /// The baseline, and the way in which requests reach the drives.
    #[command(flatten)]
    pub run: RunArgs,

    /// Width, in simulated time, of the windows in which completions are counted.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = window)]
    pub window: SimDuration,

    /// Run the workload with this many seeds, from --seed on: mean and 95 % interval of each figure.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,

    /// Print summary.json instead of the table.
    #[arg(long)]
    pub json: bool,

    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,

    /// Write summary.json, latency.parquet, timeline.parquet and report.html into this folder. A missing folder is
    /// created; results of an earlier run are replaced.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// Folder for the charts.
    #[command(flatten)]
    pub charts: ChartArgs,

    /// With --out: also ios.parquet, one row per request.
    #[arg(long, requires = "out")]
    pub per_io: bool,

    /// With --out: also plan.jsonl, every step on the medium (for small runs).
    #[arg(long, requires = "out")]
    pub plans: bool,

    /// State the causes of this many requests with the longest latencies, below the table, in the report, and with --out in
    /// explain.json.
    #[arg(long, value_name = "REQUESTS", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1000))]
    pub explain: u16,

    /// The file of events.
    #[command(flatten)]
    pub events: EventArgs,

    /// Drives simulated at once [default: the number of cores].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
}

/// `imbrex sweep`.
#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    /// The sweep in TOML: workloads, drives, [parameters], [options].
    #[arg(value_name = "SPEC.toml")]
    pub spec: PathBuf,

    /// The folder for the dataset and the page; existing rows are kept [default: named like the file].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// Folder for the charts.
    #[command(flatten)]
    pub charts: ChartArgs,

    /// Run each point with this many seeds: mean and 95 % interval of each figure. Traces have no seed and run once.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: Option<u32>,

    /// Points run at once [default: the number of cores].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,

    /// Run the points again whose rows record a failure.
    #[arg(long)]
    pub retry_failed: bool,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,

    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,
}
