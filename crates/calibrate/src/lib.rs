//! Simulated drives held against real ones: descriptions of real drives become profiles, measured service times are
//! compared with simulated ones, and what a profile has wrong is fitted.
//!
//! It opens no files and knows no terminal: texts come in, documents go out.

pub mod compare;
pub mod disksim;
pub mod distribution;
pub mod fit;
pub mod measured;
pub mod readers;
pub mod replay;
pub mod validate;
