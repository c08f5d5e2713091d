//! The layers, one file each; [`crate::registry`] lists them.

pub mod conventional;
pub mod s_blocks;
