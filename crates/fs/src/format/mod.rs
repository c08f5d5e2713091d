//! What lies on the media: how numbers are written, the superblock, the changes of which log and checkpoint are made.
//! `docs/fs/format.md` is this folder in words.

pub mod change;
pub mod coding;
pub mod superblock;
