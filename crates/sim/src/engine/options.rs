//! The options of a run: arrival, schedule, caches, measurements and checks.

use imbrex_disk::SimDuration;

use crate::arrival::Arrival;
use crate::drive::Drive;
use crate::schedule::Schedule;

/// Treatment of requests that reach past the capacity of the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// A request that ends past the capacity is rejected, and counted as rejected.
    Reject,
    /// The address of a request that ends past the capacity is taken modulo the capacity. If the request still ends
    /// past it, it is moved back to end at the capacity. A request longer than the drive is rejected.
    Wrap,
    /// All addresses are multiplied by capacity / extent if the given extent of the workload, in sectors of 512 bytes,
    /// exceeds the capacity. Lengths stay; a request that would end past the capacity is moved back to end there. A
    /// request longer than the drive is rejected. With a smaller extent addresses stay, and a request past the capacity
    /// is rejected.
    Scale(u64),
}

/// The options of a simulation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Arrival process, which gives the time at which each request enters the queue.
    pub arrival: Arrival,
    /// Scheduler, which chooses the next request to serve.
    pub schedule: Schedule,
    /// Size of the volatile write cache in bytes, rounded down to whole sectors; 0 turns it off.
    pub write_cache_bytes: u64,
    /// Size of the buffer for read look-ahead in bytes, rounded down to whole sectors; 0 turns look-ahead off.
    pub read_ahead_bytes: u64,
    /// Treatment of requests that reach past the capacity of the drive: rejected, moved, or scaled to fit.
    pub fit: Fit,
    /// Number of first requests of the workload that are not measured: all measurements are reset when request number
    /// `warmup_requests`, counted from 1, completes or is rejected. 0 measures all.
    pub warmup_requests: u64,
    /// Width of the windows of simulated time in which completions are counted; 0 counts as a nanosecond.
    pub window: SimDuration,
    /// Whether the integrity map checks after each plan that every live sector is still intact. A plan is the list of
    /// reads and writes that the layer makes for a request or for background work.
    pub check: bool,
}

impl Options {
    /// Returns options for measuring only a drive's mechanics and layer: requests are served in order of entry, without
    /// volatile caches, warm-up or checks. Requests past the capacity are rejected; windows are 1 s wide.
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

    /// Returns options for a drive that serves live requests: the scheduler and the caches of its profile, an unbounded
    /// queue, and entry at the times of the requests. There is no warm-up or check, requests past the capacity are
    /// rejected, and windows are 1 s wide.
    ///
    /// # Panics
    ///
    /// Panics if the profile names an unknown scheduler.
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
