//! A medium in a sparse file. The file is locked while it is open, so no two processes work on one image.
//!
//! Invariants:
//! 1. A file in use by others is not opened for writing: a block device that is mounted or held exclusively, or a file
//!    behind a loop device.
//! 2. If another process truncates the file of a running drive, lost data never reads as zeros. The truncation is
//!    detected by the next flush, or by the next write that reaches the former end of the file.

use std::fs::{File, TryLockError};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::sync::Arc;

use imbrex_safety::{Refusal, usage};

use super::host_file::HostFile;
use super::new_file::NewFile;
use super::{Media, are_zeros};
use crate::error::DeviceError;

/// A medium in a file or block device of the host. An advisory lock is held while the medium is open, shared for
/// reading and exclusive for writing, unless [`HostFile::unlock`] releases it earlier.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    /// Path of the file, for errors.
    place: String,
    len: u64,
    syncs: bool,
    is_writable: bool,
    /// Whether all writes so far are on the disk. False at opening: earlier writers may not have synced.
    is_synced: bool,
    host: Arc<HostFile>,
}

/// Access with which a file is opened, and the lock that goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// For reading only. The lock is shared with other readers and excludes writers.
    Read,
    /// For reading and writing. The lock is exclusive.
    Write,
}

impl FileMedium {
    /// Opens and locks the existing file `path`. If `syncs` is true, a flush writes to the host's disk. Otherwise
    /// flushed data survives the end of this process, but not a crash of the host.
    ///
    /// # Errors
    /// - [`DeviceError::Image`]: the file is missing, is a folder, lacks write permission, or is a device in use.
    /// - [`DeviceError::InUse`]: another process holds a lock that excludes this one.
    /// - [`DeviceError::Refused`]: for [`Mode::Write`], the host uses the file, for example behind a loop device.
    /// - [`DeviceError::Medium`]: any other failure.
    pub fn open(path: &Path, mode: Mode, syncs: bool) -> Result<FileMedium, DeviceError> {
        let place = path.display().to_string();
        refuse_pipe(path, &place)?;
        let opened = match mode {
            Mode::Read => File::open(path),
            Mode::Write => imbrex_safety::open_for_writing(path, 0),
        };
        let file = opened.map_err(|cause| cannot_open(&place, mode, cause))?;
        if path.is_dir() {
            // A folder can be opened for reading, so the kernel does not refuse it.
            return Err(cannot_open(&place, mode, io::ErrorKind::IsADirectory.into()));
        }
        let locked = if mode == Mode::Read { file.try_lock_shared() } else { file.try_lock() };
        locked.map_err(|error| match error {
            TryLockError::WouldBlock => DeviceError::InUse {
                place: place.clone(),
                reason: match mode {
                    Mode::Read => ", which writes to it; stop that one first",
                    _ => "; stop that one first (two writers would ruin it)",
                },
            },
            TryLockError::Error(cause) => DeviceError::medium(place.clone(), cause),
        })?;
        let users = if mode == Mode::Write { usage::users(&file, &[]) } else { Ok(Vec::new()) };
        let users = users.map_err(|cause| DeviceError::medium(place.clone(), cause))?;
        if !users.is_empty() {
            let refusal = Refusal::InUse { name: place, users };
            return Err(DeviceError::Refused(refusal.to_string()));
        }
        let medium = FileMedium::over(file, path, mode != Mode::Read, syncs);
        medium.map_err(|cause| DeviceError::medium(place, cause))
    }

    /// Returns a medium in a new file that is not finished.
    pub(crate) fn new(file: &NewFile, syncs: bool) -> io::Result<FileMedium> {
        FileMedium::over(file.file().try_clone()?, file.path(), true, syncs)
    }

    /// Returns a medium in `file`, whose path is or will be `path`. The caller has locked the file, or no other process
    /// knows it.
    fn over(file: File, path: &Path, is_writable: bool, syncs: bool) -> io::Result<FileMedium> {
        let (len, host) = (file.metadata()?.len(), Arc::new(HostFile::new(&file, path)?));
        let place = path.display().to_string();
        Ok(FileMedium { file, place, len, syncs, is_writable, is_synced: false, host })
    }
}

