//! A new file on a mounted file system, in real time: direct access by io_uring, with its places on the drive by FIEMAP. The
//! drive stays in use.
//!
//! Invariants:
//! 1. No bytes but those of the new file are written by this target.
//! 2. The file has no name, so that it is gone once the process ends, however it ends.
//! 3. Nothing is measured before the whole file is written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use imbrex_safety::usage::Device;
use rustix::fs::StatxAttributes;

use super::fiemap;
use super::others::Others;
use super::real_time::{RealTime, sleep};
use super::ring::Ring;
use super::stack::{Below, drive_below};
use crate::extents::Extents;
use crate::target::{About, Done, Next, Operation, Target, TargetError, latencies};
use crate::words::size;

/// Unit of access in bytes: every file system accepts it.
const SECTOR_BYTES: u32 = 4096;
/// Length of one write while the file is filled, and the number of them in flight.
const FILL_BYTES: u64 = 4 << 20;
const FILL_DEPTH: usize = 4;
/// Longest idle time after the file is filled, in which a volatile cache writes its contents back, nanoseconds; and the rate at
/// which it writes at least, in bytes per second, since it holds no more than the file.
const DRAIN_NS: u64 = 30_000_000_000;
const DRAIN_RATE: u64 = 10_000_000;
/// Part of the free room that the file leaves, as a reciprocal, and the least room left in bytes.
const ROOM_LEFT_PART: u64 = 20;
const ROOM_LEFT_BYTES: u64 = 1 << 30;
/// Shortest time between two looks at the counters of the drive, nanoseconds.
const LOOK_NS: u64 = 500_000_000;
/// Time of one wait for others, and longest sum of all waits, nanoseconds.
const WAIT_NS: u64 = 1_000_000_000;
const WAITS_NS: u64 = 600_000_000_000;
/// Share of the looks with requests of others from which no answer has high confidence.
const DISTURBED_SHARE: f64 = 0.05;

/// A file system on which a file lies on the drive as FIEMAP says, and is rewritten in place.
const FIT: [(i64, &str); 3] = [(0xEF53, "ext4"), (0x5846_5342, "XFS"), (0x7366_746e, "NTFS3")];

/// Other file systems, with the reason for which a file on them tells nothing.
const UNFIT: [(i64, &str); 14] = [
    (0x9123_683E, "Btrfs moves a block when it is written"),
    (0x2FC1_2FC1, "ZFS moves a block when it is written"),
    (0xCA45_1A4E_u32 as i64, "bcachefs moves a block when it is written"),
    (0xF2F5_2010_u32 as i64, "F2FS moves a block when it is written"),
    (0x3434, "NILFS2 moves a block when it is written"),
    (0x794C_7630, "it is an overlay of other folders, as in a container"),
    (0x0102_1994, "it is in memory (tmpfs)"),
    (0x8584_58F6_u32 as i64, "it is in memory (ramfs)"),
    (0x6969, "it is on another machine (NFS)"),
    (0xFF53_4D42_u32 as i64, "it is on another machine (CIFS)"),
    (0xFE53_4D42_u32 as i64, "it is on another machine (SMB)"),
    (0x0102_1997, "it is on another machine (9p)"),
    (0x6573_5546, "it is served by a program (FUSE)"),
    (0xF15F, "it is encrypted file by file (eCryptfs)"),
];

/// A place for a new file, which was examined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The folder of the file.
    pub folder: PathBuf,
    /// Name of the file system, such as `ext4`.
    pub file_system: &'static str,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Room that is free in bytes, before the file is made.
    pub free_bytes: u64,
    below: Below,
}

