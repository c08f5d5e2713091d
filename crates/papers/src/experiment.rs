//! An experiment: a name, a title and a function that runs it.

use imbrex::{Failure, Progress};

use crate::hajkazemi;
use crate::replication::Replication;
use crate::report::Report;
use crate::sources;

/// An experiment: a table or figure of a paper that Imbrex reproduces, or tables for a page of the documentation.
pub struct Experiment {
    /// Name of the experiment: `paper/figure`, such as `cassuto/fig12`.
    pub name: &'static str,
    /// Title of the experiment in one line: its result or subject.
    pub title: &'static str,
    /// Function that runs the experiment.
    pub(crate) run: fn(&Replication) -> Result<Report, Failure>,
}

impl Experiment {
    /// Runs the experiment and returns its report. Claims whose number set a parameter of the run are marked as fitted,
    /// so that they do not count.
    ///
    /// # Errors
    ///
    /// The experiment fails, for example because a drive or a workload cannot be built, or the user interrupts it.
    pub fn report(&self, progress: &Progress) -> Result<Report, Failure> {
        self.replicate(&Replication::new(progress, 0))
    }

    /// Returns whether the experiment runs the workloads of Hajkazemi 2019's machines, for which a user may have traces
    /// ([`Traces`](crate::Traces)).
    pub fn takes_traces(&self) -> bool {
        hajkazemi::WITH_MACHINES.contains(&self.name)
    }

    /// Like [`Experiment::report`], with the seeds of `replication`.
    pub(crate) fn replicate(&self, replication: &Replication) -> Result<Report, Failure> {
        let mut report = (self.run)(replication)?;
        if let Some(traces) = replication.traces.filter(|_| self.takes_traces()) {
            traces.mark(&mut report);
        }
        sources::mark(self.name, &mut report);
        Ok(report)
    }
}