/// Returns the error for a file that was truncated while in use.
fn cut_short(place: &str, bytes: u64, needed: u64) -> io::Error {
    let words = format!(
        "{place} was cut short while in use: {bytes} bytes of {needed}; stop the drive and see what \
         `imbrex drive check --repair` can save"
    );
    io::Error::new(io::ErrorKind::UnexpectedEof, words)
}

/// Adds advice to an error that says that the host's disk has no space. Returns other errors unchanged.
fn with_remedy(place: &str, cause: io::Error) -> io::Error {
    let what = match cause.kind() {
        io::ErrorKind::StorageFull => "no space left on the disk of",
        io::ErrorKind::QuotaExceeded => "no room left in the quota for",
        io::ErrorKind::FileTooLarge => "the file system or a limit (`ulimit -f`) takes no longer",
        _ => return cause,
    };
    // One kind for all three: the servers of a drive report this kind to clients as "no space".
    let words = format!("{what} {place}: free some and open it again; nothing that was flushed is lost");
    io::Error::new(io::ErrorKind::StorageFull, words)
}

/// Returns the error for a failed sync of `place`, with advice if the disk has no space.
fn not_synced(place: &str, cause: io::Error) -> io::Error {
    let cause = with_remedy(place, cause);
    if cause.raw_os_error().is_none() {
        return cause;
    }
    io::Error::new(cause.kind(), format!("{place} could not be synced to its disk: {cause}"))
}

/// Refuses a pipe, a socket or a device of characters, which a drive cannot be in. Opening a pipe would wait for its other
/// end.
fn refuse_pipe(path: &Path, place: &str) -> Result<(), DeviceError> {
    // A file that cannot be examined is reported when it is opened.
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(()) };
    let kind = metadata.file_type();
    if kind.is_fifo() || kind.is_socket() || kind.is_char_device() {
        return Err(DeviceError::image(place, "is neither a file nor a block device, so it is no image"));
    }
    Ok(())
}

/// Returns the error for a file that cannot be opened, with advice where there is any.
fn cannot_open(place: &str, mode: Mode, cause: io::Error) -> DeviceError {
    let reason = match cause.kind() {
        io::ErrorKind::NotFound => "is not there; `imbrex drive create` makes an image",
        io::ErrorKind::IsADirectory => "is a folder, not an image",
        io::ErrorKind::ResourceBusy => {
            "is in use: mounted, part of another device, or opened exclusively by another process"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem if mode == Mode::Write => {
            "cannot be written to; `imbrex serve --read-only` serves it as it is"
        }
        _ => return DeviceError::medium(place, cause),
    };
    DeviceError::image(place, reason)
}

impl FileMedium {
    /// Returns whether these bytes take no space on the host's disk, so that they read as zeros.
    fn is_hole(&self, offset: u64, end: u64) -> bool {
        // A file system that knows no holes says that all bytes are data.
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(offset)) {
            Ok(data) => data >= end,
            // No data up to the end of the file.
            Err(rustix::io::Errno::NXIO) => true,
            Err(_) => false,
        }
    }

    /// Returns an error if the file was truncated since it was opened.
    fn check_length(&self) -> io::Result<()> {
        let bytes = self.file.metadata()?.len();
        if bytes < self.len {
            return Err(cut_short(&self.place, bytes, self.len));
        }
        Ok(())
    }
}

