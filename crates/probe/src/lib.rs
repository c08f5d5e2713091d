//! The probe: what is inside this drive? The eleven tests of Aghayev 2015 §4, automated to a verdict.
//!
//! ```text
//!   Target ◄── experiments (one file each) ──► Series ──► statistics ──► Property {value, confidence, evidence} ──► Verdict
//! ```
//!
//! An experiment sees a [`Target`]: it reads and writes blocks at a queue depth, sleeps, and gets completion times; what is
//! behind it cannot tell. Every threshold comes from the data. "Cannot tell" is an answer; a wrong answer is a bug.

pub mod experiments;
pub mod run;
pub mod simulated;
pub mod statistics;
pub mod target;
pub mod verdict;

pub use run::{probe, Options};
pub use simulated::Simulated;
pub use target::{Direction, Operation, Target, TargetError, Timed};
pub use verdict::{Confidence, Property, Series, Value, Verdict};
