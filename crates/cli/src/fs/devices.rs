//! The devices of a file system: finds out their kinds, opens them, finds the missing ones by UUID.

use std::fs::File;
use std::future::Future;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use imbrex::Failure;
use imbrex_device::EmulatedDrive;
use imbrex_device::image;
use imbrex_fs::core::look;
use imbrex_fs::device::background::Background;
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::device::file::FileBackend;
use imbrex_fs::device::file_view::FileView;
use imbrex_fs::device::{BLOCK_BYTES, Backend, DeviceFault};
use imbrex_fs::format::superblock::Superblock;
use imbrex_fs::{Device, Executor, FsError};
use imbrex_safety::Survey;

use crate::consent::{self, Consent};

/// Purpose for which devices are opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Reading: nothing is changed, and other processes may read too.
    Look,
    /// Offline work: exclusive access. Flushed writes survive the process, and after a clean end the host.
    Work,
    /// Offline work on views of the devices: all writes stay in memory and are lost in the end. The devices stay
    /// unchanged, and other processes may read them.
    Trial,
    /// Serving a mount: exclusive access. Flushed writes survive a crash of the host too.
    Serve,
}

/// The devices of one file system.
pub(super) struct Devices {
    /// The opened devices of the file system, in any order.
    pub all: Vec<Device>,
    /// Paths of the opened devices, in the order of `all`.
    pub paths: Vec<PathBuf>,
}

/// Executes `task` to its end.
///
/// # Errors
/// The task fails, or waits for space on the host's disk.
pub(super) fn run<T: 'static>(
    executor: &Executor,
    task: impl Future<Output = Result<T, FsError>> + 'static,
) -> Result<T, Failure> {
    complete(executor, task)?.map_err(Failure::failed)
}

/// Executes `task` to its end.
///
/// # Errors
/// The task waits for space on the host's disk.
pub(super) fn complete<T: 'static>(executor: &Executor, task: impl Future<Output = T> + 'static) -> Result<T, Failure> {
    let running = executor.clone();
    let outcome = executor.run(async move { running.unless_blocked(task).await }).map_err(Failure::failed)?;
    outcome.map_err(|reason| {
        Failure::failed(reason)
            .or_try("free space on that disk, and give the same command again; its work so far is kept")
    })
}

/// Returns the time of day in nanoseconds since 1970.
pub(super) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Kind of the device at a path.
enum Kind {
    Image,
    Zoned,
    Plain,
}

fn kind(path: &Path) -> Result<Kind, Failure> {
    let place = path.display();
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::failed(format!("{place} is not there"))
            .or_try(format!("`imbrex drive create {place} --drive strict-append` makes an image of an emulated drive")),
        _ => Failure::failed(format!("{place}: {error}")),
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::failed(format!("{place} is a directory, not a device"))
            .or_try("the image or block device that holds the file system"));
    }
    if metadata.file_type().is_block_device() {
        let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
        let model = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/queue/zoned")).unwrap_or_default();
        return Ok(if model.trim() == "host-managed" { Kind::Zoned } else { Kind::Plain });
    }
    let mut first = [0; 8];
    let is_image = File::open(path).map_err(failed)?.read_exact(&mut first).is_ok() && first == image::MAGIC;
    Ok(if is_image { Kind::Image } else { Kind::Plain })
}

/// Returns whether the device at `path` is the image of an emulated drive, whose requests take simulated time.
pub(super) fn has_simulated_time(path: &Path) -> Result<bool, Failure> {
    Ok(matches!(kind(path)?, Kind::Image))
}

/// Prepares an emulated drive that was opened, before its first request.
pub(super) type Prepare<'a> = &'a dyn Fn(&mut EmulatedDrive) -> Result<(), Failure>;

fn emulated(
    path: &Path,
    purpose: Purpose,
    is_paced: bool,
    prepare: Prepare<'_>,
) -> Result<Box<dyn Backend + Send>, Failure> {
    let mut drive = match purpose {
        Purpose::Look => EmulatedDrive::open_file_to_look(path)?,
        Purpose::Work => EmulatedDrive::open_file(path, false)?,
        Purpose::Trial => EmulatedDrive::open_file_view(path)?,
        Purpose::Serve => EmulatedDrive::open_file(path, true)?,
    };
    prepare(&mut drive)?;
    let emulated = Emulated::new(drive).map_err(|fault| Failure::failed(format!("{}: {fault}", path.display())))?;
    Ok(if is_paced { Box::new(emulated) } else { Box::new(emulated.unpaced()) })
}

