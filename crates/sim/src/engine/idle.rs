//! Idle time: the layer's background work, one phase at a time, once its threshold has passed.

use imbrex_disk::{SimDuration, SimTime};
use imbrex_trace::Source;

use super::Engine;
use super::service::Span;
use crate::carrier::{Carrier, StepError};
use crate::observer::Observer;

/// A time without commands in which background work has run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    /// Its start: the end of the last command.
    since: SimTime,
    /// Earliest time at which the next phase of background work may begin, by the end of the last one and the rest after
    /// it.
    next: SimTime,
}

impl<S: Source, O: Observer, C: Carrier> Engine<S, O, C> {
    /// Handles a time without requests until `at`: does background work once the layer's idle threshold has passed, and
    /// moves the clock to `at`.
    pub(super) fn idle_until(&mut self, at: SimTime) -> Result<(), StepError<C::Error>> {
        while let Some(start) = self.background_start() {
            if start >= at || !self.run_background(start)? {
                break;
            }
        }
        self.now = self.now.max(at);
        Ok(())
    }

    /// Returns when the next phase of background work would begin if no request came. Returns `None` if there is none,
    /// or sectors are dirty in the volatile cache.
    pub(super) fn background_start(&self) -> Option<SimTime> {
        if !self.cache.is_empty() {
            return None;
        }
        let background = self.drive.layer.background()?;
        let threshold = background.idle_after.max(SimDuration(self.drive.host.idle_threshold_ns));
        Some(match self.idle {
            Some(idle) => idle.next.max(idle.since + threshold),
            None => self.now + threshold,
        })
    }

    /// Does one phase of background work from `start` on. Returns whether there was any.
    pub(super) fn run_background(&mut self, start: SimTime) -> Result<bool, StepError<C::Error>> {
        self.plan.clear();
        self.commands.clear();
        if !self.drive.layer.idle(&mut self.plan) {
            return Ok(false);
        }
        let since = self.idle.map_or(self.now, |idle| idle.since);
        let carried = self.carrier.background(&self.plan);
        self.now = start + self.carry_out(start).whole;
        self.report(Span { begin: start, from: Some(start), host_end: self.now, end: self.now }, None);
        let rest = self.drive.layer.background().map_or(SimDuration::ZERO, |background| background.rest);
        self.idle = Some(Idle { since, next: self.now + rest });
        carried.map(|()| true).map_err(StepError::Carrier)
    }
}
