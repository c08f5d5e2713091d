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

/// A flat array of bytes.
pub trait Media: Send + fmt::Debug {
    /// Returns the length in bytes, up to the end of the last written byte.
    fn len(&self) -> u64;

    /// Returns whether nothing was ever written.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the bytes from `offset` on.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Announces reads of these pieces, as (offset, length). A medium whose reads take time may fetch them together.
    fn will_read(&mut self, _pieces: &mut dyn Iterator<Item = (u64, usize)>) {}

    /// Lends blocks to the medium until the next call: written data may lie in them, and a medium in memory may keep
    /// them instead of a copy.
    fn lend(&mut self, _blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {}

    /// Returns a lent block that the medium has stopped using since the latest call of [`Media::lend`], if any. Its
    /// contents are undefined.
    fn reclaim(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Writes `from` at `offset`, as one operation.
    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()>;

    /// Writes several pieces, as (offset, bytes), in order and as one operation.
    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        pieces.iter().try_for_each(|(offset, from)| self.write_at(*offset, from))
    }

    /// Makes all writes so far durable.
    fn flush(&mut self) -> io::Result<()>;

    /// Returns the size, in bytes, of the aligned pieces that a power cut leaves old or new, never half: 512 on any
    /// disk.
    fn tear_bytes(&self) -> u64 {
        512
    }

    /// Returns whether a flush waits for a disk. If so, buffering writes to save flushes pays.
    fn flush_waits(&self) -> bool {
        false
    }

    /// Makes all writes so far survive a crash of the host, even if a flush does not. For a clean shutdown.
    fn sync(&mut self) -> io::Result<()> {
        self.flush()
    }

    /// Drops cached data that can be read again, so the next reads return data that is on the medium or waits to be
    /// written there. After a failed flush the cache may hold data that the medium never gets.
    fn forget_cached(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the host's file in which the medium lies, if any.
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
