//! Arguments of the commands that read a workload.

use clap::Args;
use imbrex::{Failure, WorkloadOptions};

/// How to read a workload.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct WorkloadArgs {
    /// A trace file (.gz .zst .xz .bz2 are unpacked), `-` for standard input, a generator in fio's words
    /// (`rw=randwrite,bs=4k,size=10GiB,number_ios=100000`), a TOML file of such words, or a built-in workload
    /// (`imbrex list generators`).
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,

    /// The trace's format, if it does not follow from the contents (`imbrex list formats`).
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,

    /// The device to take from a trace of several [default: the busiest].
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,

    /// Columns of a `csv` trace, in order: time,op,offset,size, `_` for one to skip.
    #[arg(long, value_name = "LIST")]
    pub columns: Option<String>,

    /// Units of those columns: s, ms, us, ns or 100ns for time; B or sectors for offset and size.
    #[arg(long, value_name = "LIST")]
    pub units: Option<String>,

    /// `blkparse`, `blktrace`: which action is the request (Q, D or C) [default: the first of these present].
    #[arg(long, value_name = "LETTER")]
    pub action: Option<char>,

    /// `disksim`: the value of the lowest bit of the flags that means a read [default: 1].
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub read_flag: Option<u8>,

    /// Unit of the trace's times, for formats whose converters disagree: s, ms, us, 100ns, ns.
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<String>,

    /// Count malformed records and continue, instead of stopping at the first.
    #[arg(long)]
    pub skip_malformed: bool,

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
            skip_malformed: self.skip_malformed,
            columns: self.columns.clone(),
            units: self.units.clone(),
            action: self.action,
            read_flag: self.read_flag,
            time_unit,
        };
        Ok(WorkloadOptions { trace, seed: self.seed, limit: self.limit })
    }
}
