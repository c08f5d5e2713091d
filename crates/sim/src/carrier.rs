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

/// Moves the bytes of the requests that an engine serves: the engine decides on time and place, the carrier copies.
/// Commands are in the drive's sectors. Requests are numbered from 0 in the order of the workload.
pub trait Carrier {
    /// An error that can occur while bytes are moved, such as a failed read of a backing file.
    type Error;

    /// Receives request `number`, counted from 0 in the order of the workload, which enters the queue as `command`.
    /// [`Carrier::complete`] is called for it later.
    fn entered(&mut self, number: u64, command: &Command);

    /// Receives request `number`, which arrived at `at` and is rejected: it has zero length, or ends past the capacity.
    /// The carrier answers it with `reason`; [`Carrier::complete`] is not called for it.
    fn rejected(&mut self, number: u64, at: SimTime, reason: &'static str);

    /// Copies the data of `command`, the write with request number `number`, into the volatile cache. The sectors that
    /// the write destroys on a caveat disk are durably marked before this returns.
    ///
    /// # Errors
    ///
    /// The sectors could not be marked. The cache does not hold the data then. The error is passed to
    /// [`Carrier::complete`].
    fn absorb(&mut self, number: u64, command: &Command) -> Result<(), Self::Error>;

    /// Reads all data of `command`, the read with request number `number`, from the volatile cache.
    fn read_from_cache(&mut self, number: u64, command: &Command);

    /// Drops the volatile cache's copies of the sectors of `command`, a write that bypasses the cache or a trim.
    fn discard(&mut self, command: &Command);

    /// Moves the data of `plan`, which `layer` has made to serve the requests of `batch` in one operation. The batch
    /// holds the request that the scheduler chose first, then those that joined it, oldest first.
    ///
    /// # Errors
    ///
    /// An error is passed to [`Carrier::complete`] of every request of the batch.
    fn serve(&mut self, batch: &[Waiting], plan: &Plan, layer: &dyn Layer) -> Result<(), Self::Error>;

    /// Moves the data of `plan`, which `layer` has made to write the ranges `commands` of the volatile cache back to
    /// the medium. The ranges are given as writes.
    ///
    /// # Errors
    ///
    /// An error ends the engine's step with [`StepError::Carrier`], because the writes were acknowledged before.
    fn destage(&mut self, commands: &[Command], plan: &Plan, layer: &dyn Layer) -> Result<(), Self::Error>;

    /// Moves the data of `plan`: the reads and writes of one phase of the layer's background work, such as cleaning in
    /// idle time.
    ///
    /// # Errors
    ///
    /// An error ends the engine's step with [`StepError::Carrier`].
    fn background(&mut self, plan: &Plan) -> Result<(), Self::Error>;

    /// Completes request `number`, which entered the queue at `entry` and is answered at `end`. `outcome` is the result
    /// of [`Carrier::serve`] for its plan; `Ok` if the volatile cache answered it.
    fn complete(&mut self, number: u64, entry: SimTime, end: SimTime, outcome: Result<(), &Self::Error>);
}

/// A carrier for simulations, which have no bytes: it moves nothing and never fails.
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

/// The reason why a step of the engine failed: the workload cannot be read, or the carrier failed to move bytes for
/// which no request waits. `E` is the carrier's error.
#[derive(Debug, thiserror::Error)]
pub enum StepError<E> {
    /// The workload cannot be read.
    #[error(transparent)]
    Source(#[from] TraceError),
    /// Bytes for which no request waits were not moved: those of a write-back of the volatile cache or of background
    /// work.
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
