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

/// A flash cache beside the platters.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Latency of a read before the transfer, in nanoseconds.
    pub read_ns: u64,
    /// Latency of a write before the transfer, in nanoseconds.
    pub write_ns: u64,
    /// Transfer rate in bytes per second.
    pub bytes_per_second: u64,
}

/// The drive's interface to its host, unless the user sets other values.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Maximum number of commands that the drive holds at once.
    pub queue: u32,
    /// Scheduler: `fifo`, `elevator` or `sptf`.
    pub schedule: String,
    /// Age in nanoseconds above which `sptf` serves a command first; 0 means no limit.
    pub age_limit_ns: u64,
    /// Bytes of volatile write cache; 0 is off.
    pub write_cache_bytes: u64,
    /// Time in which a write is acknowledged from the volatile cache, in nanoseconds; used in place of `overhead_ns`.
    pub write_cache_acknowledge_ns: u64,
    /// Bytes of the buffer for read look-ahead; 0 is off.
    pub read_ahead_bytes: u64,
    /// Controller time of each command, in nanoseconds.
    pub overhead_ns: u64,
    /// Time without requests after which the drive counts as idle, in nanoseconds; a layer may wait longer.
    pub idle_threshold_ns: u64,
    /// Detailed controller, in place of `overhead_ns` and of the two caches above.
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
