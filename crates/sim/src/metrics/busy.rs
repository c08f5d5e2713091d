//! Time that the drive spent on the layer's own work, in windows of simulated time.
//!
//! Invariants:
//! 1. The windows of a timeline sum to the time of all such work since measuring began.
//! 2. The number of windows is bounded: when it is exceeded, pairs of windows become one.

use imbrex_disk::{SimDuration, SimTime};

/// Maximum number of windows kept.
const WINDOWS_MAX: usize = 4096;

/// A bounded series of windows, each with the time spent within it, in nanoseconds.
#[derive(Clone, Debug)]
pub struct BusyTimeline {
    begun_ns: u64,
    width_ns: u64,
    windows: Vec<u64>,
}

impl BusyTimeline {
    /// Creates an empty timeline of windows of `width`, at least a nanosecond; the first begins at `begin`.
    pub fn new(width: SimDuration, begin: SimTime) -> BusyTimeline {
        BusyTimeline { begun_ns: begin.0, width_ns: width.0.max(1), windows: Vec::new() }
    }

    /// Counts the time from `from` on for `length`.
    pub fn spend(&mut self, from: SimTime, length: SimDuration) {
        let mut from_ns = from.0.saturating_sub(self.begun_ns);
        let end_ns = (from.0 + length.0).saturating_sub(self.begun_ns);
        while end_ns > self.width_ns.saturating_mul(WINDOWS_MAX as u64) {
            self.halve();
        }
        while from_ns < end_ns {
            let index = (from_ns / self.width_ns) as usize;
            if index >= self.windows.len() {
                self.windows.resize(index + 1, 0);
            }
            let until_ns = end_ns.min((index as u64 + 1) * self.width_ns);
            self.windows[index] += until_ns - from_ns;
            from_ns = until_ns;
        }
    }

    fn halve(&mut self) {
        self.windows = self.windows.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.width_ns *= 2;
    }

    /// Returns the times spent in the windows, in nanoseconds, and the width of a window, in nanoseconds. Windows after the
    /// last one had no such work.
    pub fn series(&self) -> (&[u64], u64) {
        (&self.windows, self.width_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_sum_to_the_time_spent_however_long_the_run_is() {
        let mut timeline = BusyTimeline::new(SimDuration(10), SimTime(5));
        timeline.spend(SimTime(0), SimDuration(8));
        timeline.spend(SimTime(12), SimDuration(25));
        assert_eq!(timeline.series(), (&[6, 10, 10, 2][..], 10));
        timeline.spend(SimTime(5 + 10 * 4096), SimDuration(1));
        let (windows, width_ns) = timeline.series();
        assert_eq!((width_ns, windows.len(), windows.iter().sum::<u64>()), (20, 2049, 29));
        assert_eq!(windows[..2], [16, 12]);
    }
}
