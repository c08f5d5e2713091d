//! The translation layers, one module each; [`crate::registry`] lists them.

pub mod block_swap;
pub mod caveat;
pub mod conventional;
pub mod flip_cache;
pub mod fully_associative;
mod identity;
pub mod imr_rmw;
pub mod interlaced;
pub mod log_structured;
pub mod media_cache;
pub mod region_rmw;
pub mod s_blocks;
pub mod set_associative;
pub mod top_buffer;
pub mod track_cache;
pub mod track_flip;
pub mod track_map;
pub mod write_buffer;
pub mod zoned;
