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

/// Error of a load: one of its operations on the file system failed, or its caller ended it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{operation} {path}: {reason}")]
pub struct LoadError {
    /// Name of the operation that failed: `mkdir`, `create`, `write`, …
    pub operation: &'static str,
    /// Path of the file, relative to the directory of the load. It is empty for an operation on the whole file system,
    /// such as `syncfs`, and may be empty if the caller ended the load.
    pub path: String,
    /// Reason of the failure, as a message for the user.
    pub reason: String,
    /// Whether the operation failed because no space was left for data or metadata, or because of a quota.
    pub is_no_space: bool,
}

/// A file system as an application uses it. Paths are relative to the directory of the load, with names joined by `/`.
/// A clone is another handle of one file system.
pub trait Files: Clone + 'static {
    /// Handle of an open regular file.
    type Open;

    /// Returns the time in nanoseconds since an arbitrary but fixed beginning. On the core this is virtual time.
    fn now_ns(&self) -> u64;

    /// Creates a directory. Its parent must exist.
    ///
    /// # Errors
    /// The path exists already, or the operation failed.
    fn make_directory(&self, path: &str) -> impl Future<Output = Result<(), LoadError>>;

    /// Creates an empty regular file, and opens it for reading and writing.
    ///
    /// # Errors
    /// The path exists already, or the operation failed.
    fn create(&self, path: &str) -> impl Future<Output = Result<Self::Open, LoadError>>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// The path does not exist, or the operation failed.
    fn open(&self, path: &str) -> impl Future<Output = Result<Self::Open, LoadError>>;

    /// Writes all of `bytes` at byte `offset` of the file. The bytes need not be durable afterwards.
    ///
    /// # Errors
    /// The write failed, for example because no space was left.
    fn write(&self, file: &Self::Open, offset: u64, bytes: &[u8]) -> impl Future<Output = Result<(), LoadError>>;

    /// Reads up to `length` bytes from byte `offset` of the file on, and drops them. Returns the number of bytes read,
    /// which is below `length` only if the file ends before, and 0 at or behind its end.
    ///
    /// # Errors
    /// The read failed.
    fn read(&self, file: &Self::Open, offset: u64, length: usize) -> impl Future<Output = Result<usize, LoadError>>;

    /// Makes the contents and attributes of a file durable, like `fsync`.
    ///
    /// # Errors
    /// The operation failed.
    fn sync(&self, file: &Self::Open) -> impl Future<Output = Result<(), LoadError>>;

    /// Makes everything in the file system durable, like `syncfs`.
    ///
    /// # Errors
    /// The operation failed.
    fn sync_all(&self) -> impl Future<Output = Result<(), LoadError>>;

    /// Removes the pages of a file from the page cache, so that later reads reach the file system. Pages that are not
    /// yet durable may stay.
    ///
    /// # Errors
    /// The kernel refused the request.
    fn forget(&self, file: &Self::Open) -> Result<(), LoadError>;

    /// Closes a file. Its data need not be durable afterwards.
    ///
    /// # Errors
    /// The operation failed.
    fn close(&self, file: Self::Open) -> impl Future<Output = Result<(), LoadError>>;

    /// Returns the size of a file in bytes, as `stat` reports it.
    ///
    /// # Errors
    /// The path does not exist, or the operation failed.
    fn size(&self, path: &str) -> impl Future<Output = Result<u64, LoadError>>;

    /// Removes a file, as `unlink` does.
    ///
    /// # Errors
    /// The path does not exist, or the operation failed.
    fn remove(&self, path: &str) -> impl Future<Output = Result<(), LoadError>>;

    /// Runs several applications concurrently, and waits for all of them. Returns their outcomes in the order of
    /// `workers`.
    ///
    /// # Errors
    /// The error of the first worker in that order that failed. The others run to their ends nevertheless.
    fn together<W: Worker>(&self, workers: Vec<W>) -> impl Future<Output = Result<Vec<W::Outcome>, LoadError>>;
}

/// One of several applications that work concurrently: a thread on a mounted directory, a task on the core.
pub trait Worker: Send + 'static {
    /// Result of an application that did not fail.
    type Outcome: Send + 'static;

    /// Performs the operations of the application on `files`.
    ///
    /// # Errors
    /// The first operation that failed.
    fn run<F: Files>(self, files: F) -> impl Future<Output = Result<Self::Outcome, LoadError>>;
}
