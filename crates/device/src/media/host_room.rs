//! Room on the host's disk that is kept back for a file. When the disk is full, a request that was begun is ended in that room,
//! and no other is begun until as much can be kept back again.
//!
//! The room is that of a file without a name in the same folder. Where the host has no such files, none is kept back.
//!
//! Invariants:
//! 1. A process that dies leaves nothing on the disk.
//! 2. After the room was used [`HostRoom::check`] fails until as much is kept back again.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstatvfs, open};

/// No more than this share of the disk's free room is kept back.
const SHARE: u64 = 8;
/// Time between two looks at a full disk.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The room.
#[derive(Debug, Default)]
pub(super) struct HostRoom {
    kept: Mutex<Kept>,
    is_used: AtomicBool,
}

#[derive(Debug, Default)]
struct Kept {
    /// Bytes that are to be kept back.
    bytes: u64,
    /// The file that has them.
    file: Option<File>,
    /// When the disk was last found full.
    looked: Option<Instant>,
}

impl HostRoom {
    /// Keeps back `bytes` for `file`, which stands at `path`, or an eighth of the free room if that is less.
    pub(super) fn keep(&self, file: &File, path: &Path, bytes: u64) {
        let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let free = fstatvfs(file).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let mut kept = self.lock();
        let bytes = bytes.min((free + kept.bytes) / SHARE);
        if !is_regular || bytes <= kept.bytes {
            return;
        }
        if let Ok(file) = allocate(path, bytes) {
            *kept = Kept { bytes, file: Some(file), looked: None };
        }
    }

    /// Frees the room on a disk that is full. Returns whether there was any.
    pub(super) fn use_up(&self) -> bool {
        let mut kept = self.lock();
        kept.looked = Some(Instant::now());
        let had_room = kept.file.take().is_some();
        if had_room {
            self.is_used.store(true, Ordering::Release);
        }
        had_room
    }

    /// Whether the room was used, and is not kept back again yet.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Keeps the room back again if it was used; the error says why it cannot.
    pub(super) fn check(&self, path: &Path) -> io::Result<()> {
        if !self.is_used() {
            return Ok(());
        }
        let mut kept = self.lock();
        let is_due = kept.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        if is_due && let Ok(file) = allocate(path, kept.bytes) {
            kept.file = Some(file);
            self.is_used.store(false, Ordering::Release);
            return Ok(());
        }
        if is_due {
            kept.looked = Some(Instant::now());
        }
        let words = format!("no space left on the disk of {}: writes go on once there is some", path.display());
        Err(io::Error::new(io::ErrorKind::StorageFull, words))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no thread panics while it holds the room")
    }
}

/// A file without a name beside `path` that has `bytes` of the disk.
fn allocate(path: &Path, bytes: u64) -> io::Result<File> {
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    let file = open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    Ok(file.into())
}
