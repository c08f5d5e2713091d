//! Arguments of the commands that read a workload.

use clap::Args;
use imbrex::{Failure, WorkloadOptions};

use crate::complete;

/// How to read a workload.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct WorkloadArgs {
    /// A trace file (.gz .zst .xz .bz2 are unpacked), `-` for standard input, a generator in fio's words
    /// (`rw=randwrite,bs=4k,size=10GiB,number_ios=100000`), a TOML file of such words, or a built-in workload
    /// (`imbrex list generators`).
    #[arg(value_name = "WORKLOAD", add = complete::workload())]
    pub workload: String,

    /// The trace's format, if it does not follow from the contents (`imbrex list formats`).
    #[arg(long, value_name = "NAME", add = complete::format())]
    pub format: Option<String>,

    /// The device to take from a trace of several [default: the busiest].
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,

    /// `csv`: the table's columns in order, from time, op, offset, size, device; `_` for one to skip. `csv` needs it.
    #[arg(long, value_name = "LIST")]
    pub columns: Option<String>,

    /// `csv`: units of those columns, as in `us,0=read 1=write,B,B`: s, ms, us, 100ns or ns; codes of op; B, sectors, KiB,
    /// pages or MiB [default: s and B].
    #[arg(long, value_name = "LIST")]
    pub units: Option<String>,

    /// `blkparse`, `blktrace`: which action is the request (Q, D or C) [default: the first of these present].
    #[arg(long, value_name = "LETTER")]
    pub action: Option<char>,

    /// `disksim`: the value of the lowest bit of the flags that means a read [default: 1].
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub read_flag: Option<u8>,

    /// `csv`, `disksim`, `cloudphysics-csv`: unit of the times: s, ms, us, 100ns, ns.
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<String>,

    /// `csv`, `wpa`: decimal mark of the numbers [default: the one that the numbers show].
    #[arg(long, value_name = "point|comma", value_parser = str::parse::<imbrex_trace::Decimal>)]
    pub decimal: Option<imbrex_trace::Decimal>,

    /// `csv`: operation of all requests, for a table without a column of operations.
    #[arg(long, value_name = "reads|writes", value_parser = imbrex_trace::options::all_of)]
    pub all: Option<imbrex_disk::Operation>,

    /// Count malformed records and continue, instead of stopping at the first. More than half of all is an error, unless
    /// `all` is given.
    #[arg(long, value_name = "all", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = str::parse::<imbrex_trace::SkipMalformed>)]
    pub skip_malformed: Option<imbrex_trace::SkipMalformed>,

    /// Seed of a generator; overrides the one in its words.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Take only the first requests.
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
}

impl WorkloadArgs {
    /// Returns the options for reading the workload.
    ///
    /// # Errors
    /// `--time-unit` names no known unit.
    pub(crate) fn options(&self) -> Result<WorkloadOptions, Failure> {
        let time_unit = match self.time_unit.as_deref() {
            Some(unit) => Some(unit.parse().map_err(|error| Failure::usage(format!("--time-unit: {error}")))?),
            None => None,
        };
        let trace = imbrex_trace::TraceOptions {
            format: self.format.clone(),
            device: self.device.as_ref().map(|device| device.parse().expect("any word names a device")),
            skip_malformed: self.skip_malformed.unwrap_or_default(),
            columns: self.columns.clone(),
            units: self.units.clone(),
            action: self.action,
            read_flag: self.read_flag,
            time_unit,
            decimal: self.decimal,
            all: self.all,
        };
        Ok(WorkloadOptions { trace, seed: self.seed, limit: self.limit })
    }
}
