//! Cleaning: how often, how long, how much was moved, and how long a host request stood still because of it.

use imbrex_disk::SimDuration;

use super::latency::LatencyHistogram;

/// What cleaning has done.
#[derive(Clone, Debug, Default)]
pub struct CleaningMetrics {
    events: u64,
    sectors: u64,
    open_ns: u64,
    durations: LatencyHistogram,
    total_ns: u64,
    longest_stall_ns: u64,
}

impl CleaningMetrics {
    /// Counts a phase of a cleaning group: `opens` if it is its first.
    pub fn phase(&mut self, opens: bool, taken: SimDuration, sectors: u64) {
        if opens {
            self.close();
            self.events += 1;
        }
        self.open_ns += taken.0;
        self.total_ns += taken.0;
        self.sectors += sectors;
    }

    fn close(&mut self) {
        if self.open_ns > 0 {
            self.durations.record(self.open_ns);
            self.open_ns = 0;
        }
    }

    /// Told how long cleaning kept a host request waiting.
    pub fn stall(&mut self, stalled: SimDuration) {
        self.longest_stall_ns = self.longest_stall_ns.max(stalled.0);
    }

    /// How many groups of cleaning have begun.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Logical sectors written by cleaning.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Time spent in cleaning, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The longest stall of a host request.
    pub fn longest_stall_ns(&self) -> u64 {
        self.longest_stall_ns
    }

    /// Durations of whole groups, the current one included.
    pub fn durations(&self) -> LatencyHistogram {
        let mut closed = self.clone();
        closed.close();
        closed.durations
    }
}
