//! What a power cut of the host may leave of files, for tests. A recorder logs what a program does to the files of a
//! folder; a replay gives these files as the host's disk may have them after a cut anywhere in the log.
//!
//! ```text
//!   program ──► Recorder ──► Log ──► Replay (to a position) ──► Survival, Fault ──► Disk ──► whoever judges
//! ```
//!
//! - [`recorder`]: runs the program under ptrace, static builds and raw system calls included;
//! - [`log`]: what it did, in order; [`sparse`]: contents of a file;
//! - [`replay`]: what is durable at a position of the log, and what may be;
//! - [`survival`]: which of the versions that may be there are there;
//! - [`fault`]: what a bad disk does on top; [`plant`]: faults in the log, with which judges are judged.
//!
//! The crate knows nothing of Imbrex's formats.

#![allow(clippy::unwrap_used)] // this crate is only linked into tests, where a panic is the report

pub mod fault;
pub mod log;
pub mod plant;
pub mod recorder;
pub mod replay;
pub mod sparse;
pub mod survival;

pub use fault::Fault;
pub use log::{Disk, Event, FileId, Log};
pub use recorder::{Options, Recorder, Recording};
pub use replay::Replay;
pub use sparse::Sparse;
pub use survival::Survival;
