//! Watching a run: its progress, each request that was served, each plan. An observer changes nothing of the run; what moves the
//! bytes of a plan is a [`Carrier`](crate::carrier::Carrier).

use imbrex_disk::{Command, SimTime};
use imbrex_layer::Plan;

use crate::timing::PlanTime;

/// A served request, for `--per-io`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoRecord {
    /// Its number, from 0.
    pub sequence: u64,
    /// What was asked.
    pub command: Command,
    /// The time that the workload gave it; none where the workload has no times of its own.
    pub arrival: Option<SimTime>,
    /// When it entered the queue.
    pub entry: SimTime,
    /// When its service began.
    pub start: SimTime,
    /// When it completed.
    pub end: SimTime,
    /// Its service by part; of an operation that serves several requests its seek, rotation, transfer and cleaning are divided
    /// among them, so that all records together are what the operations took.
    pub time: PlanTime,
    /// The radial position at which the head was afterwards.
    pub radial_track: u32,
}

/// Somebody who watches a run.
pub trait Observer {
    /// Called now and then; `false` ends the workload here: what has entered is still served.
    fn progress(&mut self, _requests: u64, _now: SimTime) -> bool {
        true
    }

    /// Called for every served request, if [`Observer::wants_ios`].
    fn io(&mut self, _record: &IoRecord) {}

    /// Whether [`Observer::io`] is to be called.
    fn wants_ios(&self) -> bool {
        false
    }

    /// Called for every plan, if [`Observer::wants_plans`].
    fn plan(&mut self, _now: SimTime, _commands: &[Command], _plan: &Plan) {}

    /// Whether [`Observer::plan`] is to be called.
    fn wants_plans(&self) -> bool {
        false
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn progress(&mut self, requests: u64, now: SimTime) -> bool {
        (**self).progress(requests, now)
    }

    fn io(&mut self, record: &IoRecord) {
        (**self).io(record);
    }

    fn wants_ios(&self) -> bool {
        (**self).wants_ios()
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        (**self).plan(now, commands, plan);
    }

    fn wants_plans(&self) -> bool {
        (**self).wants_plans()
    }
}

/// Watches nothing.
pub struct Unobserved;

impl Observer for Unobserved {}
