//! Options and results of the readers.

use crate::distribution::Distribution;
use crate::measured::Measured;

/// How to read a record, as far as the record does not say so itself.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// For `csv`, the meaning of each column; one of them is `latency`.
    pub columns: Option<String>,
    /// For `csv`, the unit of each column.
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
