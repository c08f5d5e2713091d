//! A wrapper that makes a medium fail: read errors, write errors, short writes, failed flushes and delays. Failures
//! occur on schedule (at the n-th operation) or at random from a seed.
//!
//! The wrapper simulates the page cache of a kernel: written data lies in dirty pages until a flush. A failed flush
//! writes some of the dirty pages, drawn at random, and loses the others: they count as clean, and no later flush
//! writes them. Reads of lost pages return the written data until the cache is dropped ([`Pages::Kept`]), or the data
//! on the disk ([`Pages::Dropped`]).
//!
//! Does not model: dirty pages that are written before a flush, and intermediate contents of a page.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use super::Media;
use super::host_file::HostFile;

/// A short write ends between sectors of this size, because file systems place whole blocks.
const SECTOR_BYTES: usize = 512;
/// Size of a page, which a flush writes or loses as a whole.
const PAGE_BYTES: usize = 4096;

/// Result of reading pages that a failed flush lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// Reads return the written data until [`Media::forget_cached`] or a power cut; then the data that the disk had
    /// before.
    Kept,
    /// Reads return the data that the disk had before, at once.
    Dropped,
}

/// Kind of a planned failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A read fails with an error.
    ReadError,
    /// A write fails and writes nothing.
    WriteError,
    /// A write fails after it has written half of its 512-byte sectors, rounded down.
    ShortWrite,
    /// A write fails because the host's disk is full, and writes nothing.
    NoSpace,
    /// A flush fails, and some or all of the pages written since the last flush are lost, chosen at random.
    FlushError(Pages),
    /// A read or write succeeds after this delay in real time.
    Delay(Duration),
}

/// Selects the operations at which a planned failure occurs. Only operations that the failure can affect are counted,
/// from the moment at which it was planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// Only at the operation of this number, counted from 0.
    Operation(u64),
    /// At the operation of this number, counted from 0, and at all later ones.
    From(u64),
    /// At random, with probability 1 / this number at each operation; 0 counts as 1.
    OnceIn(u64),
}

/// A planned failure, with the number of operations that it concerned so far.
#[derive(Clone, Debug)]
struct Planned {
    failure: Failure,
    when: When,
    seen: u64,
}

/// A wrapper of a medium that fails operations as planned, and simulates the page cache of a kernel with pages of 4096
/// bytes.
#[derive(Debug)]
pub struct Faulty<M> {
    inner: M,
    random: Xoshiro256StarStar,
    planned: Vec<Planned>,
    /// For each page written since the last flush, by page number: its contents on the disk.
    dirty: BTreeMap<u64, Box<[u8]>>,
    /// For each page that a failed flush lost and that is still cached: its contents on the disk.
    lost: BTreeMap<u64, Box<[u8]>>,
    writes: u64,
}

impl<M: Media> Faulty<M> {
    /// Wraps `inner`, without any planned failure. `seed` initializes the random numbers of [`When::OnceIn`] and of
    /// failed flushes.
    pub fn new(inner: M, seed: u64) -> Faulty<M> {
        let random = Xoshiro256StarStar::seed_from_u64(seed);
        Faulty { inner, random, planned: Vec::new(), dirty: BTreeMap::new(), lost: BTreeMap::new(), writes: 0 }
    }

    /// Returns the number of writes so far, including those that failed. Each piece of a [`Media::write_together`]
    /// counts.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Cancels all planned failures. Pages that a failed flush has lost stay lost.
    pub fn plan_nothing(&mut self) {
        self.planned.clear();
    }

