//! The host side of a drive in a profile: queue, schedule, volatile cache, look-ahead; and flash beside the platters.
//! This module parses and checks the values; the simulator applies them.
//!
//! Invariants (of a checked host):
//! 1. The queue takes at least one command.
//! 2. A cache is off or holds at least one sector.

use serde::{Deserialize, Serialize};

use super::controller::Controller;
use crate::mechanics::{RATE_MIN, STEP_NS_MAX};

/// The schedulers that a profile may name.
const SCHEDULES: &[&str] = &["fifo", "elevator", "sptf"];

/// Latencies and transfer rate of a flash memory beside the platters of a drive. A layer may place its cache there
/// (`cache_medium=flash`). The parameters of the layer give the size of the cache.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Latency of a read from the flash memory, before its transfer begins, in nanoseconds.
    pub read_ns: u64,
    /// Latency of a write to the flash memory, before its transfer begins, in nanoseconds.
    pub write_ns: u64,
    /// Transfer rate of the flash memory, for reads and writes, in bytes per second; at least 1000.
    pub bytes_per_second: u64,
}

/// The host side of a drive in its profile: queue, scheduler, volatile caches and controller times. The user may
/// override each.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Maximum number of commands that the drive holds at once, at least 1; further ones wait at the host. 32 unless
    /// given.
    pub queue: u32,
    /// Scheduler that chooses the next command: `fifo` (the oldest), `elevator` (the nearest in the direction of
    /// travel) or `sptf` (the one that the head can begin soonest). `fifo` unless given.
    pub schedule: String,
    /// Waiting time in nanoseconds above which the scheduler `sptf` (shortest positioning time first) serves the oldest
    /// command first; 0 means no limit; 1 s unless given. Other schedulers ignore it.
    pub age_limit_ns: u64,
    /// Size of the volatile write cache in bytes; 0, the default, is off, otherwise at least one sector.
    pub write_cache_bytes: u64,
    /// Least time from the entry of a write to its acknowledgement if the volatile write cache is on, in nanoseconds;
    /// 100 µs unless given. It takes the place of `overhead_ns` for writes without FUA that are no larger than the
    /// cache. A write that finds the cache full is acknowledged when it has room there, but no sooner. Without effect
    /// if `controller` is given.
    pub write_cache_acknowledge_ns: u64,
    /// Size of the buffer for read look-ahead in bytes; 0, the default, is off, otherwise at least one sector.
    pub read_ahead_bytes: u64,
    /// Controller time of each command, in nanoseconds, counted from its entry: it overlaps with waiting in the queue.
    /// 100 µs unless given.
    pub overhead_ns: u64,
    /// Time without requests after which background work of the translation layer may begin, in nanoseconds; 0 unless
    /// given. A layer may wait longer.
    pub idle_threshold_ns: u64,
    /// Detailed model of the controller, in place of `overhead_ns`, write cache and look-ahead. It needs the `exact`
    /// rotation model. `None` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
}

impl Default for Host {
    fn default() -> Host {
        Host {
            queue: 32,
            schedule: "fifo".into(),
            age_limit_ns: 1_000_000_000,
            write_cache_bytes: 0,
            write_cache_acknowledge_ns: 100_000,
            read_ahead_bytes: 0,
            overhead_ns: 100_000,
            idle_threshold_ns: 0,
            controller: None,
        }
    }
}

impl Host {
    /// Returns the first key that is wrong, and the reason.
    pub(super) fn check(&self, sector_bytes: u32) -> Result<(), (&'static str, String)> {
        if self.queue == 0 {
            return Err(("queue", "a drive takes at least one command at once; give 1 or more".into()));
        }
        if !SCHEDULES.contains(&self.schedule.as_str()) {
            return Err(("schedule", format!("unknown schedule '{}'; give {}", self.schedule, SCHEDULES.join(", "))));
        }
        for (key, bytes) in [("write_cache_bytes", self.write_cache_bytes), ("read_ahead_bytes", self.read_ahead_bytes)]
        {
            if bytes > 0 && bytes < u64::from(sector_bytes) {
                let reason =
                    format!("{bytes} bytes hold 0 sectors of {sector_bytes}; give 0 for off, or a sector or more");
                return Err((key, reason));
            }
        }
        check_times(&[
            ("overhead_ns", self.overhead_ns),
            ("write_cache_acknowledge_ns", self.write_cache_acknowledge_ns),
        ])?;
        self.check_controller()
    }
}

/// Returns an error for the first time that is longer than any drive takes.
fn check_times(times: &[(&'static str, u64)]) -> Result<(), (&'static str, String)> {
    match times.iter().find(|(_, ns)| *ns > STEP_NS_MAX) {
        Some((key, ns)) => Err((key, format!("{ns} ns: expected at most {STEP_NS_MAX} ns, which is a minute"))),
        None => Ok(()),
    }
}

impl Host {
    fn check_controller(&self) -> Result<(), (&'static str, String)> {
        let Some(controller) = &self.controller else { return Ok(()) };
        for (key, bytes) in [("write_cache_bytes", self.write_cache_bytes), ("read_ahead_bytes", self.read_ahead_bytes)]
        {
            if bytes > 0 {
                let reason = "the controller has segments of its own: drop one of the two".into();
                return Err((key, reason));
            }
        }
        controller.check().map_err(|(key, reason)| ("controller", format!("`{key}`: {reason}")))
    }
}

impl Flash {
    /// Returns the first key that is wrong, and the reason.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.bytes_per_second < RATE_MIN {
            let reason = format!("{} bytes a second: expected {RATE_MIN} or more", self.bytes_per_second);
            return Err(("bytes_per_second", reason));
        }
        check_times(&[("read_ns", self.read_ns), ("write_ns", self.write_ns)])
    }
}
