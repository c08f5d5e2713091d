//! Media: flat runs of bytes below an image. One file a kind.
//!
//! - [`memory`]: in memory, allocated as it is written;
//! - [`mod@file`]: a sparse file, locked while it is open; [`host_file`] is what is known of that file, `host_reserve` the
//!   space that is reserved for it;
//! - [`crashing`]: knows what is durable and what is not, and can be cut;
//! - [`faulty`]: fails on schedule or at random, over any other;
//! - [`shared`]: has several owners;
//! - `deferred`: holds back contents that must follow a flush, over any other;
//! - `fail_stop`: takes nothing more after the first flush that fails, over any other;
//! - [`overlay`]: keeps what is written in memory, over any other, which stays as it is.
//!
//! Invariants:
//! 1. What was never written reads as zeros, past the end too.
//! 2. An act of [`Media::write_together`] may be lost or torn by a power cut, but nothing comes between its parts while
//!    the power is on.
//! 3. Before a [`Media::flush`] returns nothing written is durable for sure; after it everything is. What durable means,
//!    whoever opens the medium may choose; after a [`Media::sync`] all outlives the host.
//! 4. What a medium keeps of what was lent to it ([`Media::lend`]) is never changed by anybody.

pub mod crashing;
pub(crate) mod deferred;
pub(crate) mod fail_stop;
pub mod faulty;
pub mod file;
pub mod host_file;
mod host_reserve;
pub mod memory;
pub(crate) mod new_file;
pub mod overlay;
pub mod shared;

use std::fmt;
use std::io;
use std::sync::Arc;

use self::host_file::HostFile;

/// A run of bytes.
pub trait Media: Send + fmt::Debug {
    /// Bytes up to the end of what was written.
    fn len(&self) -> u64;

    /// Whether nothing was ever written.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` from `offset` on.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// These pieces, offset and length, will be read soon: a medium that takes time over each may fetch them together.
    fn will_read(&mut self, _pieces: &mut dyn Iterator<Item = (u64, usize)>) {}

    /// Until the next call, what is written may lie in these blocks: a medium in memory may keep them instead of a copy.
    fn lend(&mut self, _blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {}

    /// A block that was lent before and that the medium has left since this loan began. What is in it has no meaning.
    fn reclaim(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Puts `from` at `offset`, as one act.
    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()>;

    /// Puts several pieces in their places, in order, as one act.
    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        pieces.iter().try_for_each(|(offset, from)| self.write_at(*offset, from))
    }

    /// Makes all that was written durable.
    fn flush(&mut self) -> io::Result<()>;

    /// Returns the size of the aligned pieces that a cut leaves old or new, never half: 512 bytes on any disk.
    fn tear_bytes(&self) -> u64 {
        512
    }

    /// Returns whether a flush waits for a disk: then few of them are worth holding writes back.
    fn flush_waits(&self) -> bool {
        false
    }

    /// Makes all that was written outlive the host, however far a flush reaches: for a good end.
    fn sync(&mut self) -> io::Result<()> {
        self.flush()
    }

    /// Forgets what is kept of it in memory and could be read again, so that what is read next is on the medium, or waits to be
    /// written there. After a flush that failed the memory may hold what the medium does not, and never will.
    fn forget_cached(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The file of the host in which it lies, if it lies in one.
    fn host_file(&self) -> Option<Arc<HostFile>> {
        None
    }
}

impl Media for Box<dyn Media> {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, into)
    }

    fn will_read(&mut self, pieces: &mut dyn Iterator<Item = (u64, usize)>) {
        (**self).will_read(pieces);
    }

    fn lend(&mut self, blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {
        (**self).lend(blocks);
    }

    fn reclaim(&mut self) -> Option<Vec<u8>> {
        (**self).reclaim()
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        (**self).write_at(offset, from)
    }

    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        (**self).write_together(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }

    fn tear_bytes(&self) -> u64 {
        (**self).tear_bytes()
    }

    fn flush_waits(&self) -> bool {
        (**self).flush_waits()
    }

    fn sync(&mut self) -> io::Result<()> {
        (**self).sync()
    }

    fn forget_cached(&mut self) -> io::Result<()> {
        (**self).forget_cached()
    }

    fn host_file(&self) -> Option<Arc<HostFile>> {
        (**self).host_file()
    }
}
