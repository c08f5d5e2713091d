//! Simulates, for tests, the effects of a power cut of the host on files. A recorder logs a program's changes to the
//! files of a folder. A replay returns the files that the host's disk may hold after a cut at any position of the log.
//!
//! ```text
//!   program ──► Recorder ──► Log ──► Replay (to a position) ──► Survival, Fault ──► Disk ──► whoever judges
//! ```
//!
//! In the tests of the program `imbrex`:
//!
//! ```text
//!  imbrex serve ──► system calls ──► Recorder (ptrace, seccomp) ──► Log: writes, sizes, names, syncs, bytes sent to clients
//!      │ answers                                                     │ position of the cut
//!      ▼                                                             ▼
//!  Writer ──► History: acknowledged requests, by bytes received    Replay: durable version and later ones of each block
//!      │                                                             │ Survival (which versions) · Fault (of the disk)
//!      └──────► Record at that position ──► judge ◄── opened ◄── Disk: names and contents
//! ```
//!
//! The recorder checks its log at the end: the log, applied to the files' first contents, must give their last contents
//! byte for byte, otherwise the run is an error. The recorder counts the bytes that the program sends on each socket, and
//! the client counts the bytes that it receives. So each answer to the client has a position in the log.
//!
//! - [`recorder`]: runs the program under ptrace; statically linked programs and raw system calls are recorded too;
//! - [`log`]: the program's events in order; [`sparse`]: the contents of a file;
//! - [`replay`]: the durable contents at a position of the log, and the later versions that may survive;
//! - [`survival`]: the choice of the versions that survive;
//! - [`fault`]: additional faults of a bad disk; [`plant`]: bugs planted in a log, which test the tests.
//!
//! The crate is independent of Imbrex's formats.

#![allow(clippy::unwrap_used)] // this crate is only linked into tests, where a panic is the report

pub mod fault;
pub mod log;
pub mod plant;
pub mod recorder;
pub mod replay;
pub mod sparse;
pub mod survival;
mod versions;

pub use fault::Fault;
pub use log::{Disk, Event, FileId, Log};
pub use recorder::{Options, Recorder, Recording};
pub use replay::Replay;
pub use sparse::Sparse;
pub use survival::Survival;
