//! Arguments of the commands that simulate a workload on drives.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use imbrex::simulate_options::size_or_off;
use imbrex::{Baseline, FitChoice, SimulationOptions};

/// The baseline, and the way in which requests reach the drives.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The drive to compare with [default: for each drive the conventional one of like geometry].
    #[arg(long, value_name = "DRIVE", add = crate::complete::drive())]
    pub baseline: Option<String>,

    /// Run no baseline.
    #[arg(long, conflicts_with = "baseline")]
    pub no_baseline: bool,

    /// Treatment of a workload that reaches past the end of the drive.
    #[arg(long, value_parser = fit_choices(), default_value = FitChoice::Grow.word())]
    pub fit: FitChoice,

    /// Arrival process of requests [default: fixed-queue for traces and the CloudPhysics stand-ins, open for other
    /// workloads with times of their own, otherwise closed].
    #[arg(long, value_name = "PROCESS", value_parser = ["fixed-queue", "closed", "open", "flat-out"])]
    pub arrival: Option<String>,

    /// Largest number of outstanding requests [default: the generator's iodepth where arrival is closed by default,
    /// otherwise 64].
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

    /// Track the contents of every physical sector, and prove that no live sector is lost.
    #[arg(long)]
    pub check: bool,
}

impl RunArgs {
    /// Returns the choice of the baseline.
    pub(crate) fn baseline(&self) -> Baseline {
        match &self.baseline {
            Some(drive) => Baseline::Drive(drive.clone()),
            None if self.no_baseline => Baseline::None,
            None => Baseline::default(),
        }
    }

    /// Returns the options of a simulation, with the defaults of those that are not given here.
    pub(crate) fn options(&self) -> SimulationOptions {
        SimulationOptions {
            fit: self.fit,
            arrival: self.arrival.clone(),
            queue: self.queue,
            schedule: self.schedule.clone(),
            write_cache_bytes: self.write_cache,
            read_ahead_bytes: self.read_ahead,
            warmup_requests: self.warmup,
            check: self.check,
            ..SimulationOptions::default()
        }
    }
}

/// Returns the parser of the choices of `--fit`, with their help.
fn fit_choices() -> impl TypedValueParser<Value = FitChoice> {
    let described = FitChoice::ALL.map(|choice| PossibleValue::new(choice.word()).help(choice.help()));
    PossibleValuesParser::new(described).map(|word| FitChoice::named(&word).expect("it is one of the choices"))
}
