//! Arguments of `imbrex validate` and `imbrex fit`: a file with measurements of a real drive.

use std::path::PathBuf;

use clap::Args;

use super::{ChartArgs, TableArgs};
use imbrex_calibrate::readers::ReadOptions;

/// The measurements, and options for reading them.
#[derive(Args, Debug, Clone)]
pub(crate) struct MeasuredArgs {
    /// Measurements of a real drive: DiskSim's validation format, blktrace or blkparse with issues and completions,
    /// fio's latency log with --log_offset=1, fio's json+ (as a distribution only), ios.parquet, or csv with a column
    /// `latency`.
    #[arg(value_name = "MEASURED")]
    pub measured: PathBuf,

    /// Columns of a csv, in order, separated by commas: op, offset, size, latency, and optionally time; `_` for one to
    /// skip. A csv requires this option.
    #[arg(long, value_name = "LIST")]
    pub columns: Option<String>,

    /// Units of those columns: s, ms, us, ns or 100ns for time and latency; B or sectors for offset and size [default:
    /// seconds, bytes].
    #[arg(long, requires = "columns", value_name = "LIST")]
    pub units: Option<String>,

    /// The device to take from a record of several; the drive of an ios.parquet [default: all, of an ios.parquet the first].
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
}

impl MeasuredArgs {
    /// Returns the options for reading the measurements.
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions { columns: self.columns.clone(), units: self.units.clone(), device: self.device.clone() }
    }
}

/// `imbrex validate`.
#[derive(Args, Debug)]
pub(crate) struct ValidateArgs {
    /// The measurements.
    #[command(flatten)]
    pub measured: MeasuredArgs,

    /// The drive to compare with them: PROFILE[+LAYER][:key=value,…] or a TOML file.
    #[arg(long, short = 'd', value_name = "DRIVE", add = crate::complete::drive())]
    pub drive: String,

    /// Requests to issue, in the words of `imbrex simulate`, for fio's json+, which lists no requests [default: the
    /// job's own].
    #[arg(long, value_name = "WORDS")]
    pub workload: Option<String>,

    /// Print the judgement as JSON.
    #[arg(long)]
    pub json: bool,

    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,

    /// Write the judgement as a page for a browser.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Folder for the charts.
    #[command(flatten)]
    pub charts: ChartArgs,
}

/// `imbrex fit`.
#[derive(Args, Debug)]
pub(crate) struct FitArgs {
    /// The measurements.
    #[command(flatten)]
    pub measured: MeasuredArgs,

    /// The profile to begin with: a name or a TOML file.
    #[arg(long, value_name = "PROFILE", add = crate::complete::drive())]
    pub from: String,

    /// The file for the fitted profile; an existing file of that name is replaced.
    #[arg(long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,

    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,

    /// Write the result as a page for a browser.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Folder for the charts.
    #[command(flatten)]
    pub charts: ChartArgs,
}
