//! Loads: what applications do to a file system, to age it and to measure it. One file a load.
//!
//! A load asks for everything through [`Files`], so the same one runs on the core in virtual time ([`OnCore`]), where its
//! operations are tasks of the file system's own clock, and on any mounted directory by the wall clock ([`InDirectory`]).
//!
//! Invariants:
//! 1. What a load does next depends on its seed and its own sizes alone, never on a time: two runs with one seed do the
//!    same operations, wherever they run. Where several applications work at once, each has files of its own.
//! 2. A load touches nothing outside the directory it was given, which it makes itself.

pub mod age;
pub mod bench;
pub mod capacity;
mod directory;
mod on_core;
mod page_cache;
pub mod random;

use std::future::Future;

pub use self::directory::{InDirectory, run_now};
pub use self::on_core::OnCore;

/// An operation of a load that was not done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{operation} {path}: {reason}")]
pub struct LoadError {
    /// What was asked: `create`, `write`, …
    pub operation: &'static str,
    /// Of which file.
    pub path: String,
    /// Why it failed, in words.
    pub reason: String,
    /// Whether there was no room for it.
    pub is_no_space: bool,
}

/// A file system as an application sees it. Paths are relative to the directory of the load, names joined with `/`. Cloning
/// gives another handle of the same.
pub trait Files: Clone + 'static {
    /// A file that is open.
    type Open;

    /// The time in nanoseconds since some beginning.
    fn now_ns(&self) -> u64;

    /// Makes a directory.
    fn make_directory(&self, path: &str) -> impl Future<Output = Result<(), LoadError>>;

    /// Makes a new file, and opens it.
    fn create(&self, path: &str) -> impl Future<Output = Result<Self::Open, LoadError>>;

    /// Opens a file that is there.
    fn open(&self, path: &str) -> impl Future<Output = Result<Self::Open, LoadError>>;

    /// Writes `bytes` from `offset` on.
    fn write(&self, file: &Self::Open, offset: u64, bytes: &[u8]) -> impl Future<Output = Result<(), LoadError>>;

    /// Reads `length` bytes from `offset` on; says how many there were.
    fn read(&self, file: &Self::Open, offset: u64, length: usize) -> impl Future<Output = Result<usize, LoadError>>;

    /// Makes a file durable: `fsync`.
    fn sync(&self, file: &Self::Open) -> impl Future<Output = Result<(), LoadError>>;

    /// Makes everything durable: `syncfs`.
    fn sync_all(&self) -> impl Future<Output = Result<(), LoadError>>;

    /// Takes what was read and written of a file out of the page cache; what is not yet durable may stay.
    fn forget(&self, file: &Self::Open) -> Result<(), LoadError>;

    /// Closes a file.
    fn close(&self, file: Self::Open) -> impl Future<Output = Result<(), LoadError>>;

    /// The size of a file in bytes: `stat`.
    fn size(&self, path: &str) -> impl Future<Output = Result<u64, LoadError>>;

    /// Takes a file's name, and so the file.
    fn remove(&self, path: &str) -> impl Future<Output = Result<(), LoadError>>;

    /// Lets several applications work at once, and waits for all of them; the first failure by their order is returned.
    fn together<W: Worker>(&self, workers: Vec<W>) -> impl Future<Output = Result<Vec<W::Outcome>, LoadError>>;
}

/// An application of several that work at once: a thread in a directory, a task on the core.
pub trait Worker: Send + 'static {
    /// What it brings back.
    type Outcome: Send + 'static;

    /// Works.
    fn run<F: Files>(self, files: F) -> impl Future<Output = Result<Self::Outcome, LoadError>>;
}
