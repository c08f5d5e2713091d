//! How a simulation is to be made: arrival, queue, caches, what is measured, and which files are kept.

use std::path::PathBuf;

use imbrex_disk::SimDuration;

use crate::drives::FitChoice;

/// How requests reach the drives, and what is kept of the run. What is `None` is as the workload or the drive's profile
/// has it.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// What to do with a workload that reaches past a drive.
    pub fit: FitChoice,
    /// How requests arrive: `fixed-queue`, `closed`, `open` or `flat-out`.
    pub arrival: Option<String>,
    /// Requests outstanding at most.
    pub queue: Option<u32>,
    /// Which waiting request is served next: `fifo`, `elevator` or `sptf`.
    pub schedule: Option<String>,
    /// Volatile write cache; 0 for none.
    pub write_cache_bytes: Option<u64>,
    /// Read look-ahead; 0 for none.
    pub read_ahead_bytes: Option<u64>,
    /// Requests served before measuring begins.
    pub warmup_requests: u64,
    /// Width of the windows in which completions are counted.
    pub window: SimDuration,
    /// Whether what every physical sector holds is tracked, to prove that nothing live is lost.
    pub check: bool,
    /// Drives simulated at once; `None` for as many as there are cores.
    pub jobs: Option<u32>,
    /// The folder that takes the result files, if they are to be written.
    pub out: Option<PathBuf>,
    /// With `out`: also `ios.parquet`, one row a request.
    pub per_io: bool,
    /// With `out`: also `plan.jsonl`, every step on the medium.
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
            out: None,
            per_io: false,
            plans: false,
        }
    }
}
