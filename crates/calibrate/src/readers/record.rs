//! Options and results of the readers.

use crate::distribution::Distribution;
use crate::measured::Measured;

/// How to read a record, as far as the record does not say so itself.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// For `csv`, the names of the columns in order, separated by commas: `op`, `offset`, `size`, `latency`, and
    /// optionally `time`. Other names are skipped. A `csv` has no default.
    pub columns: Option<String>,
    /// For `csv`, the unit of each column, separated by commas. An empty unit is seconds for `time`, nanoseconds for
    /// `latency`, and bytes for `offset` and `size`.
    pub units: Option<String>,
    /// The only device to read, by number or name.
    pub device: Option<String>,
}

/// The contents of a record.
#[derive(Clone, Debug)]
pub enum Reading {
    /// Single requests.
    Requests(Measured),
    /// Only the durations of requests.
    Distribution(Distribution),
}
