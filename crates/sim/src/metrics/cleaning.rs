//! Cleaning metrics: number and duration of cleanings, sectors moved, and the longest stall of a host request.

use imbrex_disk::SimDuration;

use super::latency::LatencyHistogram;

/// Statistics of cleaning events. An event is one piece of the layer's own work (cleaning, migration or recovery), done
/// in one or more phases.
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
    /// Counts one phase of a cleaning event, a piece of the layer's own work: the phase took the time `taken` and wrote
    /// `sectors` sectors of host data. `opens` is true for the first phase of an event, which ends the event before it.
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

    /// Records that cleaning stalled one host request for the time `stalled`; only the longest such time is kept.
    pub fn stall(&mut self, stalled: SimDuration) {
        self.longest_stall_ns = self.longest_stall_ns.max(stalled.0);
    }

    /// Returns the number of cleaning events that have begun. An event is one piece of the layer's own work, such as a
    /// cleaning or a migration.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the number of sectors of host data that cleaning wrote.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the time of all phases of all cleaning events together, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// Returns the longest time for which cleaning stalled a host request, in nanoseconds; 0 if it stalled none.
    pub fn longest_stall_ns(&self) -> u64 {
        self.longest_stall_ns
    }

    /// Returns the durations of the cleaning events, each the sum of its phases. The last event counts with its phases
    /// so far. Events that took no time are left out.
    pub fn durations(&self) -> LatencyHistogram {
        let mut closed = self.clone();
        closed.close();
        closed.durations
    }
}
