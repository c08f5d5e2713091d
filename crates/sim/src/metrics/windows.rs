//! Windows: the number of requests that complete in each stretch of simulated time.
//!
//! The counts (number of windows, number of empty ones) are updated as requests complete. The series for the chart is
//! bounded: when it is full, pairs of windows become one, so memory does not grow with the length of the run.
//!
//! Invariants:
//! 1. The counts of all windows sum to the requests completed.
//! 2. A window without a completion counts as zero, also if the run stalled for many windows.

use imbrex_disk::{SimDuration, SimTime};

/// Maximum number of points kept for the chart.
const SERIES_MAX: usize = 4096;

/// The completions of requests in one stretch of simulated time: a point of the series.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Window {
    /// Number of reads completed in this stretch of simulated time.
    pub reads: u64,
    /// Number of writes, flushes and trims completed in this stretch of simulated time.
    pub writes: u64,
    /// Number of bytes of the reads completed in this stretch of simulated time.
    pub read_bytes: u64,
    /// Number of bytes of the writes completed in this stretch of simulated time; flushes and trims count as none.
    pub write_bytes: u64,
}

impl Window {
    fn merge(&mut self, other: &Window) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
    }
}

/// Counts completions in windows of simulated time of equal width, and keeps a bounded series of points for a chart. A
/// point is one window, or several when the run is long.
#[derive(Clone, Debug)]
pub struct Windows {
    width_ns: u64,
    begun_ns: u64,
    current: u64,
    current_end_ns: u64,
    current_count: u64,
    zero: u64,
    series: Vec<Window>,
    windows_per_point: u64,
}

impl Windows {
    /// Creates windows of `width`, at least a nanosecond; the first begins at `begin`.
    pub fn new(width: SimDuration, begin: SimTime) -> Windows {
        let width_ns = width.0.max(1);
        Windows {
            width_ns,
            begun_ns: begin.0,
            current: 0,
            current_end_ns: begin.0 + width_ns,
            current_count: 0,
            zero: 0,
            series: vec![Window::default()],
            windows_per_point: 1,
        }
    }

    /// Counts the completion, at time `at`, of one request with `bytes` bytes. `is_read` is true for a read; other
    /// requests count with the writes. A time before the window of the latest completion counts for that window.
    pub fn complete(&mut self, at: SimTime, is_read: bool, bytes: u64) {
        if at.0 >= self.current_end_ns {
            self.advance(at);
        }
        self.current_count += 1;
        let point = self.series.last_mut().expect("a series has at least one point");
        if is_read {
            point.reads += 1;
            point.read_bytes += bytes;
        } else {
            point.writes += 1;
            point.write_bytes += bytes;
        }
    }

    fn advance(&mut self, at: SimTime) {
        let index = (at.0 - self.begun_ns) / self.width_ns;
        self.zero += u64::from(self.current_count == 0) + (index - self.current - 1);
        self.current = index;
        self.current_count = 0;
        self.current_end_ns = self.begun_ns + (index + 1) * self.width_ns;
        while (index / self.windows_per_point) as usize >= SERIES_MAX {
            self.halve();
        }
        self.series.resize((index / self.windows_per_point) as usize + 1, Window::default());
    }

    fn halve(&mut self) {
        for i in 0..self.series.len().div_ceil(2) {
            let mut merged = self.series[2 * i];
            if let Some(second) = self.series.get(2 * i + 1) {
                merged.merge(second);
            }
            self.series[i] = merged;
        }
        self.series.truncate(self.series.len().div_ceil(2));
        self.windows_per_point *= 2;
    }

    /// Returns (number of windows, number of windows without a completion) for a run that ends at `end`. A last window
    /// that the end of the run cuts short counts as one.
    pub fn count(&self, end: SimTime) -> (u64, u64) {
        let index = end.0.saturating_sub(self.begun_ns).saturating_sub(1) / self.width_ns;
        if index <= self.current {
            return (self.current + 1, self.zero + u64::from(self.current_count == 0));
        }
        (index + 1, self.zero + u64::from(self.current_count == 0) + (index - self.current))
    }

    /// Returns the width of a window, in nanoseconds. A point of the series may be several windows wide.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Returns the points of the series, at most 4096, and their width in nanoseconds: a multiple of the width of a
    /// window. Points follow each other without a gap, from the start of measuring to the latest completion.
    pub fn series(&self) -> (&[Window], u64) {
        (&self.series, self.width_ns * self.windows_per_point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn empty_windows_count_as_zero() {
        let mut windows = Windows::new(SimDuration(SECOND), SimTime::ZERO);
        for at in [0, SECOND / 2, 5 * SECOND] {
            windows.complete(SimTime(at), false, 512);
        }
        assert_eq!(windows.count(SimTime(5 * SECOND + 1)), (6, 4));
        assert_eq!(windows.count(SimTime(9 * SECOND)), (9, 7));
    }

    #[test]
    fn a_long_run_keeps_a_bounded_series_that_sums_to_all() {
        let mut windows = Windows::new(SimDuration(SECOND), SimTime::ZERO);
        for i in 0..100_000u64 {
            windows.complete(SimTime(i * SECOND), i % 2 == 0, 10);
        }
        let (series, width) = windows.series();
        assert!(series.len() <= SERIES_MAX);
        assert_eq!(width, 32 * SECOND);
        assert_eq!(series.iter().map(|window| window.reads + window.writes).sum::<u64>(), 100_000);
        assert_eq!(series[3].read_bytes, 160);
    }
}
