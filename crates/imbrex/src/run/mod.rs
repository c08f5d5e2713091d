//! One run: a drive, a workload, the arrival of requests, and an observer.
//!
//! ```text
//!   Run::new(drive, options) ─► shown(name, progress) ─► on(source, observer) ─► Ran ─► summary(label)
//! ```
//!
//! The simulations of this crate use this module, and those of nearly all of the papers' experiments. [`many`] makes
//! several runs at once.
//!
//! Invariants:
//! 1. A stop by the observer and a stop by [`Progress::should_stop`] are distinguished: only the second sets
//!    [`RunOutput::is_stopped`].
//! 2. Displaying progress does not change the results.

pub mod many;
pub mod shared;
pub mod sinks;

use std::collections::BTreeMap;
use std::time::Instant;

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_layer::Plan;
use imbrex_sim::operation::Operation;
use imbrex_sim::timing::PlanPart;
use imbrex_sim::{
    Drive, DriveResult, DriveSeries, Engine, IoRecord, Observer, Options, Outcome, Unobserved, summarize,
};
use imbrex_trace::Source;
use indicatif::ProgressBar;

use crate::error::Failure;
use crate::progress::Progress;

/// A run that has not begun: one drive, its options, and the progress bar if one is displayed.
pub struct Run<'a> {
    drive: Drive,
    options: Options,
    shown: Option<(&'a Progress, String)>,
    shortened: BTreeMap<PlanPart, SimDuration>,
}

/// Results of one run. A run simulates one drive.
pub struct RunOutput {
    /// Outcome of the engine's run: measurements, result of the integrity check, and the drive at the end of the run.
    pub outcome: Outcome,
    /// Options with which the run was made.
    pub options: Options,
    /// Wall-clock time of the run in seconds, including the time in which the source reads requests.
    pub wall_seconds: f64,
    /// Whether [`Progress::should_stop`] ended the run early. `false` if the observer ended it.
    pub is_stopped: bool,
}

impl<'a> Run<'a> {
    /// Creates a run of `drive`, which must not have served a request, with `options`. No progress is displayed.
    pub fn new(drive: Drive, options: Options) -> Run<'a> {
        Run { drive, options, shown: None, shortened: BTreeMap::new() }
    }

    /// Displays a bar called `name` on `progress`, and lets [`Progress::should_stop`] end the run early.
    pub fn shown(self, name: &str, progress: &'a Progress) -> Run<'a> {
        Run { shown: Some((progress, name.to_string())), ..self }
    }

    /// Takes the given times off the given parts of the layer's plans, as a replay of a run that was explained does. The
    /// head moves as it would.
    pub fn shortened(self, shortened: BTreeMap<PlanPart, SimDuration>) -> Run<'a> {
        Run { shortened, ..self }
    }

    /// Executes the run with the requests of `source`, without an observer, until they end or the progress asks to
    /// stop.
    ///
    /// # Errors
    ///
    /// The first error of `source`.
    pub fn of<S: Source + ?Sized>(self, source: &mut S) -> Result<RunOutput, Failure> {
        self.on(source, &mut Unobserved)
    }

    /// Executes the run with the requests of `source`, until they end, `observer` ends the run, or the progress asks to
    /// stop. After an early end, the requests that have entered are still served.
    ///
    /// # Errors
    ///
    /// The first error of `source`.
    pub fn on<S: Source + ?Sized, O: Observer>(self, source: &mut S, observer: &mut O) -> Result<RunOutput, Failure> {
        let shown = self.shown.map(|(progress, name)| (progress, progress.requests(&name, source.expected_requests())));
        let mut watched = Watched { observer, shown, is_stopped: false };
        let begun = Instant::now();
        let mut engine = Engine::new(self.drive, self.options.clone(), source, &mut watched);
        if !self.shortened.is_empty() {
            engine.timing_mut().shorten(self.shortened);
        }
        let outcome = engine.run()?;
        let wall_seconds = begun.elapsed().as_secs_f64();
        if let Some((_, bar)) = &watched.shown {
            bar.finish_and_clear();
        }
        Ok(RunOutput { outcome, options: self.options, wall_seconds, is_stopped: watched.is_stopped })
    }
}

impl RunOutput {
    /// Returns the run itself unless it was stopped early. For callers that cannot use partial results.
    ///
    /// # Errors
    ///
    /// If [`RunOutput::is_stopped`] is set, with the kind
    /// [`FailureKind::Interrupted`](crate::error::FailureKind::Interrupted).
    pub fn whole(self) -> Result<RunOutput, Failure> {
        if self.is_stopped {
            return Err(Failure::interrupted());
        }
        Ok(self)
    }

    /// Returns the results of the run, and its time series and latency histograms. `label` becomes the drive's name in
    /// the results.
    pub fn summary(&self, label: &str) -> (DriveResult, DriveSeries) {
        let (mut result, series) = summarize(&self.outcome, &self.options, self.wall_seconds);
        result.drive = label.to_string();
        (result, series)
    }
}

/// Forwards everything to an observer, displays progress, and ends the run when the progress asks to stop.
struct Watched<'a, O> {
    observer: &'a mut O,
    shown: Option<(&'a Progress, ProgressBar)>,
    is_stopped: bool,
}

impl<O: Observer> Observer for Watched<'_, O> {
    fn progress(&mut self, requests: u64, now: SimTime) -> bool {
        if let Some((progress, bar)) = &self.shown {
            bar.set_position(requests);
            self.is_stopped |= progress.should_stop();
        }
        self.observer.progress(requests, now) && !self.is_stopped
    }

    fn io(&mut self, record: &IoRecord) {
        self.observer.io(record);
    }

    fn wants_ios(&self) -> bool {
        self.observer.wants_ios()
    }

    fn entered(&mut self, sequence: u64, device: u32, command: &Command) {
        self.observer.entered(sequence, device, command);
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        self.observer.operation(operation);
    }

    fn wants_operations(&self) -> bool {
        self.observer.wants_operations()
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        self.observer.plan(now, commands, plan);
    }

    fn wants_plans(&self) -> bool {
        self.observer.wants_plans()
    }
}