impl Place {
    /// Examines the place of a new file of `file_bytes` bytes: `path` is its folder, or a name in its folder that does not
    /// exist. Writes nothing.
    ///
    /// # Errors
    ///
    /// A file there would not lie on one drive, would be moved when it is written, or would not leave room for others.
    pub fn examine(path: &Path, file_bytes: u64) -> Result<Place, TargetError> {
        let failed = |reason: String| TargetError::failed(path.display().to_string(), reason);
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            return Err(failed("exists; name a file that does not, or a folder".into()));
        }
        let folder = match path.parent() {
            _ if path.is_dir() => path.to_path_buf(),
            Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
            Some(parent) => parent.to_path_buf(),
            None => return Err(failed("is no name of a file".into())),
        };
        let opened = File::open(&folder).map_err(|error| failed(format!("its folder: {error}")))?;
        let facts = rustix::fs::fstatfs(&opened).map_err(|error| failed(error.to_string()))?;
        let kind = facts.f_type as i64;
        if let Some((_, why)) = UNFIT.iter().find(|(magic, _)| *magic == kind & 0xFFFF_FFFF) {
            return Err(failed(format!("{why}: a file there tells nothing of a drive")));
        }
        let Some((_, file_system)) = FIT.iter().find(|(magic, _)| *magic == kind) else {
            return Err(failed(format!("its file system (type {kind:#x}) is none of ext4, XFS and NTFS3")));
        };
        if let Some(why) = changed_by_file(&opened) {
            return Err(failed(format!("{why}: a file there does not lie on the drive as it is written")));
        }
        let device = opened.metadata().map_err(|error| failed(error.to_string()))?.dev();
        let number = (libc::major(device), libc::minor(device));
        let below = drive_below(Path::new("/sys"), number, &table)
            .map_err(|reason| failed(format!("its file system: {reason}")))?;
        let free_bytes = (facts.f_bavail as u64).saturating_mul(facts.f_bsize as u64);
        let left_bytes = (free_bytes / ROOM_LEFT_PART).max(ROOM_LEFT_BYTES);
        if free_bytes < file_bytes.saturating_add(left_bytes) {
            let [free, file, left] = [free_bytes, file_bytes, left_bytes].map(|bytes| size(bytes as f64));
            return Err(failed(format!(
                "{free} are free; the file of {file} and {left} for others do not fit: give a smaller --size, or make room"
            )));
        }
        Ok(Place { folder, file_system, file_bytes, free_bytes, below })
    }

    /// Returns the kernel's name of the drive, such as `sda`.
    pub fn drive(&self) -> &str {
        &self.below.name
    }

    /// Returns the devices between the file system and the drive, the uppermost first.
    pub fn through(&self) -> &[String] {
        &self.below.through
    }

    /// Returns the drive, for facts about it.
    pub fn device(&self) -> Option<Device> {
        let text = std::fs::read_to_string(self.below.folder.join("dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        Device::of(libc::makedev(major.parse().ok()?, minor.parse().ok()?)).ok()
    }
}

/// Returns the reason for which the file system stores the files of a folder in another form.
fn changed_by_file(folder: &File) -> Option<&'static str> {
    let facts = rustix::fs::statx(folder, "", rustix::fs::AtFlags::EMPTY_PATH, rustix::fs::StatxFlags::empty()).ok()?;
    let attributes = facts.stx_attributes;
    match () {
        () if attributes.contains(StatxAttributes::ENCRYPTED) => Some("its files are encrypted one by one"),
        () if attributes.contains(StatxAttributes::COMPRESSED) => Some("its files are compressed"),
        () => None,
    }
}

