//! The probe: finds out how a drive works inside, from the times of its answers. It automates the eleven tests of
//! Aghayev 2015 §4 and returns a verdict.
//!
//! ```text
//!   Target ◄── experiments (one file each) ──► Series ──► statistics ──► Property {value, confidence, evidence} ──► Verdict
//! ```
//!
//! An experiment reads and writes blocks of a [`Target`] at a queue depth, sleeps, and receives completion times. The
//! code of an experiment does not depend on the kind of target. Thresholds are shares of measured values.
//! "Cannot tell" is a valid result; a wrong result is a bug.

mod advice;
mod bench;
mod emit;
pub mod experiments;
pub mod extents;
mod lateness;
mod marks;
pub mod models;
mod pauses;
mod rest;
pub mod run;
pub mod statistics;
pub mod target;
pub mod targets;
pub mod verdict;
mod watched;
mod words;

pub use emit::emit_profile;
pub use run::{ProbeOptions, probe};
pub use target::{About, Direction, Done, HeadPath, Next, Operation, Target, TargetError, Timed};
pub use targets::Simulated;
pub use verdict::{Confidence, Fact, Head, Property, Series, Value, Verdict};
pub use watched::ProbeState;