    /// Simulates a power cut. For each 512-byte sector of the pages written since the last flush, even a failed one,
    /// `survives` returns whether the sector reached the disk; the others get their previous contents back. Its
    /// argument is the number of the sector, counted from 0 at the start of the medium. Pages that a failed flush lost
    /// also get their previous contents back.
    ///
    /// # Errors
    /// The wrapped medium fails.
    pub fn power_cut(&mut self, mut survives: impl FnMut(u64) -> bool) -> io::Result<()> {
        for (page, old) in std::mem::take(&mut self.dirty) {
            for (index, sector) in old.chunks_exact(SECTOR_BYTES).enumerate() {
                let number = page * (PAGE_BYTES / SECTOR_BYTES) as u64 + index as u64;
                if !survives(number) {
                    self.inner.write_at(number * SECTOR_BYTES as u64, sector)?;
                }
            }
        }
        self.forget_cached()
    }

    /// Saves the contents on the disk of the pages that a write of `length` bytes at `offset` makes dirty.
    fn make_dirty(&mut self, offset: u64, length: usize) -> io::Result<()> {
        let page_bytes = PAGE_BYTES as u64;
        for page in offset / page_bytes..(offset + length as u64).div_ceil(page_bytes) {
            if self.dirty.contains_key(&page) {
                continue;
            }
            let old = match self.lost.remove(&page) {
                Some(old) => old,
                None => {
                    let mut old = vec![0; PAGE_BYTES].into_boxed_slice();
                    self.inner.read_at(page * page_bytes, &mut old)?;
                    old
                }
            };
            self.dirty.insert(page, old);
        }
        Ok(())
    }

    /// Loses dirty pages, as a failed flush does: all of them, about half, or about one in eight.
    fn lose_dirty(&mut self, pages: Pages) -> io::Result<()> {
        let eighths = [8, 4, 1][(self.random.next_u64() % 3) as usize];
        for (page, old) in std::mem::take(&mut self.dirty) {
            if self.random.next_u64() % 8 < eighths {
                self.lost.insert(page, old);
            }
        }
        if pages == Pages::Dropped { self.forget_cached() } else { Ok(()) }
    }

    /// Returns this medium with `failure` planned in addition to earlier ones, at the operations that `when` selects,
    /// among the operations from now on that the failure can affect.
    pub fn with(mut self, failure: Failure, when: When) -> Faulty<M> {
        self.plan(failure, when);
        self
    }

    /// Plans `failure` in addition to the failures planned before, at the operations that `when` selects. Operations
    /// are counted from now, and only those that the failure can affect. If several failures are due at one operation,
    /// the one planned first occurs.
    pub fn plan(&mut self, failure: Failure, when: When) {
        self.planned.push(Planned { failure, when, seen: 0 });
    }

    /// Counts the current operation for the planned failures that `concerns` selects. Returns the failure that occurs
    /// now, if any.
    fn strike(&mut self, concerns: impl Fn(Failure) -> bool) -> Option<Failure> {
        let mut struck = None;
        for planned in self.planned.iter_mut().filter(|planned| concerns(planned.failure)) {
            let number = planned.seen;
            planned.seen += 1;
            let now = match planned.when {
                When::Operation(at) => number == at,
                When::From(at) => number >= at,
                When::OnceIn(count) => self.random.next_u64().is_multiple_of(count.max(1)),
            };
            if now && struck.is_none() {
                struck = Some(planned.failure);
            }
        }
        struck
    }
}

impl<M: Media> Media for Faulty<M> {
    fn host_file(&self) -> Option<Arc<HostFile>> {
        self.inner.host_file()
    }

    fn flush_waits(&self) -> bool {
        self.inner.flush_waits()
    }

