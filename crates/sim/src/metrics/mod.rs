//! Measurements: latencies, counters, windows, cleaning, and bounded series for the charts.

pub mod busy;
pub mod cleaning;
pub mod counters;
pub mod latency;
pub mod run;
pub mod series;
pub mod waiting;
pub mod windows;
