//! What is asked of a reader, and what it gives.

use crate::distribution::Distribution;
use crate::measured::Measured;

/// How to read a record, where it does not say so itself.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// `csv`: what each column holds; one of them is `latency`.
    pub columns: Option<String>,
    /// `csv`: the unit of each column.
    pub units: Option<String>,
    /// The one device that is wanted, by number or name.
    pub device: Option<String>,
}

/// What a record came to.
#[derive(Clone, Debug)]
pub enum Reading {
    /// Requests, one by one.
    Requests(Measured),
    /// Only how long requests took.
    Distribution(Distribution),
}
