//! Load in a mounted directory of any file system: its operations are system calls, and its time is that of the wall
//! clock. Each operation is done when its future is first polled. Applications that work concurrently are threads.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::{Files, LoadError, Worker};

/// A directory of a mounted file system, on which a load runs by system calls. A clone is another handle of one
/// directory.
#[derive(Clone)]
pub struct InDirectory {
    base: PathBuf,
    began: Instant,
}

/// Handle of a file that is open in an [`InDirectory`].
pub struct OpenInDirectory {
    file: File,
    path: String,
}

fn failed(operation: &'static str, path: &str) -> impl FnOnce(io::Error) -> LoadError {
    let path = path.to_string();
    move |error| LoadError {
        operation,
        path,
        reason: error.to_string(),
        is_no_space: matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
    }
}

impl InDirectory {
    /// Creates directory `name` in `directory`, and returns it as the directory of a load. The clock of the load starts
    /// at 0.
    ///
    /// # Errors
    /// The directory exists already, or could not be created.
    pub fn new(directory: &Path, name: &str) -> Result<InDirectory, LoadError> {
        let base = directory.join(name);
        std::fs::create_dir(&base).map_err(failed("mkdir", &base.display().to_string()))?;
        Ok(InDirectory { base, began: Instant::now() })
    }
}

impl Files for InDirectory {
    type Open = OpenInDirectory;

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    async fn make_directory(&self, path: &str) -> Result<(), LoadError> {
        std::fs::create_dir(self.base.join(path)).map_err(failed("mkdir", path))
    }

    async fn create(&self, path: &str) -> Result<OpenInDirectory, LoadError> {
        let file = File::options().read(true).write(true).create_new(true).open(self.base.join(path));
        Ok(OpenInDirectory { file: file.map_err(failed("create", path))?, path: path.into() })
    }

    async fn write(&self, file: &OpenInDirectory, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        file.file.write_all_at(bytes, offset).map_err(failed("write", &file.path))
    }

    async fn close(&self, file: OpenInDirectory) -> Result<(), LoadError> {
        drop(file);
        Ok(())
    }

    async fn open(&self, path: &str) -> Result<OpenInDirectory, LoadError> {
        let file = File::options().read(true).write(true).open(self.base.join(path));
        Ok(OpenInDirectory { file: file.map_err(failed("open", path))?, path: path.into() })
    }

    async fn read(&self, file: &OpenInDirectory, offset: u64, length: usize) -> Result<usize, LoadError> {
        let (mut bytes, mut done) = (vec![0; length], 0);
        while done < length {
            let count = file.file.read_at(&mut bytes[done..], offset + done as u64);
            match count.map_err(failed("read", &file.path))? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    async fn sync(&self, file: &OpenInDirectory) -> Result<(), LoadError> {
        file.file.sync_all().map_err(failed("fsync", &file.path))
    }

    async fn sync_all(&self) -> Result<(), LoadError> {
        let synced = File::open(&self.base).and_then(|directory| Ok(rustix::fs::syncfs(&directory)?));
        synced.map_err(failed("syncfs", ""))
    }

    fn forget(&self, file: &OpenInDirectory) -> Result<(), LoadError> {
        let advised = rustix::fs::fadvise(&file.file, 0, None, rustix::fs::Advice::DontNeed);
        advised.map_err(|error| failed("fadvise", &file.path)(error.into()))
    }

    async fn size(&self, path: &str) -> Result<u64, LoadError> {
        Ok(std::fs::metadata(self.base.join(path)).map_err(failed("stat", path))?.len())
    }

    async fn together<W: Worker>(&self, workers: Vec<W>) -> Result<Vec<W::Outcome>, LoadError> {
        std::thread::scope(|scope| {
            let start = |worker: W| scope.spawn(move || run_now(worker.run(self.clone())));
            let threads: Vec<_> = workers.into_iter().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("no application of a load panics")).collect()
        })
    }

    async fn remove(&self, path: &str) -> Result<(), LoadError> {
        std::fs::remove_file(self.base.join(path)).map_err(failed("remove", path))
    }
}

/// Runs a load on an [`InDirectory`] to its end, and returns its outcome. Its operations block the thread instead of
/// waiting as tasks, so one poll is enough.
///
/// # Panics
/// The future waits for something other than such an operation.
pub fn run_now<T>(load: impl Future<Output = T>) -> T {
    let mut load = pin!(load);
    match load.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => unreachable!("no operation in a directory waits"),
    }
}
