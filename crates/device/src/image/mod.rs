//! The image: how a drive lies on a medium.
//!
//! ```text
//!  0        header   magic, version, checksum; what the drive is, as JSON (64 KiB)
//!  64 KiB   state    two copies, written in turn: which journal is valid, which epoch, how many slots are given out
//!  72 KiB   table    one number a chunk: the slot that holds it, or none yet
//!           slots    contents of the platters · flash · damage bitmap · journals A and B, in the order they were first written
//! ```
//!
//! The space of a drive is cut into chunks; a chunk gets a slot when it is first written. So an image is as long as what
//! was written, and a drive may be larger than the largest file of the host's file system.
//!
//! Invariants:
//! 1. A slot belongs to one chunk. Slots are given out in order, never past the durable mark.
//! 2. A chunk without a slot reads as zeros.
//! 3. The header never changes once it is written.

pub mod damage;
pub mod header;
pub mod journal;
pub mod space;

pub use damage::Damage;
pub use header::{Header, MAGIC};
pub use journal::Journal;
pub use space::{Region, Space};
