//! Observation of a run: its progress, each served request, each plan. An observer does not change the run. The bytes
//! of a plan are moved by a [`Carrier`](crate::carrier::Carrier).

use imbrex_disk::{Command, SimTime};
use imbrex_layer::Plan;

use crate::operation::Operation;
use crate::timing::PlanTime;

/// The times of one completed request, for `--per-io`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoRecord {
    /// Number of the request in the workload, counted from 0.
    pub sequence: u64,
    /// The read, write, flush or trim, with its address and length in sectors of the drive.
    pub command: Command,
    /// Arrival time that the workload states for the request; `None` if the workload gives the request no time.
    pub arrival: Option<SimTime>,
    /// Simulated time from which the request waited for a place in the drive's queue; `entry` if it waited for none, or
    /// the arrival process ignores the times of the workload.
    pub due: SimTime,
    /// Simulated time at which the request entered the drive's queue.
    pub entry: SimTime,
    /// Simulated time at which the service of the request began; `entry` if the volatile cache answered it at entry.
    pub start: SimTime,
    /// Simulated time at which the request was answered.
    pub end: SimTime,
    /// Service time by part. If an operation serves several requests, its seek, rotation, transfer and cleaning are
    /// divided among them, so that the sum over all records is the time of the operations. The other times are those of
    /// the whole operation. All are 0 if the volatile cache answered.
    pub time: PlanTime,
    /// Whether the volatile cache answered the request, so that no operation served it.
    pub from_cache: bool,
    /// Radial position of the head after the service: a track number, counted from 0 at the outer diameter.
    pub radial_track: u32,
}

/// An observer of a simulation: it receives progress, completed requests and plans, and may stop the workload. It
/// changes no times.
pub trait Observer {
    /// Receives, every 8192 requests, the number of requests read from the workload so far, and the simulated time.
    /// Returns whether to go on. With `false`, no further request is read, and those already read are still served.
    /// True by default.
    fn progress(&mut self, _requests: u64, _now: SimTime) -> bool {
        true
    }

    /// Receives the times of each request when it completes, if [`Observer::wants_ios`] returns true. Does nothing by
    /// default.
    fn io(&mut self, _record: &IoRecord) {}

    /// Returns whether the engine should pass each completed request to [`Observer::io`]; false by default.
    fn wants_ios(&self) -> bool {
        false
    }

    /// Receives each request when it enters the drive's queue, before any operation for it, if
    /// [`Observer::wants_operations`] returns true. `sequence` is its number in the workload, and `device` the device of
    /// the trace. Does nothing by default.
    fn entered(&mut self, _sequence: u64, _device: u32, _command: &Command) {}

    /// Receives each operation of the drive, before the requests that it serves are completed, if
    /// [`Observer::wants_operations`] returns true. Operations come in order of time. Does nothing by default.
    fn operation(&mut self, _operation: &Operation<'_>) {}

    /// Returns whether the engine should pass each entry and each operation to [`Observer::entered`] and
    /// [`Observer::operation`]; false by default. The answer must not change after the first request. If it changes between
    /// the creation of an engine and the first request, [`Timing::keep_segments`](crate::timing::Timing::keep_segments)
    /// must be called.
    fn wants_operations(&self) -> bool {
        false
    }

    /// Receives each plan of the layer after it was timed, if [`Observer::wants_plans`] returns true. The first
    /// argument is the time at which the plan began. The commands are those that it serves, the writes of a cache
    /// write-back, or none for background work. Does nothing by default.
    fn plan(&mut self, _now: SimTime, _commands: &[Command], _plan: &Plan) {}

    /// Returns whether the engine should pass each plan to [`Observer::plan`]; false by default. A plan is the list of
    /// reads and writes that the layer makes for requests or background work.
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

    fn entered(&mut self, sequence: u64, device: u32, command: &Command) {
        (**self).entered(sequence, device, command);
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        (**self).operation(operation);
    }

    fn wants_operations(&self) -> bool {
        (**self).wants_operations()
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        (**self).plan(now, commands, plan);
    }

    fn wants_plans(&self) -> bool {
        (**self).wants_plans()
    }
}

/// An observer that ignores everything and never stops the workload.
pub struct Unobserved;

impl Observer for Unobserved {}
