//! The metadata of SMRfs: a file is a symbolic link in ext4, and an extended attribute of the link gives the place of
//! the file's data (Jin 2014 §I.C, Singh 2014 §2.2.2). The data themselves are discarded here.
//!
//! The attribute is written when a changed file is closed or synced. A sync then also syncs the link's directory,
//! which commits ext4's journal. The contents of the attribute are our choice: 64 bytes, the size first.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use imbrex_fs::load::{Files, LoadError, Worker, run_now};
use rustix::fs::{XattrFlags, lgetxattr, lsetxattr, syncfs};

/// Name of the attribute. Symbolic links cannot have attributes of the namespace `user`.
const ATTRIBUTE: &str = "trusted.smr";
/// Size of the attribute, for size, band, offset, length and times. With ext4's header it just fits into an inode of
/// 256 bytes.
const ATTRIBUTE_BYTES: usize = 64;
/// Target of every link.
const TARGET: &str = "data";

/// Directory of ext4 that holds files as SMRfs does.
#[derive(Clone)]
pub(super) struct Symlinks {
    base: PathBuf,
    began: Instant,
}

/// Open file.
pub(super) struct OpenLink {
    link: PathBuf,
    size: Cell<u64>,
    is_changed: Cell<bool>,
}

fn failed<E: Into<io::Error>>(operation: &'static str, path: &Path) -> impl FnOnce(E) -> LoadError {
    let path = path.display().to_string();
    move |error| {
        let error: io::Error = error.into();
        let is_no_space = error.kind() == io::ErrorKind::StorageFull;
        LoadError { operation, path, reason: error.to_string(), is_no_space }
    }
}

impl Symlinks {
    /// Makes the directory `name` in `directory` and keeps its files there.
    pub(super) fn new(directory: &Path, name: &str) -> Result<Symlinks, LoadError> {
        let base = directory.join(name);
        std::fs::create_dir(&base).map_err(failed("mkdir", &base))?;
        Ok(Symlinks { base, began: Instant::now() })
    }
}

impl OpenLink {
    fn record(&self) -> Result<(), LoadError> {
        let mut value = [0; ATTRIBUTE_BYTES];
        value[..8].copy_from_slice(&self.size.get().to_le_bytes());
        lsetxattr(&self.link, ATTRIBUTE, &value, XattrFlags::empty()).map_err(failed("setxattr", &self.link))?;
        self.is_changed.set(false);
        Ok(())
    }

    fn record_changes(&self) -> Result<(), LoadError> {
        if self.is_changed.get() { self.record() } else { Ok(()) }
    }
}

fn recorded_size(link: &Path) -> Result<u64, LoadError> {
    let mut value = [0; ATTRIBUTE_BYTES];
    lgetxattr(link, ATTRIBUTE, &mut value).map_err(failed("getxattr", link))?;
    Ok(u64::from_le_bytes(value[..8].try_into().expect("eight bytes")))
}

impl Files for Symlinks {
    type Open = OpenLink;

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    async fn make_directory(&self, path: &str) -> Result<(), LoadError> {
        std::fs::create_dir(self.base.join(path)).map_err(failed("mkdir", Path::new(path)))
    }

    async fn create(&self, path: &str) -> Result<OpenLink, LoadError> {
        let link = self.base.join(path);
        symlink(TARGET, &link).map_err(failed("symlink", &link))?;
        let open = OpenLink { link, size: Cell::new(0), is_changed: Cell::new(false) };
        open.record()?;
        Ok(open)
    }

    async fn open(&self, path: &str) -> Result<OpenLink, LoadError> {
        let link = self.base.join(path);
        let size = Cell::new(recorded_size(&link)?);
        Ok(OpenLink { link, size, is_changed: Cell::new(false) })
    }

    async fn write(&self, file: &OpenLink, offset: u64, bytes: &[u8]) -> Result<(), LoadError> {
        file.size.set(file.size.get().max(offset + bytes.len() as u64));
        file.is_changed.set(true);
        Ok(())
    }

    async fn read(&self, file: &OpenLink, offset: u64, length: usize) -> Result<usize, LoadError> {
        let left = file.size.get().saturating_sub(offset);
        Ok(usize::try_from(left).unwrap_or(usize::MAX).min(length))
    }

    async fn sync(&self, file: &OpenLink) -> Result<(), LoadError> {
        file.record_changes()?;
        let directory = file.link.parent().expect("a link is in a directory");
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed("fsync", directory))
    }

    async fn sync_all(&self) -> Result<(), LoadError> {
        let synced = File::open(&self.base).and_then(|directory| Ok(syncfs(&directory)?));
        synced.map_err(failed("syncfs", &self.base))
    }

    fn forget(&self, _file: &OpenLink) -> Result<(), LoadError> {
        Ok(())
    }

    async fn close(&self, file: OpenLink) -> Result<(), LoadError> {
        file.record_changes()
    }

    async fn size(&self, path: &str) -> Result<u64, LoadError> {
        recorded_size(&self.base.join(path))
    }

    async fn remove(&self, path: &str) -> Result<(), LoadError> {
        std::fs::remove_file(self.base.join(path)).map_err(failed("remove", Path::new(path)))
    }

    async fn together<W: Worker>(&self, workers: Vec<W>) -> Result<Vec<W::Outcome>, LoadError> {
        std::thread::scope(|scope| {
            let start = |worker: W| scope.spawn(move || run_now(worker.run(self.clone())));
            let threads: Vec<_> = workers.into_iter().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("no application of a load panics")).collect()
        })
    }
}
