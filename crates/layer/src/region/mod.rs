//! Regions: parts of the disk that can be written without harm to each other, and how one is rewritten in its place.

mod regions;
pub mod rewrite;

pub use regions::{Position, RegionOffset, RegionSize, Regions, REGION_SIZE, REGION_TRACKS};
