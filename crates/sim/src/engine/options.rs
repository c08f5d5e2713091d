//! How to run.

use imbrex_disk::SimDuration;

use crate::arrival::Arrival;
use crate::drive::Drive;
use crate::schedule::Schedule;

/// What to do with a request that reaches past the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Reject and count it.
    Reject,
    /// Take addresses modulo the capacity.
    Wrap,
    /// Scale addresses by capacity / extent of the workload (given in sectors of 512 bytes).
    Scale(u64),
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How requests arrive.
    pub arrival: Arrival,
    /// Which is served next.
    pub schedule: Schedule,
    /// Volatile write cache.
    pub write_cache_bytes: u64,
    /// Read look-ahead.
    pub read_ahead_bytes: u64,
    /// What to do with what does not fit.
    pub fit: Fit,
    /// Requests served before measuring begins.
    pub warmup_requests: u64,
    /// Width of a window.
    pub window: SimDuration,
    /// Whether the integrity map is on.
    pub check: bool,
}

impl Options {
    /// For a drive laid bare: in the order of arrival, without caches.
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

    /// For requests brought as they come: served as the drive's host side says, unmeasured in the main.
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
