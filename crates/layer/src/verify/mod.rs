//! Proof that a layer loses nothing, by two methods that share no code.
//!
//! - [`Checker`] executes plans symbolically on an integrity map. It works on extents, so that it is fast enough for
//!   long simulations (`--check`). It assumes that plans are executed whole.
//! - [`cuts`] executes plans sector by sector on a toy disk ([`toy`]). It cuts them after any step and inside writes,
//!   drops writes that no barrier made durable, and lets a new layer recover.
//!
//! [`judge`] applies both to a layer on every toy disk. The tests of this crate's layers use it; other crates can test
//! their own layers with it.

mod checker;
pub mod cuts;
mod fault;
pub mod harm;
mod image;
pub mod judge;
mod rules;
pub mod toy;

pub use checker::Checker;
pub use fault::{CheckError, Fault, WriteNumber};
pub use rules::{RuleBreaks, Rules};
