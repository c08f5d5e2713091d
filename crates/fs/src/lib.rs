//! File systems for raw shingled disks (Singh 2014, Jin 2014): one namespace, several stores, one core.
//!
//! ```text
//!  FUSE · library · benchmarks
//!        │  operations, as tasks of one executor                                                core
//!        ▼
//!  namespace (files, directories) ── changes ──► journal: log, checkpoints, checksums ─► metadata area
//!        │                                                                                     │
//!        ▼                                                                                     ▼
//!  files being written, in memory ──► store: where data lie ──────────────► array of 1 to 16 ─► device
//!                                     strict-append | caveat | log          (log alone)         emulated · real · model
//! ```
//!
//! The core is deterministic code without threads of its own. Each operation is a task of the executor in [`executor`];
//! so are the cleaner, the checkpoint and the commit timer. Tests, power cuts, figures and benchmarks run the core in
//! virtual time, on emulated drives with their latencies: the same seed gives the same run, to the byte. Behind FUSE
//! the core runs on the wall clock.
//!
//! `docs/fs/semantics.md` lists the guarantees of the file system, and `docs/fs/format.md` describes the format on the
//! media.

pub mod array;
pub mod block_run;
pub mod core;
pub mod device;
pub mod error;
pub mod executor;
pub mod format;
pub mod hot;
pub mod journal;
pub mod load;
pub mod namespace;
pub mod salvage;
pub mod store;
#[cfg(feature = "fault-injection")]
pub mod verify;

pub use crate::core::{Bounds, Fs, MakeOptions, MountOptions};
pub use device::Device;
pub use error::FsError;
pub use executor::Executor;
