//! Durability of changes through a power cut: a log of records, committed in groups; checkpoints of the whole
//! namespace, written from time to time while changes continue; and the checksums of data. All of them are on one
//! device or, mirrored, on several.
//!
//! ```text
//!  operation ─► record ─► pending ─► frame of the log (commit: data flushed before, frame flushed after) ─► durable
//!                                                                                   │
//!  checkpoint k: all of the namespace, from the place in the log where it began ────┘ mount: newest checkpoint + log
//! ```
//!
//! Invariants:
//! 1. A frame is written only when the frame before it is durable: the readable part of the log is a prefix of it.
//! 2. Data written before a record was made are durable before the frame with the record is written.
//! 3. A checkpoint is valid only once every record whose changes it may include is durable.
//! 4. Room in the log that a checkpoint may need at its end is reserved and not given to operations.

pub mod checkpoint;
pub mod checksums;
pub mod log;
pub mod mirror;

pub use self::checksums::Checksums;
pub use self::log::{Log, LogPlace, Record};
pub use self::mirror::Mirror;
