//! A write-back buffer for the contents of sectors. A sector's line in the sector table must be durable before its
//! contents are written. One flush makes the lines of all buffered contents durable, so the buffer saves a flush per
//! write.
//!
//! ```text
//!   lines ─► medium, at once        contents ─► buffer ─► flush of the medium (lines are durable) ─► medium
//! ```
//!
//! Media with cheap flushes ([`Media::flush_waits`] is false) bypass the buffer.
//!
//! Invariants:
//! 1. Buffered contents reach the medium in the order of the writes, after a flush that followed the last of these writes.
//! 2. Reads return buffered contents. [`Media::flush`] empties the buffer.
//! 3. A power cut loses the buffer, like any write since the last flush.

use std::io;
use std::sync::Arc;

use super::Media;
use super::fail_stop::FailStop;
use super::host_file::HostFile;

/// A medium with a write-back buffer for contents.
#[derive(Debug)]
pub(crate) struct Deferred<M> {
    below: FailStop<M>,
    held: Vec<(u64, Vec<u8>)>,
    /// Whether contents written from now on must wait for a flush, even if the buffer is empty.
    owes_flush: bool,
    held_bytes: usize,
    held_bytes_max: usize,
}

impl<M: Media> Deferred<M> {
    /// Wraps `below`. The buffer holds at most `held_bytes_max` bytes and one write more.
    pub(crate) fn new(below: M, held_bytes_max: usize) -> Deferred<M> {
        Deferred { below: FailStop::new(below), held: Vec::new(), owes_flush: false, held_bytes: 0, held_bytes_max }
    }

    /// Returns the wrapped medium. Buffered contents are not on it.
    pub(crate) fn below(&self) -> &M {
        self.below.below()
    }

    /// Returns the wrapped medium, for tests that cut or damage it.
    pub(crate) fn below_mut(&mut self) -> &mut M {
        self.below.below_mut()
    }

    /// Unwraps the medium and drops buffered contents.
    pub(crate) fn into_below(self) -> M {
        self.below.into_below()
    }

    /// Writes `pieces` after all earlier writes are durable. Later contents are written after that flush too, also if
    /// `pieces` is empty.
    pub(crate) fn write_after_flush(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        if self.below.flush_waits() {
            self.owes_flush = true;
            return self.hold(pieces);
        }
        self.flush()?;
        if pieces.is_empty() { Ok(()) } else { self.below.write_together(pieces) }
    }

    /// Writes `pieces` after the buffered contents, which may be of the same sectors. This write needs no flush of its
    /// own.
    pub(crate) fn write_in_order(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        if self.owes_flush { self.hold(pieces) } else { self.below.write_together(pieces) }
    }

    fn hold(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        self.held.extend(pieces.iter().map(|&(at, bytes)| (at, bytes.to_vec())));
        self.held_bytes += pieces.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        if self.held_bytes > self.held_bytes_max { self.let_go() } else { Ok(()) }
    }

    /// Flushes the medium, then writes the buffered contents.
    fn let_go(&mut self) -> io::Result<()> {
        if !self.owes_flush {
            return Ok(());
        }
        self.below.flush()?;
        self.owes_flush = false;
        if self.held.is_empty() {
            return Ok(());
        }
        let pieces: Vec<(u64, &[u8])> = self.held.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
        self.below.write_together(&pieces)?;
        self.held.clear();
        self.held_bytes = 0;
        Ok(())
    }
}

impl<M: Media> Media for Deferred<M> {
    fn len(&self) -> u64 {
        self.below.len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.below.read_at(offset, into)?;
        let end = offset + into.len() as u64;
        for (at, bytes) in &self.held {
            let (first, last) = ((*at).max(offset), (at + bytes.len() as u64).min(end));
            if first < last {
                let part = &bytes[(first - at) as usize..(last - at) as usize];
                into[(first - offset) as usize..(last - offset) as usize].copy_from_slice(part);
            }
        }
        Ok(())
    }

    fn will_read(&mut self, pieces: &mut dyn Iterator<Item = (u64, usize)>) {
        self.below.will_read(pieces);
    }

