//! `imbrex fs mount`: mounts a file system on a directory, served by a process of its own.
//!
//! In the background mode the program starts itself again, waits until the new process reports that the directory is
//! served, and ends. So errors are printed on the user's terminal, and the directory is usable when the command
//! returns.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use imbrex::Failure;
use imbrex_fs::device::queue::QueueLimits;
use imbrex_fs::{Bounds, Executor, Fs, MountOptions};
use imbrex_fuse::{Mount, MountWords};

use super::args::MountArgs;
use super::devices::{self, Devices, Purpose};
use super::figures::Figures;
use super::options::{self, Options};
use super::orders::{Orders, Serving};
use super::{helper, umount};
use crate::error::ExitCode;
use crate::interrupt;
use crate::output;
use crate::service;

/// Time within which a killed process has released its devices, unless it frees much memory.
const PATIENCE: Duration = Duration::from_secs(1);
/// Environment variable that marks the process in the background.
const BACKGROUND: &str = "IMBREX_FS_MOUNT_IN_BACKGROUND";
/// Line that the process in the background prints when the directory is served.
const SERVED: &str = "served";

/// Mounts the file system. In the foreground it returns after the unmount.
pub(super) fn run(args: &MountArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let options = options::parse(&args.options)?;
    let (directory, devices) = args.places.split_last().expect("there are two at least");
    if options.remount {
        return helper::remount(directory, &options);
    }
    let is_in_background = std::env::var_os(BACKGROUND).is_some();
    if !args.foreground && !is_in_background {
        return start_in_background();
    }
    let directory = mount_point(directory, &options, quiet)?;
    if !Path::new("/dev/fuse").exists() {
        return Err(
            Failure::failed("there is no /dev/fuse: this kernel has no FUSE").or_try("`modprobe fuse`, as root")
        );
    }
    let served = Served::open(devices, &options)?;
    let figures = Figures::serve(&directory, &options, quiet)?;
    let orders = Orders::new(&served.executor, &directory, &served.devices, options.is_paced);
    let mount = served.mount(&directory, &options, orders.clone())?;
    if !quiet {
        let name = devices.first().map(|device| device.display().to_string()).unwrap_or_default();
        message!("{name} is mounted on {0}; `imbrex fs umount {0}` ends it", directory.display());
    }
    if is_in_background {
        leave_terminal()?;
    } else {
        service::report_ready();
    }
    interrupt::answer_with("writing everything, unmounting");
    let files = orders.files();
    let ended = mount.serve(move || {
        files.tell("; copy its files to another file system before you unmount it");
        interrupt::requested()
    });
    figures.end();
    let shut_down = served.devices.shut_down().and_then(|()| orders.shut_down());
    ended.map_err(|error| Failure::failed(format!("{}: {error}", directory.display())))?;
    shut_down?;
    Ok(ExitCode::Done)
}

/// Opens the devices. Returns their executor, the time of day in nanoseconds at which its clock began, and the devices.
/// A process that was killed may hold a device a moment longer: the function retries for [`PATIENCE`].
fn open_devices(paths: &[PathBuf], purpose: Purpose, is_paced: bool) -> Result<(Executor, i64, Devices), Failure> {
    let since = Instant::now();
    loop {
        let (executor, epoch_ns) = (Executor::on_the_wall(), devices::now_ns());
        match Devices::open(&executor, paths, purpose, is_paced) {
            Err(failure) if devices::is_held(&failure) && since.elapsed() < PATIENCE => {
                executor.shut_down();
                std::thread::sleep(PATIENCE / 20);
            }
            outcome => return outcome.map(|devices| (executor, epoch_ns, devices)),
        }
    }
}

/// Starts this program again in the background and waits until it serves the directory.
fn start_in_background() -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot start the process that serves: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command
        .args(helper::arguments().into_iter().skip(1))
        .env(BACKGROUND, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut word = String::new();
    let stdout = child.stdout.take().expect("it is a pipe");
    BufReader::new(stdout).read_line(&mut word).map_err(failed)?;
    if word.trim_end() == SERVED {
        return Ok(ExitCode::Done);
    }
    // The process has printed the reason on standard error.
    let status = child.wait().map_err(failed)?;
    match status.code() {
        Some(2) => Ok(ExitCode::Usage),
        Some(_) => Ok(ExitCode::Failed),
        None => Err(Failure::failed(format!("the process that was to serve died: {status}"))),
    }
}

