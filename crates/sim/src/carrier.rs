//! Moving the bytes of a run. The engine decides what moves where and when; a [`Carrier`] moves it, and answers whether that
//! went well. A simulation carries nothing, at no cost: its carrier is [`Nothing`], which cannot fail.
//!
//! Invariants:
//! 1. A request has one number, given by the engine, from [`Carrier::entered`] or [`Carrier::rejected`] to the end. Each
//!    number is entered once or rejected once, in order; each that entered is completed once.
//! 2. What moves for a request is carried before it is completed, in the order in which the medium is to see it.
//! 3. An error is never dropped: that of a request's own plan goes into its completion; that of a destage or of background
//!    work, whose request was answered long ago, is what the engine's step comes to.

use std::convert::Infallible;

use imbrex_disk::{Command, SimTime};
use imbrex_layer::{Layer, Plan};
use imbrex_trace::TraceError;

use crate::queue::Waiting;

/// Whatever moves the bytes of a run. Commands are in the drive's sectors.
pub trait Carrier {
    /// What can go wrong while bytes are moved.
    type Error;

    /// Request `number` enters, as `command`.
    fn entered(&mut self, number: u64, command: &Command);

    /// Request `number`, which came at `at`, does not fit the drive: it is answered with `reason` and nothing is done.
    fn rejected(&mut self, number: u64, at: SimTime, reason: &'static str);

    /// A write enters the volatile cache.
    fn absorb(&mut self, number: u64, command: &Command);

    /// A read is answered from the volatile cache alone.
    fn read_from_cache(&mut self, number: u64, command: &Command);

    /// The volatile cache drops what it holds of these sectors: a command that goes past the cache writes or trims them.
    fn discard(&mut self, command: &Command);

    /// `plan` serves the requests of `batch`, in order of arrival; `layer` has made it.
    fn serve(&mut self, batch: &[Waiting], plan: &Plan, layer: &dyn Layer) -> Result<(), Self::Error>;

    /// `plan` writes these ranges of the volatile cache back, given as writes; `layer` has made it.
    fn destage(&mut self, commands: &[Command], plan: &Plan, layer: &dyn Layer) -> Result<(), Self::Error>;

    /// `plan` is a phase of background work.
    fn background(&mut self, plan: &Plan) -> Result<(), Self::Error>;

    /// Request `number`, which entered at `entry`, is answered at `end`; `outcome` is what its plan came to.
    fn complete(&mut self, number: u64, entry: SimTime, end: SimTime, outcome: Result<(), &Self::Error>);
}

/// Carries nothing: for simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Carrier for Nothing {
    type Error = Infallible;

    fn entered(&mut self, _number: u64, _command: &Command) {}

    fn rejected(&mut self, _number: u64, _at: SimTime, _reason: &'static str) {}

    fn absorb(&mut self, _number: u64, _command: &Command) {}

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

/// What a step can fail with.
#[derive(Debug, thiserror::Error)]
pub enum StepError<E> {
    /// The workload cannot be read.
    #[error(transparent)]
    Source(#[from] TraceError),
    /// Data that no request waits for were not carried: a destage, or background work.
    #[error("what the drive does by itself failed: {0}")]
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
