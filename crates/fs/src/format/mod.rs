//! Format on the media: the encoding of numbers, the superblock, the changes that the log and the checkpoints consist
//! of, and the records stored with the data. `docs/fs/format.md` describes the format in words.

pub mod change;
mod change_coding;
pub mod check_change;
pub mod check_superblock;
pub mod coding;
pub mod file_type;
pub mod hot_part;
pub mod hot_stamp;
pub mod limits;
pub mod name;
pub mod record;
pub mod shape;
pub mod superblock;
mod superblock_coding;