#[cfg(target_os = "linux")]
fn zoned(path: &Path) -> Result<Box<dyn Backend + Send>, Failure> {
    let device = imbrex_device::zoned::LinuxZoned::open(path)?;
    let linux = imbrex_fs::device::linux::Linux::new(device);
    linux.map(|linux| Box::new(linux) as _).map_err(|fault| Failure::failed(format!("{}: {fault}", path.display())))
}

#[cfg(not(target_os = "linux"))]
fn zoned(path: &Path) -> Result<Box<dyn Backend + Send>, Failure> {
    Err(Failure::failed(format!("{}: zoned block devices are for Linux", path.display())))
}

/// Opens the devices in `paths` for a file system that erases them, and asks for the user's consent. A device that is
/// refused has not been written: an image is examined before it is opened for writing, and again afterwards.
pub(super) fn open_new(
    executor: &Executor,
    paths: &[&Path],
    consent: Consent,
    check: impl FnOnce(&[Device]) -> Result<(), Failure>,
) -> Result<Vec<Device>, Failure> {
    for (index, path) in paths.iter().enumerate() {
        if let Some(other) = paths[..index].iter().find(|other| are_same(other, path)) {
            let twice =
                if other == path { "is given twice".into() } else { format!("is {}, given twice", other.display()) };
            return Err(Failure::usage(format!("{}: {twice}", path.display())).or_try("each device once"));
        }
    }
    for path in paths.iter().filter(|path| matches!(kind(path), Ok(Kind::Image))) {
        consent::check(&[survey_path(path)?], consent)?;
    }
    let mut devices = Vec::new();
    let opened = || {
        for path in paths {
            devices.push(open(executor, path, Purpose::Work, false)?);
        }
        check(&devices)?;
        let surveys: Vec<Survey> = devices.iter().map(survey).collect::<Result<_, _>>()?;
        consent::ask(&surveys, consent, "all of it is erased")
    };
    if let Err(failure) = opened() {
        // An image that was not shut down looks as if it were still in use. Its own error is none of the user's.
        devices.iter().for_each(|device| drop(device.shut_down()));
        return Err(failure);
    }
    Ok(devices)
}

