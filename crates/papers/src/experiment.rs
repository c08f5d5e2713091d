//! An experiment: a name, a title and a function that runs it.

use imbrex::{Failure, Progress};

use crate::report::Report;
use crate::sources;

/// An experiment: a table or figure of a paper, or tables for a page of the documentation.
pub struct Experiment {
    /// Name of the experiment: `paper/figure`.
    pub name: &'static str,
    /// Title: the result or subject of the experiment, in one line.
    pub title: &'static str,
    /// Function that runs the experiment.
    pub(crate) run: fn(&Progress) -> Result<Report, Failure>,
}

impl Experiment {
    /// Executes the experiment and marks the claims whose numbers set a parameter of the run as fitted.
    pub fn report(&self, progress: &Progress) -> Result<Report, Failure> {
        let mut report = (self.run)(progress)?;
        sources::mark(self.name, &mut report);
        Ok(report)
    }
}
