//! Simulates disks whose tracks overlap, shingled (SMR) and interlaced (IMR), under any workload. This is the library under
//! the `imbrex` program.
//!
//! ```text
//!   Workload ──┐
//!              ├─► Simulation ─► Simulated: summary, curves, table ─► files, report
//!   drives ────┘        │
//!                      Run       one drive, one source, one observer; also for callers with an observer of their own
//! ```
//!
//! [`Workload`] finds a trace or a generator. [`drives`] builds drives from texts such as `imr-1t+track-map`.
//! [`Simulation`] runs a workload on several drives and compares them. [`files`] and [`report`] write the results. A
//! caller that needs a single run with its own observer uses [`run::Run`]. The models are in other crates:
//! `imbrex-disk` (mechanics), `imbrex-layer` (translation layers), `imbrex-trace` (workloads) and `imbrex-sim` (the
//! engine). `imbrex-device` stores the bytes of emulated drives.
//!
//! No function here reads the command line or handles signals. Long operations take a [`Progress`], which receives
//! their progress and tells them when to stop.

pub mod chart;
pub mod conversion;
pub mod drives;
pub mod error;
pub mod explain;
pub mod files;
pub mod human;
pub mod listing;
pub mod measured;
pub mod options;
pub mod program;
pub mod progress;
pub mod report;
pub mod run;
#[cfg(test)]
mod sample;
pub mod seeds;
pub mod simulate_options;
pub mod simulation;
pub mod sweep;
pub mod table;
pub mod table_form;
pub mod workload;

pub use drives::{DrivePlan, FitChoice};
pub use error::{Failure, FailureKind};
pub use options::SimulationOptions;
pub use progress::Progress;
pub use run::{Run, RunOutput};
pub use simulate_options::SimulateOptions;
pub use simulation::{Baseline, Simulated, Simulation};
pub use workload::{Workload, WorkloadCounts, WorkloadOptions};
