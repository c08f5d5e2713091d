//! A medium that fails: read errors, write errors, short writes and delays, over any other medium. On schedule (the
//! n-th operation) or at random from a seed.

use std::io;
use std::time::Duration;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use super::Media;

/// A write that ends early ends between sectors: file systems place whole blocks.
const SECTOR_BYTES: usize = 512;

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A read gives nothing.
    ReadError,
    /// A write leaves nothing.
    WriteError,
    /// A write leaves the first half of its sectors, and says so.
    ShortWrite,
    /// The host's disk is full.
    NoSpace,
    /// It works, after a while.
    Delay(Duration),
}

/// When it goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At the operation of this number, counted from 0 over those that the failure concerns.
    Operation(u64),
    /// At that operation and ever after.
    From(u64),
    /// Once in so many, at random.
    OnceIn(u64),
}

/// One failure planned.
#[derive(Clone, Debug)]
struct Planned {
    failure: Failure,
    when: When,
    seen: u64,
}

/// The medium.
#[derive(Debug)]
pub struct Faulty<M> {
    inner: M,
    random: Xoshiro256StarStar,
    planned: Vec<Planned>,
}

impl<M: Media> Faulty<M> {
    /// `inner`, with nothing wrong yet; `seed` is for failures at random.
    pub fn new(inner: M, seed: u64) -> Faulty<M> {
        Faulty { inner, random: Xoshiro256StarStar::seed_from_u64(seed), planned: Vec::new() }
    }

    /// The same with `failure` to come.
    pub fn with(mut self, failure: Failure, when: When) -> Faulty<M> {
        self.plan(failure, when);
        self
    }

    /// `failure` is to come, counted from now on.
    pub fn plan(&mut self, failure: Failure, when: When) {
        self.planned.push(Planned { failure, when, seen: 0 });
    }

    /// What strikes the operation in hand.
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
        match self.strike(|failure| failure != Failure::ReadError) {
            Some(Failure::Delay(time)) => std::thread::sleep(time),
            Some(Failure::NoSpace) => return Err(io::ErrorKind::StorageFull.into()),
            Some(Failure::ShortWrite) => {
                self.inner.write_at(offset, &from[..from.len() / 2 / SECTOR_BYTES * SECTOR_BYTES])?;
                return Err(io::Error::new(io::ErrorKind::WriteZero, format!("planned short write at byte {offset}")));
            }
            Some(_) => return Err(io::Error::other(format!("planned write error at byte {offset}"))),
            None => {}
        }
        self.inner.write_at(offset, from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
