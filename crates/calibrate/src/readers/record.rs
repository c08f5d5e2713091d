//! Options and results of the readers.

use crate::distribution::Distribution;
use crate::measured::Measured;

/// Options for reading the file of a measurement, where the file does not contain the information itself.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// For a CSV file, which is read as one only if this is given: the names of its columns in order, separated by
    /// commas. The columns `op`, `offset`, `size` and `latency` must be there, and `time` may be. Columns with other
    /// names are skipped.
    pub columns: Option<String>,
    /// For a CSV file: the unit of each column in order, separated by commas. An empty unit is seconds for `time`,
    /// nanoseconds for `latency`, and bytes for `offset` and `size`.
    pub units: Option<String>,
    /// Number or name of the only device whose requests are read, from a record of several devices; `None` for no such
    /// restriction.
    pub device: Option<String>,
}

/// The contents of a measurement's file.
#[derive(Clone, Debug)]
pub enum Reading {
    /// Single requests, each with its time of issue and its duration.
    Requests(Measured),
    /// Only the distribution of the durations of requests, without the single requests.
    Distribution(Distribution),
}
