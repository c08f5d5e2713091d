//! What lies on the media: how numbers are written, the superblock, the changes of which log and checkpoint are made, the
//! records that data carry with them.
//! `docs/fs/format.md` is this folder in words.

pub mod change;
pub mod check_change;
pub mod check_superblock;
pub mod coding;
pub mod hot_stamp;
pub mod record;

pub mod superblock;
