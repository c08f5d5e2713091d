//! A block device or a plain file, in real time: direct access by io_uring.
//!
//! For the duration of the probe, the drive's volatile write cache is off, if the kernel can switch it off (SCSI and
//! SATA). In any case, each write asks to be durable. The kernel's read-ahead does not affect direct access; it is
//! switched off anyway, because other processes may read. The drive's look-ahead cannot be switched off from here.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::real_time::{RealTime, sleep};
use super::ring::Ring;
use super::settings::Settings;
use crate::target::{About, Done, Next, Target, TargetError};
use imbrex_safety::survey::busy;
use imbrex_safety::usage::Device;
use imbrex_safety::{Survey, open_for_writing};

/// Unit of access to a plain file, bytes: every file system accepts it.
const FILE_SECTOR_BYTES: u32 = 4096;

/// A block device or a plain file as a target in real time, accessed directly (`O_DIRECT`) with io_uring. Each write is
/// durable when it is answered.
pub struct Block {
    ring: Ring,
    /// Descriptor of the same open file as the ring's, for queries about users and contents.
    file: File,
    time: RealTime,
    about: About,
    device: Option<Device>,
    settings: Settings,
}

/// Options for opening a block device or a file as a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whether operations will write. If so, the target is opened for writing, and a block device exclusively
    /// (`O_EXCL`), which fails if it is in use. Otherwise the target is opened read-only, and may be in use.
    pub may_write: bool,
}

impl Block {
    /// Opens the block device or plain file at `path` as a target.
    ///
    /// # Errors
    ///
    /// [`TargetError::Refused`] if a device that is opened for writing is in use. [`TargetError::Failed`] if `path` is
    /// neither a block device nor a file, cannot be opened with direct access, or the kernel permits no io_uring.
    pub fn open(path: &Path, access: Access) -> Result<Block, TargetError> {
        let place = path.display().to_string();
        let failed = |reason: String| TargetError::failed(place.clone(), reason);
        let kind = std::fs::metadata(path).map_err(|error| failed(cannot_open(&error)))?;
        let is_block = kind.file_type().is_block_device();
        if kind.is_dir() {
            return Err(failed("is a folder; name a drive such as /dev/sdX, or a file".into()));
        }
        if !is_block && !kind.is_file() {
            return Err(failed("is neither a block device nor a file".into()));
        }
        let device =
            if is_block { Some(Device::of(kind.rdev()).map_err(|error| failed(error.to_string()))?) } else { None };
        let file = open(path, access).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => TargetError::Refused(busy(path)),
            _ => failed(cannot_open(&error)),
        })?;
        let size_bytes = size_of(&file).map_err(|error| failed(error.to_string()))?;
        let sector_bytes = device.as_ref().map_or(FILE_SECTOR_BYTES, Device::sector_bytes);
        let ring = file.try_clone().and_then(|file| Ring::new(file, access.may_write));
        let ring = ring.map_err(|error| failed(error.to_string()))?;
        let size_bytes = size_bytes / u64::from(sector_bytes) * u64::from(sector_bytes);
        Ok(Block {
            ring,
            file,
            time: RealTime::new(),
            about: About { name: place, size_bytes, sector_bytes, is_virtual: false },
            device,
            settings: Settings::default(),
        })
    }

    /// Surveys the target before it is written: its users, and the signatures and data on it. Uses the same open file
    /// as the operations.
    ///
    /// # Errors
    ///
    /// The target cannot be read or examined.
    pub fn survey(&self) -> io::Result<Survey> {
        Survey::of(&self.about.name, &self.file)
    }

    /// Returns a text for each use of the target by others, such as a mount or another process; empty if it is unused.
    ///
    /// # Errors
    ///
    /// The uses cannot be found out.
    pub fn users(&self) -> io::Result<Vec<String>> {
        imbrex_safety::usage::users(&self.file, &[])
    }

    /// Returns the block device of the target; `None` for a plain file.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Switches the kernel's read-ahead and the drive's volatile write cache off, until the target is dropped. Settings
    /// that cannot be changed stay as they are. Has no effect on a plain file.
    pub fn quieten(&mut self) {
        let Some(device) = &self.device else { return };
        let whole: PathBuf = device.whole_folder();
        self.settings.set(&whole.join("queue/read_ahead_kb"), "0");
        // Only this file changes the drive's cache; `queue/write_cache` changes only the kernel's belief about the
        // cache.
        if let Some(cache_type) = device.cache_type_file() {
            self.settings.set(&cache_type, "write through");
        }
    }
}

fn open(path: &Path, access: Access) -> io::Result<File> {
    if access.may_write {
        return open_for_writing(path, libc::O_DIRECT);
    }
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)
}

fn size_of(file: &File) -> io::Result<u64> {
    io::Seek::seek(&mut &*file, io::SeekFrom::End(0))
}

fn cannot_open(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "there is no such file or device".into(),
        Some(libc::EACCES | libc::EPERM) => {
            "may not be opened; run as root, or as a member of its group (a container has to be given the device)"
                .into()
        }
        Some(libc::EBUSY) => "is in use: mounted, or part of an array, a pool or swap".into(),
        Some(libc::EROFS) => "cannot be written: it is read-only".into(),
        Some(libc::EINVAL) => {
            "cannot be read past the page cache (O_DIRECT): its file system does not know how; put the file on another"
                .into()
        }
        Some(libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => "there is no drive behind it".into(),
        _ => error.to_string(),
    }
}

impl Target for Block {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.time.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        self.time.perform(&mut self.ring, &self.about.name, depth, next, done)
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        sleep(ns);
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let Some(device) = &self.device else {
            let note = "a plain file: its file system and whatever lies below are measured with it".to_string();
            return vec![("model", note)];
        };
        let mut facts = device.facts();
        facts.extend(self.settings.told().into_iter().map(|told| ("set for the probe", told)));
        facts
    }
}
