//! Regions: parts of the disk that can be written without harm to each other, and how one is rewritten in its place.

mod regions;
pub mod rewrite;

pub use regions::{Position, REGION_SIZE, REGION_TRACKS, RegionOffset, RegionSize, Regions, check_count};
