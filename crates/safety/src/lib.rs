//! Checks before anything is written to a target: its users and its contents.
//!
//! ```text
//!  open_for_writing(path) ─► Survey::of(file) ─► refusal(force)? ─┬─ None ─► shown, asked on a terminal ─► written through `file`
//!                                                                  └─ InUse, Holds ─► an error; the target is as it was
//!  an output (report, table, trace) ─► check_output(path, inputs) ─► written beside, renamed
//! ```
//!
//! Invariants:
//! 1. Nothing in this crate writes to a target.
//! 2. A target in use is refused, with every option of the user ([`Refusal::InUse`]).
//! 3. A target with contents is refused unless the user allows to replace them ([`Refusal::Holds`]).
//! 4. The descriptor that is surveyed is the one that is written to.

pub mod contents;
pub mod output;
pub mod signatures;
pub mod survey;
pub mod usage;

use std::io;

pub use contents::Contents;
pub use output::{OutputError, check_output};
pub use survey::{Refusal, Survey, open_for_writing};

/// Size and alignment of the blocks in which targets are read, in bytes. Every drive accepts reads of this size.
pub const BLOCK_BYTES: u64 = 4096;

/// A file or drive that can be read, to find its contents before it is overwritten.
pub trait Peek {
    /// Returns the size of the target in bytes; 0 if the size is unknown.
    fn len(&self) -> u64;

    /// Reads exactly `into.len()` bytes from byte `offset` on, which must lie within the target. This crate reads one
    /// block of [`BLOCK_BYTES`] at a time, aligned; the last block is shorter if the end of the target cuts it.
    ///
    /// # Errors
    ///
    /// The error of the target, if any of the bytes cannot be read.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Returns whether the size of the target is zero or unknown.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A target in memory.
impl Peek for Vec<u8> {
    fn len(&self) -> u64 {
        Vec::len(self) as u64
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = offset as usize;
        into.copy_from_slice(&self[from..from + into.len()]);
        Ok(())
    }
}

/// A file or block device, read through the open descriptor.
impl Peek for std::fs::File {
    fn len(&self) -> u64 {
        let mut file = self;
        // A target of unknown size counts as empty: nothing is found in it, and a write to it fails as well.
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap_or(0)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, into, offset)
    }
}
