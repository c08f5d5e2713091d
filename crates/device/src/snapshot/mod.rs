//! Snapshots: consistent copies of images, also of images in use.
//!
//! ```text
//!  blocks shared (reflink):  clone ───────────────► hold: clone again
//!  else:                     notes on ─► copy all ─► copy what was written meanwhile, until little is left ─► hold: copy the rest
//!                            then: header with a name of its own, file mark ─► durable ─► given its name
//! ```
//!
//! For the last step, the owner of an image in use suspends its writes ([`Hold`]), so that step is short. The copy
//! equals the image after a power cut at that moment.
//!
//! `extents` copies data and skips holes; `media/new_file` is the unfinished copy.
//!
//! Invariants:
//! 1. The copy gets its name only when it is complete and durable, and replaces nothing.
//! 2. Holes are never punched into an image. So a range that was copied as data is not a hole in a later pass.

mod extents;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use crate::error::DeviceError;
use crate::image::{Bounds, Header, Space};
use crate::media::Media;
use crate::media::file::{FileMedium, Mode};
use crate::media::host_file::HostFile;
use crate::media::new_file::NewFile;
pub use crate::media::new_file::discard_unfinished;

/// If more bytes than this were written during a pass over an image in use, another pass follows.
const LAST_PASS_BYTES: u64 = 8 << 20;
/// Largest number of passes over an image in use before its writes are suspended, however much is written.
const PASSES_MAX: usize = 6;

/// Method by which a snapshot was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// The file system shares the blocks of the image with the snapshot.
    Reflink,
    /// The bytes were copied.
    Copy,
}

impl Method {
    /// Returns the name of the method in machine-readable output: `reflink` or `copy`.
    pub fn name(self) -> &'static str {
        match self {
            Method::Reflink => "reflink",
            Method::Copy => "copy",
        }
    }
}

/// Result of a finished snapshot, which is a copy of an image in another file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Bytes of data that were copied or shared, without holes. Bytes that were copied again because they had changed
    /// count again.
    pub bytes: u64,
    /// Method by which the snapshot was made.
    pub method: Method,
    /// Real time for which writes to the image were suspended; zero if the image was not in use.
    pub pause: Duration,
    /// UUID of the drive, which the image and the snapshot share.
    pub uuid: Uuid,
    /// New UUID of the snapshot itself.
    pub snapshot: Uuid,
}

/// Reason why a snapshot failed. No file was created.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A file exists at this path of the snapshot.
    #[error("{} exists already, and was not changed", .0.display())]
    Exists(PathBuf),
    /// The snapshot cannot be created or written at its path.
    #[error("cannot make {}: {cause}", .path.display())]
    Target {
        /// Path of the snapshot.
        path: PathBuf,
        /// Error of the operation that failed.
        #[source]
        cause: io::Error,
    },
    /// The disk or the quota of the host has no space for the snapshot at this path.
    #[error("no space left on the disk of {}: free some and take the snapshot again; nothing was made", .0.display())]
    NoSpace(PathBuf),
    /// The progress callback ended the snapshot.
    #[error("interrupted; nothing was made")]
    Interrupted,
    /// The image cannot be read, is no usable image, or the writes of its drive cannot be suspended.
    #[error(transparent)]
    Image(#[from] DeviceError),
}

/// Suspends writes to an image for the last step of a snapshot. Implemented by the owner of the image.
pub trait Hold {
    /// Calls `last_step` once while nothing is written to the image and all acknowledged writes are in it. Returns the
    /// real time for which writes were suspended.
    ///
    /// # Errors
    /// The writes cannot be suspended, or the error of `last_step`.
    fn hold(&self, last_step: &mut dyn FnMut() -> Result<(), SnapshotError>) -> Result<Duration, SnapshotError>;
}

/// The [`Hold`] of an image to which nothing is written: calls the last step at once and returns a time of zero.
pub struct AtRest;

impl Hold for AtRest {
    fn hold(&self, last_step: &mut dyn FnMut() -> Result<(), SnapshotError>) -> Result<Duration, SnapshotError> {
        last_step().map(|()| Duration::ZERO)
    }
}

