//! Regions: parts of the disk that can be written without destroying sectors of each other, and the rewrite of a region
//! in place.
//!
//! ```text
//!   footprint ── carve ──┐
//!                        ├── regions ── rewrite
//!   rows ────────────────┘
//! ```

mod carve;
mod footprint;
mod regions;
pub mod rewrite;
mod rows;

pub use carve::RegionSize;
pub use footprint::alike_tracks;
pub use regions::{Position, REGION_SIZE, REGION_TRACKS, RegionOffset, Regions, check_count};
