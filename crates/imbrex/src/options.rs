//! Options of a simulation: arrival, queue, caches, measurement, and the files to keep.

use std::path::PathBuf;

use imbrex_disk::SimDuration;

use crate::drives::FitChoice;

/// How requests reach the drives, and which results are kept. A value of `None` means the default of the workload or of
/// the drive's profile, unless the field says otherwise.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// How to handle a workload that addresses sectors past the end of a drive.
    pub fit: FitChoice,
    /// How requests arrive: `fixed-queue`, `closed`, `open` or `flat-out`.
    pub arrival: Option<String>,
    /// Largest number of outstanding requests.
    pub queue: Option<u32>,
    /// Scheduler that picks the next waiting request: `fifo`, `elevator` or `sptf`.
    pub schedule: Option<String>,
    /// Size of the volatile write cache in bytes; 0 for none.
    pub write_cache_bytes: Option<u64>,
    /// Size of the read look-ahead in bytes; 0 for none.
    pub read_ahead_bytes: Option<u64>,
    /// Number of requests served before measuring begins.
    pub warmup_requests: u64,
    /// Width, in simulated time, of the windows in which completions are counted. The first window begins when
    /// measuring begins.
    pub window: SimDuration,
    /// Whether the contents of every physical sector are tracked, to prove that no live sector is lost.
    pub check: bool,
    /// Number of drives simulated at once; `None` for the number of cores.
    pub jobs: Option<u32>,
    /// Part of the drives that a generator addresses if its words do not give it in bytes: a number of sectors of 512
    /// bytes, and the text of the drive that sets it. `None` for as much as the smallest drive offers.
    pub span: Option<(u64, String)>,
    /// Folder for the result files; `None` to write no files.
    pub out: Option<PathBuf>,
    /// Whether `ios.parquet` is written too, with one row per request. Ignored without `out`.
    pub per_io: bool,
    /// Whether `plan.jsonl` is written too, with every step on the medium. Ignored without `out`.
    pub plans: bool,
}

impl Default for SimulationOptions {
    fn default() -> SimulationOptions {
        SimulationOptions {
            fit: FitChoice::Grow,
            arrival: None,
            queue: None,
            schedule: None,
            write_cache_bytes: None,
            read_ahead_bytes: None,
            warmup_requests: 0,
            window: SimDuration::from_secs(1),
            check: false,
            jobs: None,
            span: None,
            out: None,
            per_io: false,
            plans: false,
        }
    }
}