    fn tear_bytes(&self) -> u64 {
        self.inner.tear_bytes()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        match self.strike(|failure| matches!(failure, Failure::ReadError | Failure::Delay(_))) {
            Some(Failure::Delay(time)) => std::thread::sleep(time),
            Some(_) => return Err(io::Error::other(format!("planned read error at byte {offset}"))),
            None => {}
        }
        self.inner.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.writes += 1;
        match self.strike(|failure| !matches!(failure, Failure::ReadError | Failure::FlushError(_))) {
            Some(Failure::Delay(time)) => std::thread::sleep(time),
            Some(Failure::NoSpace) => return Err(io::ErrorKind::StorageFull.into()),
            Some(Failure::ShortWrite) => {
                self.make_dirty(offset, from.len())?;
                self.inner.write_at(offset, &from[..from.len() / 2 / SECTOR_BYTES * SECTOR_BYTES])?;
                return Err(io::Error::new(io::ErrorKind::WriteZero, format!("planned short write at byte {offset}")));
            }
            Some(_) => return Err(io::Error::other(format!("planned write error at byte {offset}"))),
            None => {}
        }
        self.make_dirty(offset, from.len())?;
        self.inner.write_at(offset, from)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(Failure::FlushError(pages)) = self.strike(|failure| matches!(failure, Failure::FlushError(_))) {
            self.lose_dirty(pages)?;
            return Err(io::Error::other("planned flush error"));
        }
        self.dirty.clear();
        self.inner.flush()
    }

    fn forget_cached(&mut self) -> io::Result<()> {
        for (page, old) in std::mem::take(&mut self.lost) {
            self.inner.write_at(page * PAGE_BYTES as u64, &old)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::memory::Memory;

    fn read(media: &mut Faulty<Memory>, at: u64) -> u8 {
        let mut byte = [0];
        media.read_at(at, &mut byte).expect("no read fails");
        byte[0]
    }

    #[test]
    fn a_failed_flush_loses_pages_at_once_or_when_they_are_forgotten() {
        for pages in [Pages::Kept, Pages::Dropped] {
            let (mut lost, mut written) = (0, 0);
            for seed in 0..20 {
                let mut media = Faulty::new(Memory::new(), seed);
                media.write_at(0, &[1; 16 * PAGE_BYTES]).expect("no write fails");
                media.flush().expect("nothing fails yet");
                media.plan(Failure::FlushError(pages), When::Operation(0));
                media.write_at(0, &[2; 16 * PAGE_BYTES]).expect("no write fails");
                media.flush().expect_err("it was planned");
                media.flush().expect("nothing is retried");
                let places = || (0..16).map(|page| page * PAGE_BYTES as u64 + 9);
                assert!(pages == Pages::Dropped || places().all(|at| read(&mut media, at) == 2));
                media.forget_cached().expect("no write fails");
                for at in places() {
                    let found = read(&mut media, at);
                    (lost, written) = (lost + u32::from(found == 1), written + u32::from(found == 2));
                }
            }
            assert!(
                lost > 50 && written > 50 && lost + written == 20 * 16,
                "{pages:?}: {lost} lost, {written} written"
            );
        }
    }

    #[test]
    fn a_page_that_was_lost_is_written_whole_once_it_is_written_again() {
        let mut media = Faulty::new(Memory::new(), 0).with(Failure::FlushError(Pages::Kept), When::From(0));
        // Repeated until every page was lost at least once.
        for _ in 0..100 {
            media.write_at(0, &[1; PAGE_BYTES]).expect("no write fails");
            media.flush().expect_err("it was planned");
        }
        media.plan_nothing();
        media.write_at(100, &[2]).expect("no write fails");
        media.flush().expect("nothing fails any more");
        media.power_cut(|_| false).expect("no write fails");
        assert_eq!((read(&mut media, 99), read(&mut media, 100)), (1, 2));
    }

    #[test]
    fn a_power_cut_takes_sectors_of_dirty_pages() {
        let mut media = Faulty::new(Memory::new(), 0);
        media.write_at(0, &[1; PAGE_BYTES]).expect("no write fails");
        media.flush().expect("nothing fails");
        media.write_at(0, &[2; PAGE_BYTES]).expect("no write fails");
        media.power_cut(|sector| sector % 2 == 0).expect("no write fails");
        let found: Vec<u8> = (0..4).map(|sector| read(&mut media, sector * 512)).collect();
        assert_eq!(found, [2, 1, 2, 1]);
    }
}
