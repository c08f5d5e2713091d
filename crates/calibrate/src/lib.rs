//! Compares simulated drives with real ones. It converts descriptions of real drives to profiles, compares measured
//! service times with simulated ones, and fits a profile to a measurement.
//!
//! The crate opens no files and does not use the terminal: it takes texts and returns documents.

pub mod compare;
pub mod disksim;
pub mod distribution;
pub mod fit;
pub mod measured;
pub mod readers;
pub mod replay;
pub mod validate;
