//! Operations of a load, counted and timed by kind.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use imbrex_sim::metrics::latency::LatencyHistogram;

use super::super::{Files, LoadError};

/// A kind of operation on a file system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Creation of a directory: `mkdir`.
    MakeDirectory,
    /// Creation of a file, which is then open: `creat`.
    Create,
    /// Opening of an existing file: `open`.
    Open,
    /// Read of a range of bytes: `read`.
    Read,
    /// Write of a range of bytes: `write`.
    Write,
    /// Wait until a file is durable: `fsync`.
    Sync,
    /// Closing of a file: `close`.
    Close,
    /// Query of the size of a file: `stat`.
    Stat,
    /// Removal of a file: `unlink`.
    Remove,
    /// Wait until the whole file system is durable, with which each phase ends: `syncfs`.
    SyncAll,
}

impl Kind {
    /// Returns the name of the system call, such as `unlink`; `create` for the creation of a file.
    pub fn name(self) -> &'static str {
        match self {
            Kind::MakeDirectory => "mkdir",
            Kind::Create => "create",
            Kind::Open => "open",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Sync => "fsync",
            Kind::Close => "close",
            Kind::Stat => "stat",
            Kind::Remove => "unlink",
            Kind::SyncAll => "syncfs",
        }
    }
}

/// Bytes and durations of the operations of one kind, such as reads.
#[derive(Clone, Default, Debug)]
pub struct Figures {
    /// Number of bytes that the operations read or wrote; 0 for kinds other than reads and writes.
    pub bytes: u64,
    /// Durations of the operations, in nanoseconds. The histogram also counts the operations.
    pub latency: LatencyHistogram,
}

/// Bytes and durations of operations, by kind of operation. A kind without any operation is absent.
pub type Measured = BTreeMap<Kind, Figures>;

/// Adds `others` to `all`.
pub(super) fn add(all: &mut Measured, others: &Measured) {
    for (kind, figures) in others {
        let own = all.entry(*kind).or_default();
        own.bytes += figures.bytes;
        own.latency.add(&figures.latency);
    }
}

/// An operation of a load that ended without an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Kind of the operation, such as a read.
    pub kind: Kind,
    /// Time when the operation ended, in nanoseconds of the clock of the load, which has an arbitrary beginning.
    pub ended_ns: u64,
    /// Duration of the operation, in nanoseconds.
    pub took_ns: u64,
    /// Number of bytes that the operation read or wrote; 0 for kinds other than reads and writes.
    pub bytes: u64,
}

/// Callback after every operation that succeeded, called by any thread of the load. It returns whether to continue;
/// false ends the load with an error.
pub type Watch = Arc<dyn Fn(&Done) -> bool + Send + Sync>;

/// A file system whose operations are counted and timed.
pub(super) struct Meter<F> {
    files: F,
    measured: RefCell<Measured>,
    watch: Watch,
}

/// Reason in the error of a load that its `watch` function ended.
const INTERRUPTED: &str = "interrupted";

impl LoadError {
    /// Returns whether this error only says that the `watch` function ended the load.
    pub fn is_interrupted(&self) -> bool {
        self.reason == INTERRUPTED
    }
}

impl<F: Files> Meter<F> {
    pub(super) fn new(files: &F, watch: &Watch) -> Meter<F> {
        Meter { files: files.clone(), measured: RefCell::default(), watch: watch.clone() }
    }

    /// Returns the figures so far.
    pub(super) fn into_measured(self) -> Measured {
        self.measured.into_inner()
    }

    async fn timed<T>(
        &self,
        kind: Kind,
        path: &str,
        work: impl Future<Output = Result<(T, usize), LoadError>>,
    ) -> Result<T, LoadError> {
        let began_ns = self.files.now_ns();
        let (outcome, bytes) = work.await?;
        let ended_ns = self.files.now_ns();
        let done = Done { kind, ended_ns, took_ns: ended_ns - began_ns, bytes: bytes as u64 };
        let mut measured = self.measured.borrow_mut();
        let figures = measured.entry(kind).or_default();
        figures.bytes += done.bytes;
        figures.latency.record(done.took_ns);
        if (self.watch)(&done) {
            return Ok(outcome);
        }
        let reason = INTERRUPTED.to_string();
        Err(LoadError { operation: kind.name(), path: path.into(), reason, is_no_space: false })
    }

    pub(super) async fn make_directory(&self, path: &str) -> Result<(), LoadError> {
        self.timed(Kind::MakeDirectory, path, async { Ok((self.files.make_directory(path).await?, 0)) }).await
    }

    pub(super) async fn create(&self, path: &str) -> Result<F::Open, LoadError> {
        self.timed(Kind::Create, path, async { Ok((self.files.create(path).await?, 0)) }).await
    }

    pub(super) async fn open(&self, path: &str) -> Result<F::Open, LoadError> {
        self.timed(Kind::Open, path, async { Ok((self.files.open(path).await?, 0)) }).await
    }

    pub(super) async fn read(&self, file: &F::Open, offset: u64, length: usize) -> Result<usize, LoadError> {
        let work = async {
            let count = self.files.read(file, offset, length).await?;
            Ok((count, count))
        };
        self.timed(Kind::Read, "", work).await
    }

    pub(super) async fn write(&self, file: &F::Open, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        self.timed(Kind::Write, "", async { Ok((self.files.write(file, offset, bytes).await?, bytes.len())) }).await
    }

    pub(super) async fn sync(&self, file: &F::Open) -> Result<(), LoadError> {
        self.timed(Kind::Sync, "", async { Ok((self.files.sync(file).await?, 0)) }).await
    }

    pub(super) async fn sync_all(&self) -> Result<(), LoadError> {
        self.timed(Kind::SyncAll, "", async { Ok((self.files.sync_all().await?, 0)) }).await
    }

    pub(super) async fn close(&self, file: F::Open) -> Result<(), LoadError> {
        self.timed(Kind::Close, "", async { Ok((self.files.close(file).await?, 0)) }).await
    }

    pub(super) async fn size(&self, path: &str) -> Result<u64, LoadError> {
        self.timed(Kind::Stat, path, async { Ok((self.files.size(path).await?, 0)) }).await
    }

    pub(super) async fn remove(&self, path: &str) -> Result<(), LoadError> {
        self.timed(Kind::Remove, path, async { Ok((self.files.remove(path).await?, 0)) }).await
    }

    pub(super) fn forget(&self, file: &F::Open) -> Result<(), LoadError> {
        self.files.forget(file)
    }

    /// Reads a whole file in pieces of at most `piece` bytes.
    pub(super) async fn read_whole(&self, file: &F::Open, piece: usize) -> Result<u64, LoadError> {
        let mut offset = 0;
        loop {
            match self.read(file, offset, piece).await? {
                0 => return Ok(offset),
                count if count < piece => return Ok(offset + count as u64),
                count => offset += count as u64,
            }
        }
    }

    /// Writes `length` bytes from `offset` on, in pieces of at most `piece` bytes. The bytes are those of `contents`,
    /// repeated.
    pub(super) async fn write_pieces(
        &self,
        file: &F::Open,
        offset: u64,
        length: u64,
        piece: usize,
        contents: &[u8],
    ) -> Result<(), LoadError> {
        let mut done = 0;
        while done < length {
            let count = (length - done).min(piece.min(contents.len()) as u64);
            self.write(file, offset + done, &contents[..count as usize]).await?;
            done += count;
        }
        Ok(())
    }
}