/// Callback for the progress of a snapshot. It receives the bytes copied so far and the expected total, which may
/// change, and returns whether to continue. The answer is ignored in the last step, while writes to the image are
/// suspended.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Copies the image file `image` to the new file `copy`. A shared lock keeps other processes from writing to the image
/// meanwhile.
///
/// # Errors
/// The image is open for writing elsewhere, is damaged or is itself a copy of an image in use; `copy` exists or cannot
/// be written; the disk is full; or `progress` returned false.
pub fn of_file(image: &Path, copy: &Path, progress: Progress<'_>) -> Result<Snapshot, SnapshotError> {
    let place = image.display().to_string();
    let mut media = FileMedium::open(image, Mode::Read, false)?;
    let host = media.host_file().expect("a medium in a file has one");
    let header = Header::read(&mut media, &place)?;
    // Kept until the copy is complete, because its lock keeps other processes from writing.
    let mut space = Space::open_ruined(media, &header, &place, Bounds::default())?;
    space.refuse_copied_at_work(&place)?;
    of_host_file(&host, copy, &AtRest, progress)
}

/// Accepts an image file that was copied, by other means than a snapshot, while its drive was open: afterwards the
/// image is not refused for that reason any more. Its contents stay as they are: if the drive was written during the
/// copying, they may be damaged, or of different moments. Returns true for such a copy. Returns false, and changes
/// nothing, for any other image.
///
/// # Errors
/// The file cannot be opened for writing, is in use, is not an image, has no readable state, or cannot be written.
pub fn adopt(image: &Path) -> Result<bool, DeviceError> {
    let place = image.display().to_string();
    let mut media = FileMedium::open(image, Mode::Write, true)?;
    let header = Header::read(&mut media, &place)?;
    let mut space = Space::open_ruined(media, &header, &place, Bounds::default())?;
    let is_copy = space.is_copied_at_work()?;
    if is_copy {
        space.adopt()?;
    }
    Ok(is_copy)
}

/// Copies the image in `source`, which may be in use, to the new file `copy`. The copying runs beside the writes to the
/// image; `hold` suspends these only for the last step. The snapshot is durable on return.
///
/// # Errors
/// The image cannot be read or has no valid header; `copy` exists or cannot be written; the disk is full; `hold` fails;
/// or `progress` returned false before the last step or at the end.
pub fn of_host_file(
    source: &HostFile,
    copy: &Path,
    hold: &dyn Hold,
    progress: Progress<'_>,
) -> Result<Snapshot, SnapshotError> {
    let mode = source.file().metadata().map_err(|cause| reading(source, cause))?.mode() & 0o777;
    let target = NewFile::create(copy, mode).map_err(|cause| failed(copy, cause))?;
    let mut pass = Pass { source, target: &target, progress, bytes: 0, all: 0 };
    let (method, pause) = match pass.share()? {
        true => (Method::Reflink, hold.hold(&mut || pass.share().map(drop))?),
        false => {
            source.begin_notes();
            let copied = pass.copy_at_work(hold);
            source.end_notes();
            (Method::Copy, copied?)
        }
    };
    let Pass { progress, bytes, .. } = pass;
    let (uuid, snapshot) = name(&target)?;
    target.settle().map_err(|cause| failed(copy, cause))?;
    if !progress(bytes, bytes) {
        return Err(SnapshotError::Interrupted);
    }
    target.finish().map_err(|cause| failed(copy, cause))?;
    Ok(Snapshot { bytes, method, pause, uuid, snapshot })
}

/// Returns the error for a failed operation on the copy at `path`.
fn failed(path: &Path, cause: io::Error) -> SnapshotError {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            SnapshotError::NoSpace(path.into())
        }
        io::ErrorKind::AlreadyExists => SnapshotError::Exists(path.into()),
        _ => SnapshotError::Target { path: path.into(), cause },
    }
}

