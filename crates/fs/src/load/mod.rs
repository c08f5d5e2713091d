//! Loads: the operations of applications on a file system, to age it or to measure it. Each load has its own file.
//!
//! A load calls the file system only through [`Files`]. So a load runs on the core in virtual time ([`OnCore`]), where
//! its operations are tasks of the file system's executor, and in any mounted directory on the wall clock
//! ([`InDirectory`]).
//!
//! Invariants:
//! 1. The operations of a load depend only on its seed and its sizes, never on a time. Two runs with one seed do the
//!    same operations, wherever they run. If several applications work concurrently, each has its own files.
//! 2. A load touches nothing outside of its own directory, which it creates.

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

/// A failed operation of a load.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{operation} {path}: {reason}")]
pub struct LoadError {
    /// Name of the operation: `create`, `write`, …
    pub operation: &'static str,
    /// Path of the file.
    pub path: String,
    /// Reason of the failure, as a message.
    pub reason: String,
    /// Whether the failure was a lack of space.
    pub is_no_space: bool,
}

/// A file system as an application uses it. Paths are relative to the directory of the load, with names joined by `/`.
/// A clone is another handle of one file system.
pub trait Files: Clone + 'static {
    /// Handle of an open file.
    type Open;

    /// Returns the time in nanoseconds since an arbitrary beginning.
    fn now_ns(&self) -> u64;

    /// Creates a directory.
    fn make_directory(&self, path: &str) -> impl Future<Output = Result<(), LoadError>>;

    /// Creates a new file, and opens it.
    fn create(&self, path: &str) -> impl Future<Output = Result<Self::Open, LoadError>>;

    /// Opens an existing file.
    fn open(&self, path: &str) -> impl Future<Output = Result<Self::Open, LoadError>>;

    /// Writes `bytes` from `offset` on.
    fn write(&self, file: &Self::Open, offset: u64, bytes: &[u8]) -> impl Future<Output = Result<(), LoadError>>;

    /// Reads `length` bytes from `offset` on. Returns the number of bytes read, which is smaller at the end of the
    /// file.
    fn read(&self, file: &Self::Open, offset: u64, length: usize) -> impl Future<Output = Result<usize, LoadError>>;

    /// Makes a file durable: `fsync`.
    fn sync(&self, file: &Self::Open) -> impl Future<Output = Result<(), LoadError>>;

    /// Makes everything durable: `syncfs`.
    fn sync_all(&self) -> impl Future<Output = Result<(), LoadError>>;

    /// Removes the pages of a file from the page cache. Pages that are not yet durable may stay.
    fn forget(&self, file: &Self::Open) -> Result<(), LoadError>;

    /// Closes a file.
    fn close(&self, file: Self::Open) -> impl Future<Output = Result<(), LoadError>>;

    /// Returns the size of a file in bytes: `stat`.
    fn size(&self, path: &str) -> impl Future<Output = Result<u64, LoadError>>;

    /// Removes a file's name, and so the file.
    fn remove(&self, path: &str) -> impl Future<Output = Result<(), LoadError>>;

    /// Starts several applications, which work concurrently, and waits for all of them. If any fail, the error of the
    /// first in their order is returned.
    fn together<W: Worker>(&self, workers: Vec<W>) -> impl Future<Output = Result<Vec<W::Outcome>, LoadError>>;
}

/// One of several applications that work concurrently: a thread in a directory, a task on the core.
pub trait Worker: Send + 'static {
    /// Result of the application.
    type Outcome: Send + 'static;

    /// Executes the application.
    fn run<F: Files>(self, files: F) -> impl Future<Output = Result<Self::Outcome, LoadError>>;
}
