//! Arguments of `imbrex explain`.

use clap::Args;

use super::{RunArgs, TableArgs, WorkloadArgs};

/// `imbrex explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The workload.
    #[command(flatten)]
    pub workload: WorkloadArgs,

    /// A drive: PROFILE[+LAYER][:key=value,…] or a TOML file. May be given several times.
    #[arg(long = "drive", short = 'd', value_name = "DRIVE", required = true, add = crate::complete::drives())]
    pub drives: Vec<String>,

    /// Explain this many requests with the longest latencies.
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub worst: u32,

    /// Explain the request with this number, counted from 0.
    #[arg(long, value_name = "NUMBER", conflicts_with = "worst")]
    pub request: Option<u64>,

    /// Explain a request whose latency is that at this percentile, such as 99.9. Runs the workload twice.
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["worst", "request"], value_parser = percentile)]
    pub percentile: Option<f64>,

    /// Replay each explained request twice: with the blamed work in no time, and without the writes from
    /// the first to the last that filled the stores.
    #[arg(long)]
    pub replay: bool,

    /// The baseline, and the way in which requests reach the drives.
    #[command(flatten)]
    pub run: RunArgs,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,

    /// Form of the table: one row per part of a latency.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Parses a percentile: a number above 0 and at most 100.
fn percentile(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    number
        .filter(|number| *number > 0.0 && *number <= 100.0)
        .ok_or_else(|| "expected a number above 0 and at most 100, such as 99.9".to_string())
}
