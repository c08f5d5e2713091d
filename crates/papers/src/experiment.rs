//! What an experiment is: a name, a title and a function that runs it.

use imbrex::{Failure, Progress};

use crate::report::Report;

/// An experiment of a paper.
pub struct Experiment {
    /// `paper/figure`.
    pub name: &'static str,
    /// What it shows, in one line.
    pub title: &'static str,
    /// Runs it.
    pub run: fn(&Progress) -> Result<Report, Failure>,
}
