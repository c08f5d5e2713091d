//! When the requests come: in bursts, with pauses in which a conventional drive catches up. All of it is ours.
//!
//! Each run of requests is charged what Hajkazemi 2019 §3 (eqs. 1 and 2) makes of it: a seek of 2 ms and more with
//! the distance, half a rotation of 10 ms, and the transfer of 2 MiB a rotation. A burst begins when the drive would
//! be done with all before it, if it worked its share of the time.
//!
//! Invariants:
//! 1. Times never decrease.
//! 2. When a burst begins, everything before it is at most `load` of the time so far, by the charge above; on a quiet
//!    day less.

use imbrex_units::{SimDuration, SimTime};

use super::super::random::Stream;
use super::facts;
use super::sizes::SECTOR_BYTES;

const SEEK_MIN_NS: f64 = 2e6;
const SEEK_SPAN_NS: f64 = 18e6;
const HALF_ROTATION_NS: f64 = 5e6;
const SECTOR_NS: f64 = 10e6 / 4096.0;

/// The traces last a week, of which one day may be quiet: as many requests as on the others, in more time.
const DAYS: u64 = 7;
/// Load of that day, of the others'.
const QUIET_LOAD: f64 = 0.4;

/// The seek of the paper is spread over a drive of 1 TB; a mean distance is a third of what is used of it.
const DRIVE_BYTES: f64 = 1e12;

/// Gives times to requests.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    rules: facts::Pace,
    /// Requests left of the quiet day.
    quiet_left: u64,
    random_ns: f64,
    burst_left: u64,
    burst_bytes_left: u64,
    time: SimTime,
    /// When the drive would be done with all so far, working `load` of the time.
    done: SimTime,
}

impl Pace {
    pub fn new(rules: facts::Pace, range_bytes: u64, requests: u64) -> Pace {
        let distance = (range_bytes as f64 / DRIVE_BYTES).min(1.0) / 3.0;
        Pace {
            rules,
            quiet_left: if rules.has_quiet_day { requests / DAYS } else { 0 },
            random_ns: SEEK_MIN_NS + SEEK_SPAN_NS * distance + HALF_ROTATION_NS,
            burst_left: 0,
            burst_bytes_left: 0,
            time: SimTime::ZERO,
            done: SimTime::ZERO,
        }
    }

    /// When the next request comes; `follows` where it goes on with a run.
    #[inline]
    pub fn next(&mut self, sectors: u64, follows: bool, stream: &mut Stream) -> SimTime {
        let bytes = sectors * SECTOR_BYTES;
        if self.burst_left == 0 || self.burst_bytes_left < bytes {
            self.begin_burst(stream);
        } else {
            let mean_ns = self.rules.gap_ns[stream.below(2) as usize];
            self.time += SimDuration(stream.exponential_ns(mean_ns));
        }
        self.burst_left -= 1;
        self.burst_bytes_left = self.burst_bytes_left.saturating_sub(bytes);
        let place_ns = if follows { 0.0 } else { self.random_ns };
        let work_ns = place_ns + sectors as f64 * SECTOR_NS;
        let is_quiet = self.quiet_left > 0;
        self.quiet_left -= u64::from(is_quiet);
        let load = if is_quiet { self.rules.load * QUIET_LOAD } else { self.rules.load };
        self.done = self.done.max(self.time) + SimDuration((work_ns / load) as u64);
        self.time
    }

    fn begin_burst(&mut self, stream: &mut Stream) {
        self.time = self.time.max(self.done);
        self.burst_left = 1 + stream.below(2 * self.rules.burst_requests - 1);
        self.burst_bytes_left = self.rules.burst_bytes;
    }
}
