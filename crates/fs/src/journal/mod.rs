//! How changes outlive a power cut: a log of records, committed in groups; from time to time a checkpoint of the whole,
//! written while changes go on; and the checksums of data. All of it lies on one device or, mirrored, on several.
//!
//! ```text
//!  operation ─► record ─► pending ─► frame of the log (commit: data flushed before, frame flushed after) ─► durable
//!                                                                                   │
//!  checkpoint k: all of the namespace, from the place in the log where it began ────┘ mount: newest checkpoint + log
//! ```
//!
//! Invariants:
//! 1. A frame is written only when the frame before it is durable: what is found of the log is a prefix of it.
//! 2. Data that were written before a record was made are durable before the frame that bears it is written.
//! 3. A checkpoint is valid only once every record that it may have seen is durable.
//! 4. Room in the log that a checkpoint may need at its end is kept back from operations.

pub mod checkpoint;
pub mod checksums;
pub mod log;
pub mod mirror;

pub use self::checksums::Checksums;
pub use self::log::{Log, LogPlace, Record};
pub use self::mirror::Mirror;
