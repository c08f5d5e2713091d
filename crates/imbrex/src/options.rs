//! Options of a simulation: arrival, queue, caches, measurement, and the files to keep.

use std::path::PathBuf;

use imbrex_disk::SimDuration;

use crate::drives::FitChoice;

/// Options of a simulation: the way in which requests reach the drives, the measurement, and the results that are kept.
/// `None` means the default of the workload or of the drive's profile, unless the field says otherwise.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// Treatment of a workload that addresses sectors past the end of a drive. By default, the disk gets more tracks.
    pub fit: FitChoice,
    /// Name of the arrival process, the rule for the time at which each request enters the queue: `fixed-queue` (the
    /// workload's distances in time, delayed while the queue is full), `closed` (a constant number outstanding), `open`
    /// (the workload's times) or `flat-out` (one after the other). `None` for the default of the workload.
    pub arrival: Option<String>,
    /// Maximum number of outstanding requests, at least 1. `None` for the default of the workload. An error with the
    /// arrivals `open` and `flat-out`, which have no such limit.
    pub queue: Option<u32>,
    /// Name of the scheduler that picks the next waiting request: `fifo`, `elevator`, or `sptf` for the shortest
    /// positioning time. `None` for the default of the drive's profile.
    pub schedule: Option<String>,
    /// Size of the drive's volatile write cache in bytes; 0 for none, `None` for the size in the drive's profile.
    pub write_cache_bytes: Option<u64>,
    /// Size of the drive's buffer for read look-ahead in bytes; 0 for none, `None` for the size in the drive's profile.
    pub read_ahead_bytes: Option<u64>,
    /// Number of requests at the beginning of the workload that are served but not measured. An error if the workload
    /// has no more requests than that. 0 by default.
    pub warmup_requests: u64,
    /// Width, in simulated time, of the consecutive windows in which completed requests are counted. The first window
    /// begins when measuring begins. 1 s by default.
    pub window: SimDuration,
    /// Whether the simulation tracks the contents of every physical sector and checks that no sector with current data
    /// is lost. The check takes more time and memory. `false` by default.
    pub check: bool,
    /// Maximum number of drives simulated at the same time; `None` for the number of cores.
    pub jobs: Option<u32>,
    /// Part of every drive that a generator addresses if its words do not give the part in bytes: its length from
    /// sector 0 on, in sectors of 512 bytes, and the text of the drive that determined the length. `None` for the
    /// capacity of the smallest drive.
    pub span: Option<(u64, String)>,
    /// Number of runs with different seeds, at least 1; 1 by default. The seeds are those that follow the seed of the
    /// workload. With more than one, the results have the mean and the 95 % interval of each figure, and the result
    /// files hold the time series and requests of the first seed. An error for a trace, which has no seed.
    pub seeds: u32,
    /// Folder that the result files are written to; `None` to write no files.
    pub out: Option<PathBuf>,
    /// Whether to write `ios.parquet` too, with one row per request and drive. Ignored without `out`.
    pub per_io: bool,
    /// Whether to write `plan.jsonl` too, with every read and write of the medium that the layer plans. Ignored without
    /// `out`.
    pub plans: bool,
    /// Number of requests with the longest latencies whose causes are stated; 0, the default, for none.
    pub explain: usize,
    /// File that receives the events of all drives for the viewer of Perfetto; `None` to write none.
    pub trace_events: Option<PathBuf>,
    /// Simulated time from which on events are kept. 0 by default.
    pub events_from: SimDuration,
    /// Simulated time up to which events are kept; `None` for the end.
    pub events_to: Option<SimDuration>,
    /// Largest size of the file of events in bytes. Each drive has an equal share of it. 256 MiB by default.
    pub events_bytes_max: u64,
}

/// Default of [`SimulationOptions::events_bytes_max`].
pub const EVENTS_BYTES_MAX: u64 = 256 << 20;

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
            seeds: 1,
            out: None,
            per_io: false,
            plans: false,
            explain: 0,
            trace_events: None,
            events_from: SimDuration::ZERO,
            events_to: None,
            events_bytes_max: EVENTS_BYTES_MAX,
        }
    }
}
