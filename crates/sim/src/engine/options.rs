//! The options of a run: arrival, schedule, caches, measurements and checks.

use imbrex_disk::SimDuration;

use crate::arrival::Arrival;
use crate::drive::Drive;
use crate::schedule::Schedule;

/// Treatment of a request that reaches past the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// The request is rejected and counted.
    Reject,
    /// Addresses are taken modulo the capacity.
    Wrap,
    /// Addresses are scaled by capacity / extent of the workload (given in sectors of 512 bytes).
    Scale(u64),
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Arrival process.
    pub arrival: Arrival,
    /// Scheduler, which chooses the next request to serve.
    pub schedule: Schedule,
    /// Size of the volatile write cache in bytes; 0 for none.
    pub write_cache_bytes: u64,
    /// Size of the buffer for read look-ahead in bytes; 0 for none.
    pub read_ahead_bytes: u64,
    /// Treatment of requests that reach past the drive.
    pub fit: Fit,
    /// Number of requests served before measuring begins.
    pub warmup_requests: u64,
    /// Width, in simulated time, of the windows in which completions are counted.
    pub window: SimDuration,
    /// Whether the integrity map checks after each plan that every live sector is still intact. A plan is the list of
    /// reads and writes that the layer makes for a request or for background work.
    pub check: bool,
}

impl Options {
    /// Returns options for measuring only a drive's mechanics and layer: order of arrival, no volatile caches.
    pub fn bare(arrival: Arrival) -> Options {
        Options {
            arrival,
            schedule: Schedule::Fifo,
            write_cache_bytes: 0,
            read_ahead_bytes: 0,
            fit: Fit::Reject,
            warmup_requests: 0,
            window: SimDuration::from_secs(1),
            check: false,
        }
    }

    /// Returns options for a drive that serves live requests: scheduler and caches of its profile, and as few
    /// measurements as possible.
    pub fn live(drive: &Drive) -> Options {
        let host = &drive.host;
        Options {
            schedule: Schedule::named(&host.schedule, SimDuration(host.age_limit_ns))
                .expect("a profile names a schedule that there is"),
            write_cache_bytes: host.write_cache_bytes,
            read_ahead_bytes: host.read_ahead_bytes,
            ..Options::bare(Arrival::Open)
        }
    }
}
