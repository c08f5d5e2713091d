//! Options and results of the readers.

use crate::distribution::Distribution;
use crate::measured::Measured;

/// Options for reading the file of a measurement, where the file does not contain the information itself.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// For a CSV file: the names of its columns in order, separated by commas. The columns `op`, `offset`, `size` and
    /// `latency` must be there, and `time` may be. Without `time`, each request counts as issued when the one before
    /// completed. `_` is a column to skip. With `None`, no file is read as CSV.
    pub columns: Option<String>,
    /// For a CSV file: the unit of each column in order, separated by commas: s, ms, us, 100ns or ns for times, B or
    /// sectors (of 512 bytes) for sizes. An empty unit, and `None`, is seconds for `time` and `latency`, and bytes for
    /// `offset` and `size`.
    pub units: Option<String>,
    /// Number or name of the only device whose requests are read, from a blktrace of several devices; `None` reads
    /// those of all.
    pub device: Option<String>,
}

/// The contents of a measurement's file.
#[derive(Clone, Debug)]
pub enum Reading {
    /// The single requests, each with its address, its time of issue and its duration.
    Requests(Measured),
    /// Only the distribution of the durations of requests, without the single requests.
    Distribution(Distribution),
}
