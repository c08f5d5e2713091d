//! Media: flat arrays of bytes that images lie on. One file for each kind.
//!
//! - [`memory`]: memory, allocated on the first write;
//! - [`mod@file`]: a sparse file, locked while it is open; [`host_file`] holds facts about that file, `host_reserve`
//!   the space reserved for it;
//! - [`crashing`]: records which writes are durable, and simulates power cuts;
//! - [`faulty`]: wraps a medium and fails on schedule or at random;
//! - [`shared`]: shares a medium between several owners;
//! - `deferred`: wraps a medium and buffers contents that must follow a flush;
//! - `fail_stop`: wraps a medium and refuses all writes after the first failed flush;
//! - [`overlay`]: wraps a medium, keeps all writes in memory and leaves the wrapped medium unchanged.
//!
//! Invariants:
//! 1. Bytes that were never written read as zeros, also past the end.
//! 2. The pieces of one [`Media::write_together`] may be lost or torn by a power cut. While the power is on, no other
//!    write comes between them.
//! 3. Before a [`Media::flush`] returns, no write since the previous flush is certainly durable; after it all are. The
//!    opener of the medium chooses whether "durable" means surviving this process or the host. After a [`Media::sync`]
//!    all writes survive a crash of the host.
//! 4. Nobody changes lent bytes ([`Media::lend`]) as long as the medium keeps them.

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

/// A flat array of bytes that can be read, written and flushed, such as a file. Bytes that were never written read as
/// zeros.
pub trait Media: Send + fmt::Debug {
    /// Returns the length in bytes: the end of the highest byte written so far; 0 if none was.
    fn len(&self) -> u64;

    /// Returns whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the bytes from byte `offset` on. Bytes that were never written, also those past the end, read
    /// as zeros.
    ///
    /// # Errors
    /// The medium fails, or was truncated while in use.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Announces reads of these pieces, as (offset, length) in bytes. This is only advice: a medium may start to fetch
    /// the pieces, or do nothing.
    fn will_read(&mut self, _pieces: &mut dyn Iterator<Item = (u64, usize)>) {}

    /// Lends these blocks of memory to the medium until the next call of `lend`. If the data of a write lies in a lent
    /// block, a medium in memory may keep a reference to that block instead of a copy. The lender must not change the
    /// block meanwhile.
    fn lend(&mut self, _blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {}

    /// Removes and returns a lent block that the medium has stopped using since the latest call of [`Media::lend`], or
    /// `None` if there is none. The contents of the block are undefined.
    fn reclaim(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Writes `from` at byte `offset`, and extends the medium if needed. The data may be lost or torn by a power cut
    /// until the next [`Media::flush`].
    ///
    /// # Errors
    /// The medium fails; a part of the data may have been written.
    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()>;

    /// Writes several pieces, as (offset in bytes, data), in the given order; later pieces overwrite earlier ones. No
    /// other write comes between them, but a power cut may keep some pieces and lose others.
    ///
    /// # Errors
    /// The medium fails; some of the pieces may have been written.
    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        pieces.iter().try_for_each(|(offset, from)| self.write_at(*offset, from))
    }

    /// Makes all writes so far durable.
    ///
    /// # Errors
    /// The medium fails; any write since the previous flush may then be lost.
    fn flush(&mut self) -> io::Result<()>;

    /// Returns the unit of atomic writes in bytes: a power cut leaves each aligned piece of this size either old or
    /// new, never mixed. The default, 512, holds for any disk.
    fn tear_bytes(&self) -> u64 {
        512
    }

    /// Returns whether [`Media::flush`] waits for a disk and is therefore slow. The default is false.
    fn flush_waits(&self) -> bool {
        false
    }

    /// Makes all writes so far survive a crash of the host, also on media whose [`Media::flush`] does not. The default
    /// is a flush.
    ///
    /// # Errors
    /// The medium fails.
    fn sync(&mut self) -> io::Result<()> {
        self.flush()
    }

    /// Drops cached data that is not waiting to be written, so that later reads return the data on the medium. After a
    /// failed flush, the cache may hold data that will never be written. The default does nothing.
    fn forget_cached(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the file of the host in which the medium lies, or `None` if it lies in no file.
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

/// Length in bytes below which written zeros are not treated apart: a block of the host's file systems.
const ZEROS_BYTES_LEAST: usize = 4096;

/// Returns whether `bytes` are zeros, and enough of them to leave room for.
fn are_zeros(bytes: &[u8]) -> bool {
    const PART: usize = 64;
    let (parts, rest) = bytes.as_chunks::<PART>();
    bytes.len() >= ZEROS_BYTES_LEAST
        && parts.iter().all(|part| *part == [0; PART])
        && rest.iter().all(|byte| *byte == 0)
}
