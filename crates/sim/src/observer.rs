//! Observation of a run: its progress, each served request, each plan. An observer does not change the run. The bytes
//! of a plan are moved by a [`Carrier`](crate::carrier::Carrier).

use imbrex_disk::{Command, SimTime};
use imbrex_layer::Plan;

use crate::timing::PlanTime;

/// A served request, for `--per-io`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoRecord {
    /// Number of the request, from 0.
    pub sequence: u64,
    /// The command.
    pub command: Command,
    /// Arrival time stated by the workload; `None` if the workload has no times of its own.
    pub arrival: Option<SimTime>,
    /// Time at which the request entered the queue.
    pub entry: SimTime,
    /// Time at which its service began.
    pub start: SimTime,
    /// Time at which the request completed.
    pub end: SimTime,
    /// Service time by part. If an operation serves several requests, its seek, rotation, transfer and cleaning are
    /// divided among them, so that the sum over all records is the time of the operations.
    pub time: PlanTime,
    /// Radial position of the head after the service.
    pub radial_track: u32,
}

/// An observer of a run.
pub trait Observer {
    /// Receives the progress, at intervals. Returns whether to go on; with `false` the workload ends here, and the
    /// requests that have entered are still served.
    fn progress(&mut self, _requests: u64, _now: SimTime) -> bool {
        true
    }

    /// Receives a served request, if [`Observer::wants_ios`].
    fn io(&mut self, _record: &IoRecord) {}

    /// Returns whether the engine should call [`Observer::io`].
    fn wants_ios(&self) -> bool {
        false
    }

    /// Receives a plan, if [`Observer::wants_plans`].
    fn plan(&mut self, _now: SimTime, _commands: &[Command], _plan: &Plan) {}

    /// Returns whether the engine should call [`Observer::plan`].
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

/// An observer that ignores everything.
pub struct Unobserved;

impl Observer for Unobserved {}
