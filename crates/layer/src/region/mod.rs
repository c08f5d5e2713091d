//! Regions: parts of the disk that can be written without harm to each other, and how one is rewritten in its place.
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

pub use footprint::alike_tracks;
pub use regions::{Position, REGION_SIZE, REGION_TRACKS, RegionOffset, RegionSize, Regions, check_count};
