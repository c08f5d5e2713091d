//! A medium with several owners. A lock makes each operation exclusive.

use std::io;
use std::sync::{Arc, Mutex};

use super::Media;

/// A handle of a medium. All clones of the handle use the same medium, one operation at a time.
#[derive(Debug)]
pub struct Shared<M>(Arc<Mutex<M>>);

impl<M> Clone for Shared<M> {
    fn clone(&self) -> Shared<M> {
        Shared(self.0.clone())
    }
}

impl<M> Shared<M> {
    /// Returns the first handle of `medium`; clones of this handle share the medium.
    pub fn new(medium: M) -> Shared<M> {
        Shared(Arc::new(Mutex::new(medium)))
    }

    /// Locks the medium, calls `work` with it, and returns the result of `work`.
    ///
    /// # Panics
    /// If another thread panicked while it held the lock.
    pub fn with<T>(&self, work: impl FnOnce(&mut M) -> T) -> T {
        work(&mut self.0.lock().expect("nobody panics with it"))
    }
}

impl<M: Media> Media for Shared<M> {
    fn len(&self) -> u64 {
        self.with(|medium| medium.len())
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.with(|medium| medium.read_at(offset, into))
    }

    fn will_read(&mut self, pieces: &mut dyn Iterator<Item = (u64, usize)>) {
        self.with(|medium| medium.will_read(pieces));
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.with(|medium| medium.write_at(offset, from))
    }

    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        self.with(|medium| medium.write_together(pieces))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(Media::flush)
    }

    fn flush_waits(&self) -> bool {
        self.with(|medium| medium.flush_waits())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.with(Media::sync)
    }

    fn forget_cached(&mut self) -> io::Result<()> {
        self.with(Media::forget_cached)
    }
}
