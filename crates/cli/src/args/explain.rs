//! Arguments of `imbrex explain`.

use clap::Args;
use imbrex::FitChoice;
use imbrex::simulate_options::size_or_off;

use super::WorkloadArgs;
use super::simulate::fit_choices;

/// `imbrex explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The workload.
    #[command(flatten)]
    pub workload: WorkloadArgs,

    /// A drive: PROFILE[+LAYER][:key=value,…] or a TOML file. May be given several times.
    #[arg(long = "drive", short = 'd', value_name = "DRIVE", required = true, add = crate::complete::drive())]
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

    /// Replay each explained request twice: with the blamed work in no time, and without the writes that made that work
    /// necessary.
    #[arg(long)]
    pub replay: bool,

    /// The drive to compare with [default: for each drive the conventional one of like geometry].
    #[arg(long, value_name = "DRIVE", add = crate::complete::drive())]
    pub baseline: Option<String>,

    /// Run no baseline.
    #[arg(long, conflicts_with = "baseline")]
    pub no_baseline: bool,

    /// Treatment of a workload that reaches past the end of the drive.
    #[arg(long, value_parser = fit_choices(), default_value = FitChoice::Grow.word())]
    pub fit: FitChoice,

    /// Arrival process of requests [default: as imbrex simulate].
    #[arg(long, value_name = "PROCESS", value_parser = ["fixed-queue", "closed", "open", "flat-out"])]
    pub arrival: Option<String>,

    /// Largest number of outstanding requests [default: as imbrex simulate].
    #[arg(long, value_name = "DEPTH", value_parser = clap::value_parser!(u32).range(1..))]
    pub queue: Option<u32>,

    /// Order in which waiting requests are served [default: the profile's].
    #[arg(long, value_name = "SCHEDULER", value_parser = ["fifo", "elevator", "sptf"])]
    pub schedule: Option<String>,

    /// Volatile write cache: a size, or off [default: the profile's].
    #[arg(long, value_name = "SIZE", value_parser = size_or_off)]
    pub write_cache: Option<u64>,

    /// Read look-ahead: a size, or off [default: the profile's].
    #[arg(long, value_name = "SIZE", value_parser = size_or_off)]
    pub read_ahead: Option<u64>,

    /// Requests served before measuring begins.
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    pub warmup: u64,

    /// Compute the parts of each request in two ways and compare them, and prove that no live sector is lost.
    #[arg(long)]
    pub check: bool,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Parses a percentile: a number above 0 and at most 100.
fn percentile(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    number
        .filter(|number| *number > 0.0 && *number <= 100.0)
        .ok_or_else(|| "expected a number above 0 and at most 100, such as 99.9".to_string())
}
