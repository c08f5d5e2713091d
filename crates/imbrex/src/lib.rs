//! Simulate disks whose tracks overlap, shingled (SMR) and interlaced (IMR), under any workload: the library under the
//! `imbrex` program.
//!
//! ```text
//!   Workload ──┐
//!              ├─► Simulation ─► Simulated: summary, curves, table ─► files, report
//!   drives ────┘        │
//!                      Run       one drive, one source, one observer: what everything above and the papers' experiments use
//! ```
//!
//! [`Workload`] finds a trace or a generator, [`drives`] make drives of words such as `imr-1t+track-map`, [`Simulation`] runs
//! one on the others side by side, [`files`] and [`report`] write what came of it. Whoever wants a single run with an
//! observer of their own takes [`run::Run`]. The models underneath are in `imbrex-disk` (mechanics), `imbrex-layer`
//! (translation layers), `imbrex-trace` (workloads) and `imbrex-sim` (the engine); `imbrex-device` holds bytes.
//!
//! Nothing here reads the command line or listens to signals: work that lasts takes a [`Progress`], which shows how far it
//! is, and says when to stop.

pub mod asked;
pub mod chart;
pub mod conversion;
pub mod drives;
pub mod error;
pub mod files;
pub mod human;
pub mod listing;
pub mod measured;
pub mod options;
pub mod progress;
pub mod report;
pub mod run;
#[cfg(test)]
mod sample;
pub mod simulation;
pub mod sweep;
pub mod table;
pub mod workload;

pub use asked::Asked;
pub use drives::{DrivePlan, FitChoice};
pub use error::{Failure, FailureKind};
pub use options::SimulationOptions;
pub use progress::Progress;
pub use run::{Ran, Run};
pub use simulation::{Baseline, Simulated, Simulation};
pub use workload::{Workload, WorkloadCounts, WorkloadOptions};