/// Asks for the user's consent before a process that serves a file system erases the device in `path`. A device that is
/// in use is not checked here: the serving process refuses it, unless the device belongs to that process.
pub(super) fn ask_for(path: &Path, consent: Consent) -> Result<(), Failure> {
    match survey_path(path) {
        Ok(survey) => consent::ask(&[survey], consent, "all of it is erased"),
        Err(failure) if is_in_use(&failure) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Finds the users and contents of a device, through the handle by which it is read and written.
pub(super) fn survey(device: &Device) -> Result<Survey, Failure> {
    device.survey().map_err(consent::not_surveyed(device.name()))
}

/// Finds the users and contents of the device in `path`. The device is closed afterwards.
pub(super) fn survey_path(path: &Path) -> Result<Survey, Failure> {
    let executor = Executor::in_virtual_time();
    let survey = survey(&open(&executor, path, Purpose::Look, false)?);
    executor.shut_down();
    survey
}

/// Opens one device. With `is_paced` an emulated drive takes its simulated time for every answer, else it answers at
/// once.
pub(super) fn open(executor: &Executor, path: &Path, purpose: Purpose, is_paced: bool) -> Result<Device, Failure> {
    open_prepared(executor, path, purpose, is_paced, &|_| Ok(()))
}

fn open_prepared(
    executor: &Executor,
    path: &Path,
    purpose: Purpose,
    is_paced: bool,
    prepare: Prepare<'_>,
) -> Result<Device, Failure> {
    let backend = match kind(path)? {
        Kind::Image => emulated(path, purpose, is_paced, prepare).map_err(in_use)?,
        Kind::Zoned if purpose == Purpose::Trial => return Err(no_view(path)),
        Kind::Zoned => zoned(path)?,
        Kind::Plain if purpose == Purpose::Trial => {
            Box::new(FileView::open(path).map_err(|fault| in_use(Failure::failed(fault)))?)
        }
        Kind::Plain => {
            let file = FileBackend::open(path, purpose != Purpose::Look);
            Box::new(file.map_err(|fault: DeviceFault| in_use(Failure::failed(fault)))?)
        }
    };
    // Lets a mounted file system continue while a device works. The answers of a paced drive are asynchronous anyway.
    let backend: Box<dyn Backend> = match purpose {
        Purpose::Serve if !is_paced => Box::new(Background::new(backend, executor.notify())),
        _ => backend,
    };
    Ok(Device::new(executor, &path.display().to_string(), backend))
}

/// Returns an error if one of the devices in `paths` has no view ([`Purpose::Trial`]): a zoned block device of the
/// kernel.
pub(super) fn check_views(paths: &[PathBuf]) -> Result<(), Failure> {
    let is_zoned = |path: &&PathBuf| matches!(kind(path), Ok(Kind::Zoned));
    paths.iter().find(is_zoned).map_or(Ok(()), |path| Err(no_view(path)))
}

/// Returns the failure for a zoned block device of the kernel, whose writes cannot be kept in memory.
fn no_view(path: &Path) -> Failure {
    let words =
        format!("--seeds above 1 does not apply to {}: a real zoned device cannot be left unchanged", path.display());
    Failure::usage(words)
        .or_try("one run with each --seed, after `imbrex fs mkfs` each time; or images of emulated drives")
}

/// Returns whether a device was refused because another process has it.
pub(super) fn is_in_use(failure: &Failure) -> bool {
    failure.message.contains("in use by another process")
}

/// Returns whether a device was refused because another process has it, or the kernel, which can have block devices
/// only.
pub(super) fn is_held(failure: &Failure) -> bool {
    is_in_use(failure) || failure.message.contains("in use: another process")
}

/// Adds a remedy to `failure` if another process has the device.
fn in_use(failure: Failure) -> Failure {
    if is_in_use(&failure) {
        return failure.or_try("`imbrex fs umount DIR` if it is mounted, `imbrex fs stat DIR` to look at it meanwhile");
    }
    failure
}

/// Devices whose superblock could be read, with their paths.
type Known = Vec<(Superblock, PathBuf)>;

/// Refuses the device at `path` if a device in `known` has the same UUID: one is a copy of the other, from another
/// time, and only the user knows which one is wanted.
fn refuse_copy(known: &[(Superblock, PathBuf)], superblock: &Superblock, path: &Path) -> Result<(), Failure> {
    let uuid = superblock.own().uuid;
    let Some((_, other)) = known.iter().find(|(there, _)| there.own().uuid == uuid) else { return Ok(()) };
    let (one, other) = (other.display(), path.display());
    let words =
        format!("{one} and {other} are the same device ({uuid}) of one file system: one is a copy of the other");
    Err(Failure::failed(words).or_try("the device to keep, with the other moved to another folder"))
}

impl Devices {
    /// Opens the devices in `paths`, and the other devices of their file system that lie in the folder of the first.
    pub(super) fn open(
        executor: &Executor,
        paths: &[PathBuf],
        purpose: Purpose,
        is_paced: bool,
    ) -> Result<Devices, Failure> {
        Devices::open_prepared(executor, paths, purpose, is_paced, &|_| Ok(()))
    }

    /// Opens devices as [`Devices::open`] does, and calls `prepare` with each emulated drive before its first request.
    pub(super) fn open_prepared(
        executor: &Executor,
        paths: &[PathBuf],
        purpose: Purpose,
        is_paced: bool,
        prepare: Prepare<'_>,
    ) -> Result<Devices, Failure> {
        let mut devices = Devices { all: Vec::new(), paths: paths.to_vec() };
        for path in paths {
            devices.all.push(open_prepared(executor, path, purpose, is_paced, prepare)?);
        }
        let (mut known, mut failed): (Known, _) = (Vec::new(), None);
        for (device, path) in devices.all.clone().into_iter().zip(paths) {
            // An unreadable superblock is no error yet: if the other devices suffice, the mount works and names this
            // device.
            match run(executor, async move { look(&device).await }) {
                Ok(superblock) => {
                    refuse_copy(&known, &superblock, path)?;
                    known.push((superblock, path.clone()));
                }
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        let Some((first, _)) = known.first() else { return failed.map_or(Ok(devices), Err) };
        if first.shape.is_some() || first.members.len() > 1 {
            devices.add_beside(executor, known, (purpose, is_paced), prepare)?;
        }
        Ok(devices)
    }

    /// Opens further devices of the file system that lie in the folder of the first. Of an array it opens all, since
    /// the array may have drives that its first superblock does not know; else only the missing ones.
    fn add_beside(
        &mut self,
        executor: &Executor,
        mut known: Known,
        (purpose, is_paced): (Purpose, bool),
        prepare: Prepare<'_>,
    ) -> Result<(), Failure> {
        let first = known[0].0.clone();
        let takes_all = first.shape.is_some() || first.metadata_members().len() > 1;
        for path in beside(&self.paths) {
            let Some(superblock) = peek(&path).filter(|found| found.uuid == first.uuid) else { continue };
            refuse_copy(&known, &superblock, &path)?;
            let is_missing = || known.iter().all(|(there, _)| there.member != superblock.member);
            if takes_all || is_missing() {
                self.all.push(open_prepared(executor, &path, purpose, is_paced, prepare)?);
                self.paths.push(path.clone());
                known.push((superblock, path));
            }
        }
        Ok(())
    }

    /// Locks the devices against writers until the result is dropped, also while they are closed here. The devices must
    /// be open for [`Purpose::Look`] or [`Purpose::Trial`].
    ///
    /// # Errors
    /// A device cannot be opened, or another process has locked it for writing.
    pub(super) fn lock_out_writers(&self) -> Result<Vec<File>, Failure> {
        let lock = |path: &PathBuf| {
            let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("{}: {error}", path.display()));
            let file = File::open(path).map_err(|error| failed(&error))?;
            file.try_lock_shared().map_err(|error| failed(&error))?;
            Ok(file)
        };
        self.paths.iter().map(lock).collect()
    }

    /// Shuts the devices down in good order.
    pub(super) fn shut_down(&self) -> Result<(), Failure> {
        for device in &self.all {
            device.shut_down().map_err(|fault| Failure::failed(format!("{}: {fault}", device.name())))?;
        }
        Ok(())
    }
}

/// Returns whether both paths lead to one file or device.
pub(super) fn are_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Returns the files beside the first of `paths` that are not in `paths`, ordered by name.
fn beside(paths: &[PathBuf]) -> Vec<PathBuf> {
    let folder = paths.first().and_then(|path| path.parent()).unwrap_or(Path::new("."));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let is_given = |path: &Path| paths.iter().any(|given| are_same(given, path));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file() && !is_given(path));
    files.sort();
    files
}

/// Returns the superblock in a file, if it has one.
fn peek(path: &Path) -> Option<Superblock> {
    match kind(path).ok()? {
        Kind::Plain => {
            // Either of the two superblocks names the file system.
            let mut blocks = vec![0; 2 * BLOCK_BYTES];
            File::open(path).ok()?.read_exact(&mut blocks).ok()?;
            blocks.chunks(BLOCK_BYTES).find_map(|block| Superblock::decode(block).ok())
        }
        Kind::Zoned => None,
        Kind::Image => {
            let executor = Executor::in_virtual_time();
            let device = open(&executor, path, Purpose::Look, false).ok()?;
            let looked = executor.run(async move { look(&device).await });
            executor.shut_down();
            looked.ok()?.ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use imbrex::FailureKind;

    use super::*;

    #[test]
    fn a_real_zoned_device_has_no_view_and_the_user_learns_the_way_round() {
        let failure = no_view(Path::new("/dev/sdz"));
        assert_eq!(failure.kind, FailureKind::Usage);
        let words = failure.to_string();
        assert!(["--seeds", "/dev/sdz", "--seed,", "mkfs"].iter().all(|part| words.contains(part)), "{words}");
    }

    #[test]
    fn a_name_in_another_folder_is_another_device() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        for inner in [&a, &b] {
            std::fs::create_dir(inner).expect("it is made");
            std::fs::write(inner.join("disk.img"), "").expect("it is written");
        }
        std::os::unix::fs::symlink("disk.img", a.join("link")).expect("it is made");
        assert!(!are_same(&a.join("disk.img"), &b.join("disk.img")));
        assert!(are_same(&a.join("disk.img"), &b.join("../a/link")));
        assert!(!are_same(&a.join("new"), &b.join("new")), "neither is there yet");
        assert!(beside(&[a.join("link"), b.join("disk.img")]).is_empty(), "the link leads to the other");
        assert_eq!(beside(&[b.join("new"), a.join("disk.img")]), [b.join("disk.img")]);
    }
}
