//! Sweeps: workloads times drives times parameters, one row a point in one dataset.
//!
//! ```text
//!  Spec (words) ─► Grid: workloads found, points with keys ─┬─ run: on the cores there are ─┐
//!                                                           └─ Task ─► elsewhere ─► bytes ──┴─► Dataset: FOLDER/points/KEY.parquet ─► page
//! ```
//!
//! A point's key is a hash of what was asked, of the workload's contents and of the version, so a second call finds what is
//! there, does what is missing, and adds what is new.
//!
//! Invariants:
//! 1. A row depends on its key alone, wall-clock columns apart: where and when it was made does not show.
//! 2. A row is there whole or not at all.
//! 3. A point that fails has a row, which says why; a point that was interrupted has none.

pub mod dataset;
pub mod grid;
pub mod page;
pub mod row;
pub mod run;
pub mod spec;
mod texts;

pub use dataset::Dataset;
pub use grid::{Grid, Point, Task};
pub use run::Swept;
pub use spec::Spec;
pub use texts::{expand, values};
