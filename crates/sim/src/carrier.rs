//! The interface for moving the bytes of a run. The engine decides which sectors move where and when; a [`Carrier`]
//! moves their bytes and returns whether that succeeded. A simulation has no bytes: its carrier is [`Nothing`], which
//! cannot fail and takes no time.
//!
//! Invariants:
//! 1. A request has one number, given by the engine, from [`Carrier::entered`] or [`Carrier::rejected`] to the end.
//!    Each number is entered once or rejected once, in order; each that entered is completed once.
//! 2. The bytes of a request are moved before the request is completed, in the order in which the medium is to see
//!    them.
//! 3. An error is never dropped. An error in a request's own plan is passed to the request's completion. An error in a
//!    destage or in background work, whose request was answered long ago, is returned by the engine's step.

use std::convert::Infallible;

use imbrex_disk::{Command, SimTime};
use imbrex_layer::{Layer, Plan};
use imbrex_trace::TraceError;

use crate::queue::Waiting;

/// A mover of the bytes of a run. Commands are in the drive's sectors.
pub trait Carrier {
    /// An error that can occur while bytes are moved.
    type Error;

    /// Receives request `number`, which enters the queue as `command`.
    fn entered(&mut self, number: u64, command: &Command);

    /// Receives request `number`, which arrived at `at` and does not fit the drive. The request is answered with
    /// `reason`, and nothing else is done for it.
    fn rejected(&mut self, number: u64, at: SimTime, reason: &'static str);

    /// Copies the data of a write into the volatile cache. The sectors that the write destroys on a caveat disk are
    /// durably marked before this returns. After an error the cache does not hold the data.
    fn absorb(&mut self, number: u64, command: &Command) -> Result<(), Self::Error>;

    /// Reads all data of a read from the volatile cache.
    fn read_from_cache(&mut self, number: u64, command: &Command);

    /// Drops the volatile cache's copies of the sectors of `command`, which bypasses the cache and writes or trims
    /// them.
    fn discard(&mut self, command: &Command);

    /// Moves the data of `plan`, which `layer` has made to serve the requests of `batch`, in order of arrival.
    fn serve(&mut self, batch: &[Waiting], plan: &Plan, layer: &dyn Layer) -> Result<(), Self::Error>;

    /// Moves the data of `plan`, which `layer` has made to write these ranges of the volatile cache back. The ranges
    /// are given as writes.
    fn destage(&mut self, commands: &[Command], plan: &Plan, layer: &dyn Layer) -> Result<(), Self::Error>;

    /// Moves the data of `plan`, a phase of background work.
    fn background(&mut self, plan: &Plan) -> Result<(), Self::Error>;

    /// Completes request `number`, which entered at `entry` and is answered at `end`; `outcome` is the result of its
    /// plan.
    fn complete(&mut self, number: u64, entry: SimTime, end: SimTime, outcome: Result<(), &Self::Error>);
}

/// A carrier that moves nothing, for simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Carrier for Nothing {
    type Error = Infallible;

    fn entered(&mut self, _number: u64, _command: &Command) {}

    fn rejected(&mut self, _number: u64, _at: SimTime, _reason: &'static str) {}

    fn absorb(&mut self, _number: u64, _command: &Command) -> Result<(), Infallible> {
        Ok(())
    }

    fn read_from_cache(&mut self, _number: u64, _command: &Command) {}

    fn discard(&mut self, _command: &Command) {}

    fn serve(&mut self, _batch: &[Waiting], _plan: &Plan, _layer: &dyn Layer) -> Result<(), Infallible> {
        Ok(())
    }

    fn destage(&mut self, _commands: &[Command], _plan: &Plan, _layer: &dyn Layer) -> Result<(), Infallible> {
        Ok(())
    }

    fn background(&mut self, _plan: &Plan) -> Result<(), Infallible> {
        Ok(())
    }

    fn complete(&mut self, _number: u64, _entry: SimTime, _end: SimTime, _outcome: Result<(), &Infallible>) {}
}

/// Reason for which a step of the engine fails.
#[derive(Debug, thiserror::Error)]
pub enum StepError<E> {
    /// The workload cannot be read.
    #[error(transparent)]
    Source(#[from] TraceError),
    /// Data that no request waits for were not moved: those of a destage or of background work.
    #[error("background work of the drive failed: {0}")]
    Carrier(E),
}

impl From<StepError<Infallible>> for TraceError {
    fn from(error: StepError<Infallible>) -> TraceError {
        match error {
            StepError::Source(error) => error,
            StepError::Carrier(never) => match never {},
        }
    }
}
