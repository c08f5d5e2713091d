//! An experiment over several seeds: its replications, of which each report is kept in a file, and the report of all.
//!
//! ```text
//!   replication 0, 1, … ─► kept in a file, or found there ─► merged ─► one report
//! ```
//!
//! Invariants:
//! 1. The report of a replication is kept as soon as the replication ends, and an interrupted replication is not kept.
//!    So a later call makes only the replications that are missing.
//! 2. A kept report is used only by the program that made it, with the same traces. The program is named by the hash of
//!    its file, a trace by its name, length and time of the last change.
//! 3. An experiment that asked for no seed runs once, and its report is that of `imbrex reproduce` without `--seeds`.

mod figures;
mod kept;
mod merge;
mod numbers;
#[cfg(test)]
mod tests;

use std::path::Path;

use imbrex::files::ours::refuse_unmarked;
use imbrex::{Failure, Progress, program};

use super::page::{refuse_foreign_results, results_mark};
use super::replication::Replication;
use super::{Experiment, Report, Traces};
use kept::{Found, Kept, Place};

/// Largest number of seeds.
const SEEDS_MAX: u32 = 1000;

impl Experiment {
    /// Runs the experiment with `seeds` seeds, from 1 to 1,000: each random choice has its own seed in the first run,
    /// and one more in each further run. Returns one report of all runs, with means and 95 % intervals.
    ///
    /// With more than one seed, the report of each run is kept in the folder `reproduction/seeds` of `folder`, and a
    /// run whose report the same program has kept is not repeated. An experiment without random choices runs once.
    /// `traces` replace the workloads of the machines that they have, in an experiment that takes them.
    ///
    /// # Errors
    ///
    /// A run fails or is interrupted, its report cannot be kept, or two runs judge different claims.
    ///
    /// # Panics
    ///
    /// `seeds` is 0 or more than 1,000.
    pub fn report_over_seeds(
        &self,
        seeds: u32,
        traces: Option<&Traces>,
        folder: &Path,
        progress: &Progress,
    ) -> Result<Report, Failure> {
        assert!((1..=SEEDS_MAX).contains(&seeds), "{seeds} seeds: 1 to {SEEDS_MAX} are allowed");
        if seeds == 1 {
            return self.replicate(&Replication::new(progress, 0).with_traces(traces));
        }
        refuse_foreign_results(folder, self)?;
        let mut program = program::sha256()?;
        if let Some(traces) = traces.filter(|_| self.takes_traces()) {
            program += &format!(", with {}", traces.identity());
        }
        let place = |number| Place::new(folder, self.name, &program, number);
        let first = self.kept_or_run(&place(0), seeds, traces, progress)?;
        if !first.is_seeded {
            progress.say(&format!("{} has no random choices, so it runs once", self.name));
            return Ok(first.report);
        }
        let mut reports = vec![first.report];
        for number in 1..u64::from(seeds) {
            reports.push(self.kept_or_run(&place(number), seeds, traces, progress)?.report);
        }
        merge::merged(self.name, &reports)
    }

    /// Returns the kept report of a replication, or makes and keeps the report.
    fn kept_or_run(
        &self,
        place: &Place,
        seeds: u32,
        traces: Option<&Traces>,
        progress: &Progress,
    ) -> Result<Kept, Failure> {
        let name = format!("{}, seed {} of {seeds}", self.name, place.number + 1);
        match place.find() {
            Found::Usable(kept) => {
                progress.say(&format!("{name}: found in {}", place.path.display()));
                return Ok(*kept);
            }
            Found::Nothing => progress.say(&name),
            Found::OfAnotherProgram => {
                progress.say(&format!(
                    "{name}: {} is of another program or other traces, so this run is repeated",
                    place.path.display()
                ));
            }
            Found::Damaged => {
                refuse_unmarked(&place.path, results_mark(self.name).as_bytes())?;
                progress.say(&format!("{name}: {} is damaged, so this run is repeated", place.path.display()));
            }
        }
        let replication = Replication::new(progress, place.number).with_traces(traces);
        let report = self.replicate(&replication);
        // A stopped experiment may have left parts out instead of failing.
        if progress.should_stop() {
            let message = format!("interrupted in {name}; the runs of earlier seeds are kept");
            let interrupted = Failure { message, ..Failure::interrupted() };
            return Err(interrupted.or_try("the same command again: it continues with this seed"));
        }
        place.keep(report?, replication.is_seeded())
    }
}
