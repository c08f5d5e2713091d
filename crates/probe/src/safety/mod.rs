//! Before a test writes: is anyone using the target, and what lies in it?

pub mod signatures;
pub mod usage;

use std::io;

/// What is looked at is read in such blocks, which every drive takes.
pub const BLOCK_BYTES: u64 = 4096;

/// Something that can be looked into.
pub trait Peek {
    /// Bytes there are.
    fn len(&self) -> u64;

    /// Reads `into.len()` bytes from `offset`: whole blocks of [`BLOCK_BYTES`], but for a last one that the end cuts
    /// short.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Whether there is nothing to look into.
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
