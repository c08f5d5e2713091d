//! One run: a drive, a workload, how requests reach it, and who watches.
//!
//! ```text
//!   Run::new(drive, options) ─► shown(name, progress) ─► on(source, observer) ─► Ran ─► summary(label)
//! ```
//!
//! Every simulation of this crate and of the papers' experiments goes through here: [`many`] makes several at once.
//!
//! Invariants:
//! 1. What the observer asks for and what the caller of [`Progress::should_stop`] asks for are told apart:
//!    [`Ran::is_stopped`] is the second.
//! 2. Progress changes nothing of the results.

pub mod many;
pub mod shared;
pub mod sinks;

use std::time::Instant;

use imbrex_disk::{Command, SimTime};
use imbrex_layer::Plan;
use imbrex_sim::{
    Drive, DriveResult, DriveSeries, Engine, IoRecord, Observer, Options, Outcome, Unobserved, summarize,
};
use imbrex_trace::Source;
use indicatif::ProgressBar;

use crate::error::Failure;
use crate::progress::Progress;

/// A run to be made.
pub struct Run<'a> {
    drive: Drive,
    options: Options,
    shown: Option<(&'a Progress, String)>,
}

/// What a run came to.
pub struct Ran {
    /// What the engine measured.
    pub outcome: Outcome,
    /// How it was run.
    pub options: Options,
    /// Seconds of the wall clock that it took.
    pub wall_seconds: f64,
    /// Whether it was told to stop before its end.
    pub is_stopped: bool,
}

impl<'a> Run<'a> {
    /// `drive`, as new, run as `options` say.
    pub fn new(drive: Drive, options: Options) -> Run<'a> {
        Run { drive, options, shown: None }
    }

    /// The same, with a bar called `name` on `progress`, which may also stop it.
    pub fn shown(self, name: &str, progress: &'a Progress) -> Run<'a> {
        Run { shown: Some((progress, name.to_string())), ..self }
    }

    /// Runs `source` to its end.
    pub fn of<S: Source + ?Sized>(self, source: &mut S) -> Result<Ran, Failure> {
        self.on(source, &mut Unobserved)
    }

    /// Runs `source` to its end, or until `observer` has seen enough.
    pub fn on<S: Source + ?Sized, O: Observer>(self, source: &mut S, observer: &mut O) -> Result<Ran, Failure> {
        let shown = self.shown.map(|(progress, name)| (progress, progress.requests(&name, source.expected_requests())));
        let mut watched = Watched { observer, shown, is_stopped: false };
        let begun = Instant::now();
        let outcome = Engine::new(self.drive, self.options.clone(), source, &mut watched).run()?;
        let wall_seconds = begun.elapsed().as_secs_f64();
        if let Some((_, bar)) = &watched.shown {
            bar.finish_and_clear();
        }
        Ok(Ran { outcome, options: self.options, wall_seconds, is_stopped: watched.is_stopped })
    }
}

impl Ran {
    /// The same, or a failure if it was stopped: for whoever has no use for a part.
    pub fn whole(self) -> Result<Ran, Failure> {
        if self.is_stopped {
            return Err(Failure::interrupted());
        }
        Ok(self)
    }

    /// Its results and its curves, under the name `label`.
    pub fn summary(&self, label: &str) -> (DriveResult, DriveSeries) {
        let (mut result, series) = summarize(&self.outcome, &self.options, self.wall_seconds);
        result.drive = label.to_string();
        (result, series)
    }
}

/// Passes everything on to an observer; shows progress, and ends the run when it is to stop.
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

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        self.observer.plan(now, commands, plan);
    }

    fn wants_plans(&self) -> bool {
        self.observer.wants_plans()
    }
}
