//! What is asked before anything is written: who uses the target, and what it holds.
//!
//! ```text
//!  open_for_writing(path) ─► Survey::of(file) ─► refusal(force)? ─┬─ None ─► shown, asked on a terminal ─► written through `file`
//!                                                                  └─ InUse, Holds ─► an error; the target is as it was
//!  an output (report, table, trace) ─► check_output(path, inputs) ─► written beside, renamed
//! ```
//!
//! Invariants:
//! 1. Nothing in this crate writes.
//! 2. A target in use is refused, whatever the user allows ([`Refusal::InUse`]).
//! 3. A target with contents is refused unless the user allows that they are replaced ([`Refusal::Holds`]).
//! 4. The descriptor that is surveyed is the one that is written.

pub mod contents;
pub mod output;
pub mod signatures;
pub mod survey;
pub mod usage;

use std::io;

pub use contents::Contents;
pub use output::{OutputError, check_output};
pub use survey::{Refusal, Survey, open_for_writing};

/// Targets are read in blocks of this size, which every drive takes.
pub const BLOCK_BYTES: u64 = 4096;

/// A target that can be read.
pub trait Peek {
    /// Returns the size in bytes.
    fn len(&self) -> u64;

    /// Reads `into.len()` bytes from `offset`: whole blocks of [`BLOCK_BYTES`], except for a last one that the end cuts
    /// short.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Returns whether the size is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes in memory.
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

/// A file or block device, through the descriptor that is open.
impl Peek for std::fs::File {
    fn len(&self) -> u64 {
        let mut file = self;
        // A target whose size is unknown counts as empty: then nothing is found in it, and writing fails as well.
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap_or(0)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, into, offset)
    }
}
