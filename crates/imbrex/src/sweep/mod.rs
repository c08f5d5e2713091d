//! Sweeps: every combination of workloads, drives and parameters, with one row per point in one dataset.
//!
//! ```text
//!  Spec (words) ─► Grid: workloads found, points with keys ─┬─ run: on the cores there are ─┐
//!                                                           └─ Task ─► elsewhere ─► bytes ──┴─► Dataset: FOLDER/points/KEY.parquet ─► sweep.parquet, page
//! ```
//!
//! A point is one workload on one drive with one value of each parameter and option. Its key is a hash of the drive,
//! the options, the workload's contents and the version. A second call therefore finds the rows of the first, runs
//! missing points, and adds new ones.
//!
//! Invariants:
//! 1. A row depends only on its key, except for the wall-clock columns. When and where the point ran has no effect.
//! 2. A row is complete or missing.
//! 3. A point that failed has a row with the error. A point that was interrupted has no row.

pub mod dataset;
pub mod grid;
pub mod page;
pub mod row;
pub mod run;
pub mod spec;
pub(crate) mod texts;

pub use dataset::Dataset;
pub use grid::{Grid, Point, Task};
pub use run::Swept;
pub use spec::Spec;
pub use texts::{expand, values};
