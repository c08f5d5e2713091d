//! An image file of an emulated drive, in virtual time: the emulated drive serves reads and writes, and its clock times
//! them. Its volatile cache and look-ahead are off while the target is open. This setting is not stored in the image,
//! so that the next open has both again.
//!
//! Invariants:
//! 1. An image opened without permission to write is not changed.
//! 2. An image opened for writing is shut down cleanly when the target is dropped.
//! 3. The image does not fill its file system: the probe ends when less than [`ROOM_BYTES`] are free.

use std::path::Path;

use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind};
use imbrex_disk::SimTime;
use imbrex_sim::Stepped;

use super::filler::Filler;
use super::virtual_time::{Finished, HEAD_SAMPLES, Machine, VirtualTime, path};
use crate::target::{About, Direction, Done, HeadPath, Next, Operation, Target, TargetError};
use imbrex_safety::Survey;

/// Space that the probe leaves free on the image's file system, bytes.
const ROOM_BYTES: u64 = 2 << 30;
/// Number of bytes written between two checks of the free space.
const LOOK_BYTES: u64 = 64 << 20;

/// The emulated drive, as a [`Machine`].
struct Emulated {
    drive: EmulatedDrive,
    place: String,
    /// Number of bytes written since the last check of the free space.
    unlooked_bytes: u64,
    filler: Filler,
    /// Buffer of a completed operation, for reuse.
    spare: Vec<u8>,
}

impl Emulated {
    fn failed(&self, error: &DeviceError) -> TargetError {
        TargetError::failed(self.place.clone(), error.to_string())
    }

    /// Counts `bytes` as written. After every [`LOOK_BYTES`], returns an error if less than [`ROOM_BYTES`] are free.
    fn check_room(&mut self, bytes: u64) -> Result<(), TargetError> {
        self.unlooked_bytes += bytes;
        if self.unlooked_bytes < LOOK_BYTES {
            return Ok(());
        }
        self.unlooked_bytes = 0;
        let room = rustix::fs::statvfs(self.place.as_str()).map(|facts| facts.f_bavail.saturating_mul(facts.f_frsize));
        match room {
            Ok(left) if left < ROOM_BYTES => {
                let reason = "the image has grown until its file system is nearly full; put it on a larger one, leave the \
                              test out, or probe the drive as sim:DRIVE, which needs no room";
                Err(TargetError::failed(self.place.clone(), reason))
            }
            // If the file system does not report its free space, it may fill up, and then a write fails.
            _ => Ok(()),
        }
    }
}

impl Machine for Emulated {
    fn submit(&mut self, at: SimTime, operation: &Operation) -> Result<u64, TargetError> {
        let mut buffer = std::mem::take(&mut self.spare);
        buffer.clear();
        let kind = match operation.direction {
            Direction::Read => IoKind::Read,
            Direction::Write => {
                self.check_room(operation.bytes)?;
                buffer.extend_from_slice(self.filler.bytes(operation.bytes as usize));
                IoKind::Write { fua: false }
            }
        };
        let io = Io { kind, offset: operation.offset, length: operation.bytes, buffer };
        self.drive.submit(at, io).map_err(|error| self.failed(&error))
    }

    fn step(&mut self, until: SimTime) -> Stepped {
        self.drive.step(until)
    }

    fn finished(&mut self, finished: &mut Vec<Finished>) -> Result<(), TargetError> {
        let mut failure = None;
        let mut spare = None;
        for completion in self.drive.completions() {
            // A read of a sector that is not whole fails, but takes as long as any other.
            failure = completion.outcome.err().or(failure);
            let (begin_ns, end_ns) = (completion.entry.0, completion.end.0);
            finished.push(Finished { number: completion.number, begin_ns, end_ns });
            spare = Some(completion.buffer);
        }
        self.spare = spare.unwrap_or_default();
        failure.map_or(Ok(()), |error| Err(self.failed(&error)))
    }

    fn now(&self) -> SimTime {
        self.drive.now()
    }

    fn take_head_path(&mut self) -> Option<HeadPath> {
        let path = path(&self.drive.drive().disk, self.drive.timing().actuator().head_log());
        self.drive.restart_head_log(HEAD_SAMPLES);
        path
    }
}

/// The image file of an emulated drive as a target in virtual time. The drive's volatile cache and look-ahead are off
/// while it is open.
pub struct Image {
    drive: VirtualTime<Emulated>,
    about: About,
    is_writable: bool,
}

impl Image {
    /// Returns whether the file at `path` begins with the magic number of an image. Returns false if the file cannot be
    /// read.
    pub fn is_one(path: &Path) -> bool {
        use std::os::unix::fs::FileTypeExt;
        // To open a pipe is to wait for its writer.
        if path.metadata().is_ok_and(|is| is.file_type().is_fifo()) {
            return false;
        }
        let mut magic = [0; imbrex_device::image::MAGIC.len()];
        let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut magic));
        read.is_ok() && magic == imbrex_device::image::MAGIC
    }

    /// Opens the image file at `path` as a target. Without `may_write`, operations must not write, the file is not
    /// changed, and the drive does not clean when it is idle. With it, written data may be lost in a crash of the host.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, is in use, or is not a valid image.
    pub fn open(path: &Path, may_write: bool) -> Result<Image, TargetError> {
        let opened =
            if may_write { EmulatedDrive::open_file(path, false) } else { EmulatedDrive::open_file_to_look(path) };
        let place = path.display().to_string();
        let mut drive = opened.map_err(|error| {
            let reason = error.to_string();
            let reason = reason.strip_prefix(&format!("{place}: ")).unwrap_or(&reason).to_string();
            TargetError::failed(place.clone(), reason)
        })?;
        drive.set_caches(0, 0);
        let (size_bytes, sector_bytes) = (drive.capacity_bytes(), drive.sector_bytes());
        let about = About { name: place.clone(), size_bytes, sector_bytes, is_virtual: true };
        let machine =
            Emulated { drive, place, unlooked_bytes: LOOK_BYTES, filler: Filler::default(), spare: Vec::new() };
        Ok(Image { drive: VirtualTime::new(machine), about, is_writable: may_write })
    }

    /// Returns whether the host must avoid writes that destroy data: true for a zoned drive, which must be written at
    /// the write pointers of its zones, and for a caveat disk.
    pub fn is_host_managed(&self) -> bool {
        self.emulated().drive().layer.is_host_managed()
    }

    /// Surveys the contents of the emulated drive before it is written: file systems, partition tables and other
    /// contents that have a known signature. Other data are not found, and unreadable sectors count as zeros.
    ///
    /// # Errors
    ///
    /// The contents cannot be examined.
    pub fn survey(&mut self) -> std::io::Result<Survey> {
        self.drive.machine.drive.survey(&self.about.name)
    }

    fn emulated(&self) -> &EmulatedDrive {
        &self.drive.machine.drive
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.is_writable {
            // An image that could not be shut down is recovered from its journal at the next open.
            let _ = self.drive.machine.drive.shut_down();
        }
    }
}

impl Target for Image {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.drive.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        self.drive.perform(depth, next, done)
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        self.drive.sleep(ns);
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let drive = self.emulated().drive();
        vec![
            ("model", format!("image of an emulated drive, {}", drive.label)),
            ("volatile cache", "off".into()),
            ("look-ahead", "off".into()),
        ]
    }

    fn head_path(&mut self) -> Option<HeadPath> {
        self.drive.machine.take_head_path()
    }
}
