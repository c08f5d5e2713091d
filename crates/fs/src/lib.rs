//! File systems for raw shingled disks (Singh 2014, Jin 2014): one namespace, several stores, one core.
//!
//! ```text
//!  FUSE · library · benchmarks
//!        │  operations, as tasks of one clock                                                   core
//!        ▼
//!  namespace (files, directories) ── changes ──► journal: log, checkpoints, checksums ─► metadata area
//!        │                                                                                     │
//!        ▼                                                                                     ▼
//!  files being written, in memory ──► store: where data lie ──────────────► array of 1 to 16 ─► device
//!                                     strict-append | caveat | log          (log alone)         emulated · real · model
//! ```
//!
//! The core is one piece of deterministic code without threads of its own: an operation is a task of a [`clock`], and so are
//! the cleaner, the checkpoint and the timer that commits. In virtual time, on emulated drives with their latencies, it is
//! what tests, power cuts, figures and benchmarks run; the same seed gives the same run, to the byte. Behind FUSE it runs on
//! the wall clock.
//!
//! What it promises is in `docs/fs/semantics.md`, what lies on the media in `docs/fs/format.md`.

pub mod array;
pub mod clock;
pub mod core;
pub mod device;
pub mod error;
pub mod format;
pub mod hot;
pub mod journal;
pub mod load;
pub mod namespace;
pub mod salvage;
pub mod store;
pub mod verify;

pub use crate::core::{Bounds, Fs, MakeOptions, MountOptions};
pub use clock::Clock;
pub use device::Device;
pub use error::FsError;
