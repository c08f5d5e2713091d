//! The probe: what is inside this drive? The eleven tests of Aghayev 2015 §4, automated to a verdict.
//!
//! ```text
//!   Target ◄── experiments (one file each) ──► Series ──► statistics ──► Property {value, confidence, evidence} ──► Verdict
//! ```
//!
//! An experiment sees a [`Target`]: it reads and writes blocks at a queue depth, sleeps, and gets completion times; what is
//! behind it cannot tell. Every threshold comes from the data. "Cannot tell" is an answer; a wrong answer is a bug.

mod advice;
mod bench;
mod emit;
pub mod experiments;
mod lateness;
mod marks;
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