fn reading(source: &HostFile, cause: io::Error) -> SnapshotError {
    SnapshotError::Image(DeviceError::medium(format!("reading {}", source.path().display()), cause))
}

/// Gives the copy in `target` a UUID of its own, and the mark of its own file. Returns the UUIDs of the drive and of
/// the copy.
fn name(target: &NewFile) -> Result<(Uuid, Uuid), SnapshotError> {
    let full = |error: DeviceError| match error {
        DeviceError::Medium { cause, .. } => failed(target.path(), cause),
        other => SnapshotError::Image(other),
    };
    let place = target.path().display().to_string();
    let mut media = FileMedium::new(target, false).map_err(|cause| failed(target.path(), cause))?;
    let snapshot = Uuid::new_v4();
    let header = Header { snapshot: Some(snapshot), ..Header::read(&mut media, &place)? };
    header.write(&mut media).map_err(full)?;
    let mut space = Space::open_ruined(media, &header, &place, Bounds::default())?;
    space.mark_file().map_err(full)?;
    Ok((header.uuid, snapshot))
}

/// Progress of copying one image.
struct Pass<'a, 'p> {
    source: &'a HostFile,
    target: &'a NewFile,
    progress: Progress<'p>,
    bytes: u64,
    all: u64,
}

impl Pass<'_, '_> {
    /// Makes the copy share all blocks of the image, if the file system can. Returns whether it can.
    fn share(&mut self) -> Result<bool, SnapshotError> {
        use rustix::io::Errno;
        match rustix::fs::ioctl_ficlone(self.target.file(), self.source.file()) {
            Ok(()) => {
                self.bytes = extents::data_bytes(self.source.file()).map_err(|cause| reading(self.source, cause))?;
                Ok(true)
            }
            Err(Errno::NOSPC | Errno::DQUOT) => Err(SnapshotError::NoSpace(self.target.path().into())),
            // If sharing blocks fails for any reason, the bytes can still be copied.
            Err(_) => Ok(false),
        }
    }

    /// Copies an image that is written to at the same time. Returns how long its writes were suspended.
    fn copy_at_work(&mut self, hold: &dyn Hold) -> Result<Duration, SnapshotError> {
        let all = self.length()?;
        self.all = extents::data_bytes(self.source.file()).map_err(|cause| reading(self.source, cause))?;
        self.copy(0..all, true)?;
        for _ in 1..PASSES_MAX {
            let written = self.source.take_notes();
            let left: u64 = written.iter().map(|run| run.end - run.start).sum();
            self.all = self.bytes + left;
            written.into_iter().try_for_each(|run| self.copy(run, true))?;
            // Synced, so that the sync in the last step has little left to write.
            self.target.file().sync_data().map_err(|cause| failed(self.target.path(), cause))?;
            if left <= LAST_PASS_BYTES {
                break;
            }
        }
        hold.hold(&mut || {
            self.source.take_notes().into_iter().try_for_each(|run| self.copy(run, false))?;
            let length = self.length()?;
            self.target.file().set_len(length).map_err(|cause| failed(self.target.path(), cause))
        })
    }

    fn length(&self) -> Result<u64, SnapshotError> {
        Ok(self.source.file().metadata().map_err(|cause| reading(self.source, cause))?.len())
    }

    /// Copies the data in `range` of the file; `may_stop` says whether `progress` may interrupt the copying.
    fn copy(&mut self, range: std::ops::Range<u64>, may_stop: bool) -> Result<(), SnapshotError> {
        let (bytes, all, progress) = (&mut self.bytes, self.all, &mut self.progress);
        let copied = extents::copy(self.source.file(), self.target.file(), range, &mut |piece| {
            *bytes += piece;
            progress(*bytes, all.max(*bytes)) || !may_stop
        });
        match copied {
            Ok(true) => Ok(()),
            Ok(false) => Err(SnapshotError::Interrupted),
            Err(extents::CopyError::Read(cause)) => Err(reading(self.source, cause)),
            Err(extents::CopyError::Write(cause)) => Err(failed(self.target.path(), cause)),
        }
    }
}

#[cfg(test)]
mod tests;
