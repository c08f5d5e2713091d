//! The image format: how the contents and the metadata of a drive are stored on a medium.
//!
//! - [`layout`]: where each part of the image lies;
//! - [`header`]: description of the drive, written once;
//! - [`state`]: era, valid journal and number of slots, rewritten at every barrier;
//! - `directory`: which slot holds which chunk;
//! - `sectors`: for every sector, whether it was written, and the checksum of its contents;
//! - [`space`]: chunks, slots and barriers;
//! - [`transfer`]: reads and writes of sectors;
//! - `opening`: opens a space, and resolves interrupted writes;
//! - `witnesses`: completes slots whose assignment was interrupted;
//! - [`scrub`]: checks a space and repairs its metadata;
//! - [`journal`]: records of the layer's map and of the store;
//! - `file_mark`: the host file in which the image was last opened for writing;
//! - [`regions`]: which bytes are in use, and for what;
//! - [`bounds`]: limits on memory and on the size of batches.
//!
//! Every piece has a checksum over the image's UUID, its place and its contents. Every fact has a witness, a second
//! place that proves it:
//!
//! | fact | its witness |
//! |---|---|
//! | header, state | two more copies, far apart |
//! | directory's entry of a slot | the slot's own header; the blocks of its sector table; the count of slots in the state |
//! | journal record | its copy in another region; the count of records in the state |
//! | contents of a sector | the checksum in its sector table |
//! | sector table | written before its slot is assigned, so a blank table is not mistaken for "never written" |
//!
//! Invariants:
//! 1. A slot belongs to one chunk. Slots are assigned in order, and only below the durable slot mark of the state.
//! 2. A chunk without a slot reads as zeros.
//! 3. The header never changes once it is written.
//! 4. A medium may keep any subset of the 512-byte blocks written since its last flush. After that, durable data can
//!    still be read, and each sector that was not durable is old or new.

pub mod bounds;
pub(crate) mod checksum;
mod digests;
mod directory;
mod file_mark;
pub mod header;
pub mod journal;
pub mod layout;
mod opening;
pub mod regions;
mod restore;
mod scratch;
pub mod scrub;
mod sectors;
pub mod space;
pub mod state;
pub mod transfer;
mod upgrade;
mod witnesses;

pub use bounds::Bounds;
pub use header::{Header, MAGIC};
pub use journal::Journal;
pub use layout::Region;
pub use space::Space;

#[cfg(test)]
mod tests;