/// Returns the table of a device-mapper device, from the program `dmsetup`, which asks the kernel; only root may.
fn table(name: &str) -> Option<String> {
    let output = std::process::Command::new("dmsetup").args(["table", "--", name]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A new file as a target in real time.
pub struct NewFile {
    ring: Ring,
    file: File,
    time: RealTime,
    about: About,
    place: Place,
    extents: Option<Extents>,
    others: Others,
    looked_ns: u64,
    own_bytes: u64,
    looks: u64,
    disturbed: u64,
    waited_ns: u64,
    should_stop: Box<dyn Fn() -> bool>,
}

impl NewFile {
    /// Makes the file, without a name, and reserves its room where the file system can. Nothing is written yet. While the target
    /// waits for others, it asks `should_stop` each second whether to end.
    ///
    /// # Errors
    ///
    /// The file cannot be made or reserved, or the kernel permits no io_uring.
    pub fn make(place: Place, should_stop: impl Fn() -> bool + 'static) -> Result<NewFile, TargetError> {
        let name = place.folder.display().to_string();
        let failed = |error: io::Error| TargetError::failed(name.clone(), error.to_string());
        let file = unnamed(&place.folder).map_err(failed)?;
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, place.file_bytes) {
            // Without it, as on ext3, the file is placed as it is written.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let ring = file.try_clone().and_then(|file| Ring::new(file, true)).map_err(failed)?;
        let about = About { name, size_bytes: place.file_bytes, sector_bytes: SECTOR_BYTES, is_virtual: false };
        let others = Others::of(&place.below.folder);
        Ok(NewFile {
            ring,
            file,
            time: RealTime::new(),
            about,
            place,
            extents: None,
            others,
            looked_ns: 0,
            own_bytes: 0,
            looks: 0,
            disturbed: 0,
            waited_ns: 0,
            should_stop: Box::new(should_stop),
        })
    }

    /// Writes the file once, in order, waits until the drive has written it, and learns its places. `written` receives the
    /// number of bytes so far, and returns whether to go on.
    ///
    /// # Errors
    ///
    /// A write fails, the user ends it, or the file system does not tell the places of the file.
    pub fn fill(&mut self, written: &mut dyn FnMut(u64) -> bool) -> Result<(), TargetError> {
        let bytes = self.about.size_bytes;
        let mut offset = 0;
        while offset < bytes {
            let end = bytes.min(offset + FILL_BYTES * FILL_DEPTH as u64);
            let steps = (offset..end).step_by(FILL_BYTES as usize);
            let writes: Vec<_> = steps.map(|at| Operation::write(at, FILL_BYTES.min(bytes - at))).collect();
            latencies(self, FILL_DEPTH, &writes)?;
            offset = end;
            if !written(offset) {
                return Err(TargetError::Interrupted);
            }
        }
        self.file.sync_all().map_err(|error| TargetError::failed(self.about.name.clone(), error.to_string()))?;
        let extents =
            fiemap::extents(&self.file).map_err(|reason| TargetError::failed(self.about.name.clone(), reason))?;
        if extents.bytes() < bytes {
            let reason = format!("the file system tells the places of {} bytes of {bytes}", extents.bytes());
            return Err(TargetError::failed(self.about.name.clone(), reason));
        }
        self.extents = Some(extents);
        let drain_ns = (bytes.saturating_mul(1_000_000_000) / DRAIN_RATE).min(DRAIN_NS);
        let mut drained_ns = 0;
        while drained_ns < drain_ns {
            self.sleep(WAIT_NS)?;
            drained_ns += WAIT_NS;
            if !written(bytes) {
                return Err(TargetError::Interrupted);
            }
        }
        Ok(())
    }

    /// Returns the places of the file on the drive, if it was filled; on the volume if the place of the volume is not known.
    pub fn extents(&self) -> Option<&Extents> {
        self.extents.as_ref()
    }

    /// Looks at the counters of the drive, if the last look is long ago, and waits while others use it or it is hot.
    ///
    /// # Errors
    ///
    /// [`TargetError::Interrupted`] if the user ends the probe meanwhile.
    fn wait_for_others(&mut self) -> Result<(), TargetError> {
        let now_ns = self.time.now_ns();
        if now_ns - self.looked_ns < LOOK_NS {
            return Ok(());
        }
        let (waited_ns, should_stop) = (&mut self.waited_ns, &self.should_stop);
        let mut pause = || {
            if *waited_ns >= WAITS_NS || should_stop() {
                return false;
            }
            sleep(WAIT_NS);
            *waited_ns += WAIT_NS;
            true
        };
        let own_bytes = std::mem::take(&mut self.own_bytes);
        let is_disturbed = self.others.wait(own_bytes, now_ns - self.looked_ns, WAIT_NS, &mut pause);
        self.looks += 1;
        self.disturbed += u64::from(is_disturbed);
        self.looked_ns = self.time.now_ns();
        if (self.should_stop)() { Err(TargetError::Interrupted) } else { Ok(()) }
    }
}

/// Creates a file without a name in `folder`. A file system that cannot do so gets one with a name, which is removed at once.
fn unnamed(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_DIRECT | libc::O_TMPFILE).open(folder) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT)) => {}
        outcome => return outcome,
    }
    let path = folder.join(format!(".imbrex-probe-{}", std::process::id()));
    let file = options.create_new(true).custom_flags(libc::O_DIRECT).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

impl Target for NewFile {
    fn about(&self) -> &About {
        &self.about
    }

    fn now_ns(&self) -> u64 {
        self.time.now_ns()
    }

    fn perform(&mut self, depth: usize, next: &mut Next<'_>, done: &mut Done<'_>) -> Result<(), TargetError> {
        self.wait_for_others()?;
        let own_bytes = &mut self.own_bytes;
        self.time.perform(&mut self.ring, &self.about.name, depth, next, &mut |timed| {
            *own_bytes += timed.operation.bytes;
            done(timed)
        })
    }

    fn sleep(&mut self, ns: u64) -> Result<(), TargetError> {
        sleep(ns);
        Ok(())
    }

    fn disturbance(&self) -> Option<String> {
        let share = self.disturbed as f64 / self.looks.max(1) as f64;
        (share > DISTURBED_SHARE).then(|| {
            format!(
                "others used the drive in {:.0} % of the time: repeat the probe when the machine is idle",
                share * 100.0
            )
        })
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = self.place.device().map(|device| device.facts()).unwrap_or_default();
        facts.push(("drive", format!("/dev/{}", self.place.drive())));
        if !self.place.through().is_empty() {
            facts.push(("through", self.place.through().join(", ")));
        }
        facts.push(("file system", self.place.file_system.to_string()));
        if let Some(extents) = &self.extents {
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            let offset = self.place.below.offset_bytes;
            let first = extents.iter().map(|extent| extent.physical).min().unwrap_or(0) + offset.unwrap_or(0);
            let last = extents.reaches_to() + offset.unwrap_or(0);
            let of = if offset.is_some() { "the drive" } else { "the volume" };
            facts.push((
                "places of the file",
                format!("{} pieces from {:.1} to {:.1} GiB of {of}", extents.count(), gib(first), gib(last)),
            ));
        }
        facts
    }
}
