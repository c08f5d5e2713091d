//! Proof that a layer loses nothing, in two ways that share no code.
//!
//! - [`Checker`] carries out plans symbolically on an integrity map: extents, so that it keeps up with long simulations
//!   (`--check`). It assumes that plans are carried out whole.
//! - [`cuts`] carries them out sector by sector on a toy disk ([`toy`]), cuts them after any step and inside writes,
//!   loses what no barrier made durable, and lets a fresh layer recover.
//!
//! [`judge`] puts both to a layer on every toy disk: the tests of this crate's layers, and of anybody's.

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
