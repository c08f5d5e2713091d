//! The discrete-event engine: one workload on one drive, in simulated time.
//!
//! ```text
//!  Source ─► arrival ─► queue ─► volatile cache ─► scheduler ─► layer.plan ─► timing ─► metrics ─► DriveResult
//! ```
//!
//! The engine handles no bytes. Equal drive, workload and seed give equal results.

pub mod arrival;
pub mod carrier;
pub mod controller;
pub mod document;
pub mod drive;
pub mod engine;
pub mod estimate;
pub mod events;
pub mod explain;
pub mod inbox;
pub mod metrics;
pub mod observer;
pub mod operation;
mod overlap_filter;
pub mod queue;
pub mod read_ahead;
pub mod results;
pub mod schedule;
pub mod slow;
pub mod summary;
pub mod timing;
pub mod write_cache;

pub use arrival::Arrival;
pub use carrier::{Carrier, Nothing, StepError};
pub use document::{Summary, WorkloadSummary};
pub use drive::{Drive, DriveError, DriveSpec};
pub use engine::{Engine, Fit, Options, Outcome, Stepped};
pub use estimate::Estimate;
pub use inbox::Inbox;
pub use observer::{IoRecord, Observer, Unobserved};
pub use results::{DriveResult, SUMMARY_SCHEMA};
pub use slow::Slow;
pub use summary::{DriveSeries, summarize};
