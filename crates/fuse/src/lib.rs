//! An Imbrex file system served to the kernel over FUSE.
//!
//! ```text
//!   kernel ─► session's thread ─► a task of the core ─► reply
//!              [`adapter`]         run there where the core is free, otherwise by the thread that mounted: [`requests`]
//! ```
//!
//! Invariants:
//! 1. Requests become tasks in the order in which the kernel sent them. Each is answered once.
//! 2. Only this server changes the file system, so the kernel's caches (names, attributes, contents) stay valid.
//!    Attributes that the core changes by itself are excluded: the kernel must not cache them (set-id bits removed by a
//!    write).
//! 3. When the kernel unmounts the directory, or a stop is requested, all data are written before the program ends.

#![cfg(target_os = "linux")]

mod access_list;
mod adapter;
mod attribute_name;
mod context;
mod convert;
mod groups;
mod mount;
mod operations;
mod read_ahead;
mod requests;

pub use context::{Answers, ORDER_ATTRIBUTE, OUTCOME_ATTRIBUTE, STATUS_ATTRIBUTE, SYNC_ATTRIBUTE};
pub use mount::{FLAGS, Mount, MountWords, share_memory};