impl Media for FileMedium {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) if offset + (done as u64) < self.len => {
                    return Err(cut_short(&self.place, self.file.metadata()?.len(), self.len));
                }
                Ok(0) => {
                    into[done..].fill(0);
                    break;
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn will_read(&mut self, pieces: &mut dyn Iterator<Item = (u64, usize)>) {
        for (offset, length) in pieces {
            let length = NonZeroU64::new(length as u64);
            // Only advice: if the host refuses it, the reads are merely slower.
            let _ = rustix::fs::fadvise(&self.file, offset, length, rustix::fs::Advice::WillNeed);
        }
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        if !self.is_writable {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the image is open read-only"));
        }
        if offset + from.len() as u64 >= self.len {
            // A write past a truncated end would hide the truncation.
            self.check_length()?;
        }
        self.is_synced = false;
        let end = offset + from.len() as u64;
        if are_zeros(from) && self.is_hole(offset, end) {
            if end > self.len {
                self.file.set_len(end).map_err(|cause| with_remedy(&self.place, cause))?;
                self.len = end;
            }
            return Ok(());
        }
        let written = self.host.write_all_at(from, offset);
        self.host.note_write(offset, from.len() as u64);
        written.map_err(|cause| with_remedy(&self.place, cause))?;
        self.len = self.len.max(end);
        Ok(())
    }

    /// Returns 512 bytes with syncing. Without syncing only the death of this process interrupts writes, and leaves
    /// whole pages of 4096 bytes.
    fn tear_bytes(&self) -> u64 {
        if self.syncs { 512 } else { 4096 }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_writable {
            self.check_length()?;
        }
        if self.syncs && !self.is_synced {
            self.file.sync_data().map_err(|cause| not_synced(&self.place, cause))?;
            self.is_synced = true;
        }
        Ok(())
    }

    fn flush_waits(&self) -> bool {
        self.syncs
    }

    fn sync(&mut self) -> io::Result<()> {
        if !self.is_writable {
            return Ok(());
        }
        self.check_length()?;
        self.file.sync_all().map_err(|cause| not_synced(&self.place, cause))
    }

    fn forget_cached(&mut self) -> io::Result<()> {
        // Dirty pages stay, clean ones are dropped. Pages that a failed flush could not write are clean.
        Ok(rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed)?)
    }

    fn host_file(&self) -> Option<Arc<HostFile>> {
        Some(self.host.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_what_to_do() {
        for (number, says) in [(libc::ENOSPC, "no space left"), (libc::EDQUOT, "quota"), (libc::EFBIG, "ulimit")] {
            let error = with_remedy("/disks/drive.img", io::Error::from_raw_os_error(number));
            let said = error.to_string();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{said}");
            for part in [says, "/disks/drive.img", "free some and open it again", "nothing that was flushed is lost"] {
                assert!(said.contains(part), "{said} does not say {part}");
            }
        }
        let other = with_remedy("drive.img", io::Error::from_raw_os_error(libc::EIO));
        assert_eq!(other.raw_os_error(), Some(libc::EIO), "any other failure stays as it is");
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .expect("made");
        for mode in [Mode::Read, Mode::Write] {
            let error = FileMedium::open(&path, mode, false).expect_err("no image").to_string();
            assert!(error.contains("is neither a file nor a block device"), "{error}");
        }
    }

    #[test]
    fn zeros_take_no_space_and_replace_data() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().expect("a folder");
        let new = NewFile::create(&folder.path().join("medium"), 0o600).expect("a file");
        let mut medium = FileMedium::new(&new, false).expect("a medium");
        let blocks = |medium: &FileMedium| medium.file.metadata().expect("it is there").blocks();
        medium.write_at(0, &[7; 4096]).expect("there is room");
        let before = blocks(&medium);
        medium.write_at(1 << 20, &vec![0; 8 << 20]).expect("there is room");
        assert_eq!((medium.len(), blocks(&medium)), (9 << 20, before));
        medium.write_at(0, &[0; 8192]).expect("there is room");
        let mut read = vec![9; 9 << 20];
        medium.read_at(0, &mut read).expect("it is there");
        assert!(read.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn whoever_may_not_write_is_told_of_read_only() {
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let said = |mode| cannot_open("drive.img", mode, kind.into()).to_string();
            assert!(said(Mode::Write).contains("`imbrex serve --read-only` serves it"), "{}", said(Mode::Write));
            assert!(!said(Mode::Read).contains("--read-only"), "it would not help: {}", said(Mode::Read));
        }
    }
}
