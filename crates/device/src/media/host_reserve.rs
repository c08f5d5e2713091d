//! Space on the host's disk that is reserved for a file. On a full disk the reserve is released, so that requests that
//! have begun can complete. No other request begins until the reserve is allocated again.
//!
//! The reserve is an unnamed temporary file (`O_TMPFILE`) in the same folder. File systems without unnamed files get
//! none.
//!
//! Invariants:
//! 1. A process that dies leaves nothing on the disk.
//! 2. After [`HostReserve::release`], [`HostReserve::restore`] fails until the reserve is allocated again.

use std::fs::{File, canonicalize};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstatvfs, open, openat};
use rustix::io::Errno;

/// The reserve is at most this share of the free space of the disk.
const FREE_SHARE: u64 = 8;
/// Time between two attempts to allocate the reserve again.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// The reserve of one file.
#[derive(Debug, Default)]
pub(super) struct HostReserve {
    state: Mutex<State>,
    is_released: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Size of the reserve.
    bytes: u64,
    /// The folder that contains the file, symbolic links resolved. It is on the disk of the file even if the path
    /// changes.
    folder: Option<OwnedFd>,
    /// The file that holds the space; none after a release.
    file: Option<OwnedFd>,
    /// Time of the release, or of the last failed attempt to restore.
    tried: Option<Instant>,
}

impl HostReserve {
    /// Reserves `bytes` for `file`, which was opened at `path`, or an eighth of the free space if that is less. A
    /// reserve never shrinks. Does nothing for block devices, and where the host cannot allocate.
    pub(super) fn grow_to(&self, file: &File, path: &Path, bytes: u64) {
        let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let free = fstatvfs(file).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let mut state = self.lock();
        let bytes = bytes.min((free + state.bytes) / FREE_SHARE);
        if !is_regular || bytes <= state.bytes {
            return;
        }
        let Ok(folder) = folder_of(path) else { return };
        if let Ok(file) = allocate(&folder, bytes) {
            *state = State { bytes, folder: Some(folder), file: Some(file), tried: None };
        }
    }

    /// Frees the space. Returns whether any was reserved.
    pub(super) fn release(&self) -> bool {
        let mut state = self.lock();
        state.tried = Some(Instant::now());
        let had_space = state.file.take().is_some();
        if had_space {
            self.is_released.store(true, Ordering::Release);
        }
        had_space
    }

    /// Frees the space for good.
    pub(super) fn give_up(&self) {
        *self.lock() = State::default();
        self.is_released.store(false, Ordering::Release);
    }

    /// Returns whether the reserve was released and not restored.
    pub(super) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire)
    }

    /// Allocates the reserve again after a release; `path` is the path of the file. Tries ten times a second at most.
    /// If the folder is gone, gives up the reserve.
    ///
    /// # Errors
    /// The disk is still full.
    pub(super) fn restore(&self, path: &Path) -> io::Result<()> {
        if !self.is_released() {
            return Ok(());
        }
        let mut state = self.lock();
        if state.tried.is_none_or(|tried| tried.elapsed() >= RETRY_EVERY) {
            let allocated = match &state.folder {
                Some(folder) => allocate(folder, state.bytes),
                None => Err(Errno::NOENT),
            };
            if !matches!(allocated, Err(Errno::NOSPC | Errno::DQUOT)) {
                state.file = allocated.ok();
                self.is_released.store(false, Ordering::Release);
                return Ok(());
            }
            state.tried = Some(Instant::now());
        }
        let words = format!("no space left on the disk of {}: writes go on once there is some", path.display());
        Err(io::Error::new(io::ErrorKind::StorageFull, words))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the reserve")
    }
}

/// Opens the folder in which the file at `path` lies, links followed.
fn folder_of(path: &Path) -> io::Result<OwnedFd> {
    let path = canonicalize(path)?;
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    Ok(open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Creates an unnamed file of `bytes` in `folder`.
fn allocate(folder: &OwnedFd, bytes: u64) -> Result<OwnedFd, Errno> {
    let file = openat(folder, ".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    Ok(file)
}