/// Reports that the directory is served, then detaches from terminal, working directory and parent.
fn leave_terminal() -> Result<(), Failure> {
    let failed = |what: &'static str| move |error: std::io::Error| Failure::failed(format!("{what}: {error}"));
    // Fails for a process that leads its group already, which does no harm.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/").map_err(failed("leaving the folder"))?;
    output::line(SERVED);
    let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null").map_err(failed("/dev/null"))?;
    rustix::stdio::dup2_stdout(&nothing).map_err(|error| failed("standard output")(error.into()))?;
    rustix::stdio::dup2_stderr(&nothing).map_err(|error| failed("standard error")(error.into()))
}

/// Returns the canonical path of the mount point, after checking that a file system can be mounted there.
fn mount_point(directory: &Path, options: &Options, quiet: bool) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::MetadataExt;
    let place = directory.display();
    if umount::is_abandoned(directory) {
        umount::clear(directory, quiet)?;
    }
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::failed(format!("the mount point {place} is not there")).or_try(format!("`mkdir {place}`"))
        }
        _ => Failure::failed(format!("the mount point {place}: {error}")),
    };
    let directory = directory.canonicalize().map_err(failed)?;
    let metadata = directory.metadata().map_err(failed)?;
    if !metadata.is_dir() {
        return Err(Failure::failed(format!("the mount point {place} is not a directory")));
    }
    let above = directory.parent().unwrap_or(&directory).metadata().map_err(failed)?;
    if above.dev() != metadata.dev() {
        return Err(Failure::failed(format!("something is mounted on {place} already"))
            .or_try(format!("another directory, or `imbrex fs umount {place}`")));
    }
    let is_empty = directory.read_dir().map_err(failed)?.next().is_none();
    if !is_empty && !options.non_empty {
        return Err(Failure::failed(format!("the mount point {place} is not empty"))
            .or_try("an empty directory, or -o nonempty: its files are hidden while a file system is mounted on it"));
    }
    Ok(directory)
}

/// A file system to be served, with its devices.
struct Served {
    executor: Executor,
    devices: Devices,
    fs: Fs,
}

impl Served {
    fn open(paths: &[PathBuf], options: &Options) -> Result<Served, Failure> {
        let purpose = if options.read_only { Purpose::Look } else { Purpose::Serve };
        let (executor, epoch_ns, devices) = open_devices(paths, purpose, options.is_paced)?;
        let usual = Bounds::default();
        let queue = QueueLimits {
            depth: options.queue_depth.unwrap_or(usual.queue.depth),
            deadline_ns: options.queue_deadline_ns.unwrap_or(usual.queue.deadline_ns),
            ..usual.queue
        };
        let bounds = Bounds { cache_bytes: options.cache_bytes.unwrap_or(usual.cache_bytes), queue, ..usual };
        let how = MountOptions {
            read_only: options.read_only,
            bounds: Some(bounds),
            options: options.store.clone(),
            epoch_ns,
            replaces_by_itself: true,
            ..MountOptions::default()
        };
        let (inner, members) = (executor.clone(), devices.all.clone());
        let (fs, mounted) = devices::run(&executor, async move { Fs::mount(&inner, &members, &how).await })?;
        super::tell_missing(&mounted);
        if let Some(frame) = mounted.lost_from {
            notice!("frame {frame} of the log is damaged: changes committed in it and in later frames are missing");
        }
        Ok(Served { executor, devices, fs })
    }

    fn mount(&self, directory: &Path, options: &Options, orders: Rc<Orders>) -> Result<Mount, Failure> {
        let source = self.devices.paths.first().map(|path| path.display().to_string()).unwrap_or_default();
        let words = MountWords {
            source: options.source.clone().unwrap_or(source),
            read_only: options.read_only,
            allow_other: options.allow_other,
            sync: options.flags.iter().any(|flag| flag == "sync"),
            flags: options.flags.clone(),
        };
        Mount::new(&self.executor, &self.fs, directory, &words, Rc::new(Serving(orders))).map_err(|error| {
            let failure = Failure::failed(format!("cannot mount on {}: {error}", directory.display()));
            match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    failure.or_try("as root, or let fusermount3 be installed, which lets others mount")
                }
                _ => failure,
            }
        })
    }
}