    fn lend(&mut self, blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {
        self.below.lend(blocks);
    }

    fn reclaim(&mut self) -> Option<Vec<u8>> {
        self.below.reclaim()
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.below.write_at(offset, from)
    }

    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        self.below.write_together(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.let_go()?;
        self.below.flush()
    }

    fn tear_bytes(&self) -> u64 {
        self.below.tear_bytes()
    }

    fn flush_waits(&self) -> bool {
        self.below.flush_waits()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.let_go()?;
        self.below.sync()
    }

    fn forget_cached(&mut self) -> io::Result<()> {
        self.below.forget_cached()
    }

    fn host_file(&self) -> Option<Arc<HostFile>> {
        self.below.host_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::crashing::Crashing;
    use crate::media::memory::Memory;

    const SECTOR: usize = 512;

    fn deferred(held_bytes_max: usize) -> Deferred<Crashing> {
        Deferred::new(Crashing::new(Memory::new(), SECTOR as u32).with_waiting_flushes(), held_bytes_max)
    }

    fn byte_at(medium: &mut impl Media, at: u64) -> u8 {
        let mut byte = [0];
        medium.read_at(at, &mut byte).expect("it is memory");
        byte[0]
    }

    #[test]
    fn contents_reach_the_medium_behind_a_flush_and_are_read_before() {
        let mut medium = deferred(1 << 20);
        medium.write_at(0, &[1; SECTOR]).expect("it is memory");
        medium.write_after_flush(&[(1000, &[2; SECTOR])]).expect("it is memory");
        medium.write_in_order(&[(1100, &[3; SECTOR])]).expect("it is memory");
        let on_medium = medium.below().whole().clone();
        assert_eq!([0, 1000, 1100].map(|at| byte_at(&mut on_medium.clone(), at)), [1, 0, 0], "both are held");
        assert_eq!([0, 1000, 1099, 1100, 1611, 1612].map(|at| byte_at(&mut medium, at)), [1, 2, 2, 3, 3, 0]);
        medium.flush().expect("it is memory");
        assert_eq!(medium.below().acts(), 0, "all is durable");
        let mut left = medium.into_below().cut(|_, _| false);
        assert_eq!([0, 1000, 1099, 1100, 1611, 1612].map(|at| byte_at(&mut left, at)), [1, 2, 2, 3, 3, 0]);
    }

    #[test]
    fn what_follows_an_order_without_contents_waits_too() {
        let mut medium = deferred(1 << 20);
        medium.write_at(0, &[1; SECTOR]).expect("it is memory");
        medium.write_after_flush(&[]).expect("it is memory");
        medium.write_in_order(&[(1024, &[2; SECTOR])]).expect("it is memory");
        assert_eq!(byte_at(&mut medium.below().whole().clone(), 1024), 0, "it is held");
        medium.flush().expect("it is memory");
        medium.write_in_order(&[(2048, &[3; SECTOR])]).expect("it is memory");
        assert_eq!(byte_at(&mut medium.into_below().whole().clone(), 2048), 3, "nothing is owed any more");
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut medium = deferred(2 * SECTOR);
        for number in 0..3 {
            medium.write_at(0, &[number; SECTOR]).expect("it is memory");
            medium.write_after_flush(&[(1024 * u64::from(number + 1), &[9; SECTOR])]).expect("it is memory");
        }
        // The third write exceeded the bound: the lines up to it are durable, and all contents were written after them.
        let mut durable = medium.below().cut(|_, _| false);
        assert_eq!((byte_at(&mut durable, 0), byte_at(&mut durable, 1024)), (2, 0));
        assert_eq!(byte_at(&mut medium.into_below(), 3072), 9);
    }

    #[test]
    fn where_a_flush_waits_for_nothing_nothing_is_held() {
        let mut medium = Deferred::new(Crashing::new(Memory::new(), SECTOR as u32), 1 << 20);
        medium.write_at(0, &[1; SECTOR]).expect("it is memory");
        medium.write_after_flush(&[(1024, &[2; SECTOR])]).expect("it is memory");
        let below = medium.into_below();
        assert_eq!(byte_at(&mut below.cut(|_, _| false), 0), 1, "it was flushed");
        assert_eq!(byte_at(&mut below.cut(|_, _| true), 1024), 2, "it was written");
    }
}
