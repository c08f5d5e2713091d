//! What an experiment is: a name, a title and a function that runs it.

use imbrex::{Failure, Progress};

use crate::report::Report;
use crate::sources;

/// An experiment of a paper.
pub struct Experiment {
    /// `paper/figure`.
    pub name: &'static str,
    /// What it shows, in one line.
    pub title: &'static str,
    /// Runs it.
    pub(crate) run: fn(&Progress) -> Result<Report, Failure>,
}

impl Experiment {
    /// Runs it, and marks among its claims those that a parameter was set by.
    pub fn report(&self, progress: &Progress) -> Result<Report, Failure> {
        let mut report = (self.run)(progress)?;
        sources::mark(self.name, &mut report);
        Ok(report)
    }
}
