//! The image: how a drive lies on a medium.
//!
//! - [`layout`]: where everything lies;
//! - [`header`]: what the drive is, written once;
//! - [`state`]: the few facts that all others hang on;
//! - `directory`: which slot holds which chunk;
//! - `sectors`: what every sector is, with the checksum of its contents;
//! - [`space`]: chunks, slots, barriers; [`transfer`] reads and writes sectors; `opening` opens it, `witnesses` makes slots
//!   whole that a kill left half given, [`scrub`] checks it;
//! - [`journal`]: records of the layer's map and of the store;
//! - `file_mark`: in which file of the host it was opened last;
//! - [`regions`]: which bytes are in use, and for what;
//! - [`bounds`]: how much of it is kept in memory and done at once.
//!
//! Everything bears a checksum over image, place and contents, and every fact has a witness in a second place:
//!
//! | what | its witness |
//! |---|---|
//! | header, state | two more copies, far apart |
//! | directory's entry of a slot | the slot's own header; the blocks of its sector table; the count of slots in the state |
//! | journal record | its copy in another region; the count of records in the state |
//! | contents of a sector | the checksum in its sector table |
//! | sector table | prepared before its slot is given, so a blank one is not taken for "never written" |
//!
//! Invariants:
//! 1. A slot belongs to one chunk. Slots are given out in order, never past the durable mark.
//! 2. A chunk without a slot reads as zeros.
//! 3. The header never changes once it is written.
//! 4. A medium may keep any subset of the 512-byte blocks written since its last flush: what was durable can be read
//!    after that, and what was not is old or new, sector by sector.

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
