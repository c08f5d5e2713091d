//! The lab: an unmodified Linux kernel in virtual time, on emulated drives.
//!
//! A kernel built for user mode (User Mode Linux) keeps its clock by this process, and uses the drives over vhost-user.
//! Processor time counts as zero. Time passes in the model of the drives and in timers alone, so hours on a drive take
//! seconds, and two runs with one seed are equal.
//!
//! ```text
//!   kernel ──── time ────► Calendar ─┐
//!     │                              ├─► World: the next event ─► EmulatedDrive (engine, layer, bytes)
//!     └── virtio queues ─► BlockDevice (serve::vhost_user)
//! ```
//!
//! [`Kernel::build`] makes the kernel, and [`run`] runs a command in it. Linux on x86-64 only.

mod calendar;
pub mod guest;
pub mod kernel;
mod world;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use imbrex_device::EmulatedDrive;
use imbrex_disk::SimTime;
use imbrex_serve::vhost_user::wait;
use thiserror::Error;

pub use crate::guest::{Disturbance, FileSystem, Task, drive_name};
pub use crate::kernel::{Kernel, Source, Step, cache, is_installed};
pub use crate::world::{Counts, Ended};

use crate::calendar::Calendar;
use crate::guest::Running;
use crate::world::{VirtualDrive, World};

/// The usual time of day at the start of a guest: 2025-01-01, in nanoseconds since 1970.
pub const TIME_OF_DAY_NS: u64 = 1_735_689_600_000_000_000;
/// Nanoseconds of a year.
pub const YEAR_NS: u64 = 365 * 86_400_000_000_000;
/// Wall-clock time within which a started kernel must connect.
const START_TIME: Duration = Duration::from_secs(30);
/// Lines of the console that an error shows.
const CONSOLE_LINES: usize = 15;

/// Message of the kernel when the host maps no more memory for one of its processes.
const EXCEEDED_MAPS: &str = "UML ran out of memory on the host side";

/// An error of the lab.
#[derive(Debug, Error)]
pub enum LabError {
    /// No kernel has been built.
    #[error("no kernel is in {0}: `imbrex lab build` builds it, `--kernel FILE` names another")]
    NoKernel(PathBuf),
    /// The kernel was built with other options.
    #[error("the kernel in {0} was built by another version of imbrex: `imbrex lab build` builds it anew")]
    OldKernel(PathBuf),
    /// The environment names no folder for the kernel.
    #[error("neither XDG_CACHE_HOME nor HOME is set: the kernel needs a folder")]
    NoHome,
    /// This machine cannot run the kernel.
    #[error("the lab needs Linux on x86-64")]
    Machine,
    /// Programs for the build are missing.
    #[error("the build needs {programs}: `apt-get install {packages}`")]
    Tools {
        /// Names of the programs.
        programs: String,
        /// Debian packages that have them, separated by spaces.
        packages: String,
    },
    /// The source is not as expected.
    #[error("{0}")]
    Source(String),
    /// A step of the build failed.
    #[error("{what}: {output}")]
    Build {
        /// The step.
        what: String,
        /// The end of its error output.
        output: String,
    },
    /// The caller stopped the work.
    #[error("stopped")]
    Stopped,
    /// The process cannot be confined.
    #[error("the kernel cannot be kept from writing to this machine's files (Landlock): {0}")]
    Confinement(String),
    /// The system refused something.
    #[error("{what}: {cause}")]
    System {
        /// The refused operation.
        what: String,
        /// The reason.
        cause: io::Error,
    },
    /// The kernel did not start or broke a protocol.
    #[error("{what}{}", console_end(.console))]
    Guest {
        /// The failure.
        what: String,
        /// The end of the console.
        console: String,
    },
}

impl LabError {
    /// Returns the error of a step of a build, with the end of its error output.
    fn step(what: &str, errors: &[u8]) -> LabError {
        let text = String::from_utf8_lossy(errors);
        LabError::Build { what: what.into(), output: last_lines(&text, CONSOLE_LINES) }
    }
}

fn console_end(console: &str) -> String {
    if console.is_empty() { String::new() } else { format!("; its console ends with:\n{console}") }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// A drive of a run.
pub struct LabDrive {
    /// The drive, with its bytes.
    pub drive: EmulatedDrive,
    /// Receives the log of the drive's requests as a table: a header, then a line a request in order of arrival.
    pub log: Option<Box<dyn Write + Send>>,
}

/// Limits of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Virtual time from the start of the command to a cut of the power of all drives.
    pub cut: Option<Duration>,
    /// Virtual time from the start of the kernel after which the run ends.
    pub time: Duration,
    /// Wall-clock time for which the guest may compute without a wait. A program that waits busily never ends
    /// otherwise, since no time passes.
    pub busy: Duration,
}

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Virtual time since the start of the kernel.
    pub now: Duration,
    /// Virtual time since the start of the command; `None` before.
    pub of_command: Option<Duration>,
}

/// The result of a run.
pub struct Outcome {
    /// The reason of the end.
    pub ended: Ended,
    /// Virtual time from the start of the kernel to the start of the command, if it was started.
    pub begun: Option<Duration>,
    /// Virtual time from the start of the command to its end, if it ended. The error is 10 µs.
    pub command: Option<Duration>,
    /// Virtual time from the start of the kernel to the end.
    pub total: Duration,
    /// Wall-clock time of the run.
    pub wall: Duration,
    /// Each drive with its counts, in the order of the names in the guest. After [`Ended::Cut`] the drives are at the
    /// moment before the cut: [`EmulatedDrive::power_cut`] carries out the cut.
    pub drives: Vec<(EmulatedDrive, Counts)>,
    /// Last lines of the kernel's console.
    pub console: String,
    /// Whether a process of the guest needed more memory than this machine maps for one process
    /// (`vm.max_map_count` pages of 4 KiB). The kernel ends such a process.
    pub exceeded_maps: bool,
}

/// Runs a task in a new guest, to its end or to a limit. `folder` is a new folder for the files of the run: the console
/// is `console.txt`, the output of the command `output.txt`, and its errors `errors.txt`. `progress` is called a few
/// times a second, and returns whether to end.
///
/// # Errors
///
/// The folder has files of a run already, the kernel cannot be started or breaks a protocol, or a log cannot be
/// written.
pub fn run(
    kernel: &Kernel,
    task: &Task,
    drives: Vec<LabDrive>,
    limits: &Limits,
    folder: &Path,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, LabError> {
    let begun = Instant::now();
    let failed = |what: &str| {
        let what = what.to_string();
        move |cause: io::Error| LabError::System { what, cause }
    };
    let opened = File::open(folder).map_err(failed("opening the folder of the run"))?;
    // The name of a socket has at most 107 bytes, and a path may have more.
    let bind = |name: &str| {
        let path = format!("/proc/self/fd/{}/{name}", opened.as_raw_fd());
        UnixListener::bind(path).map_err(failed("making the sockets of the guest"))
    };
    guest::write_scripts(folder, task, drives.len()).map_err(failed("writing the scripts of the guest"))?;
    let drives_count = drives.len();
    let clock = bind(guest::CALENDAR)?;
    let mut attached = Vec::with_capacity(drives.len());
    for (index, LabDrive { drive, log }) in drives.into_iter().enumerate() {
        attached.push((bind(&drive_name(index))?, VirtualDrive::new(drive, log)));
    }
    let _one = guest::OneProcessor::new();
    let mut running = guest::start(folder, kernel, task, attached.len())?;
    let console = |what: String| {
        let text = std::fs::read(folder.join(guest::CONSOLE)).unwrap_or_default();
        LabError::Guest { what, console: last_lines(&String::from_utf8_lossy(&text), CONSOLE_LINES) }
    };
    let socket = accept(&clock, &mut running).map_err(|error| console(format!("the kernel did not start: {error}")))?;
    let time_of_day_ns = match task.disturbance {
        Some(Disturbance::TimeOfDay) => {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
        }
        _ => task.time_of_day_ns,
    };
    let calendar = Calendar::begin(socket, time_of_day_ns).map_err(|error| console(error.to_string()))?;
    let mut world = World::new(calendar, attached, *limits);
    let since = |later: SimTime, earlier: SimTime| Duration::from_nanos(later.0 - earlier.0);
    let mut look = |now: SimTime, begun: Option<SimTime>| {
        progress(Progress { now: since(now, SimTime::ZERO), of_command: begun.map(|begun| since(now, begun)) })
    };
    let ended = world.run(&mut look).map_err(|error| console(format!("the kernel failed: {error}")))?;
    drop(running);
    guest::remove_scratch(folder, drives_count);
    let times = world.times();
    let mut drives = Vec::new();
    for mut drive in world.into_drives() {
        let counts = drive.finish_log().map_err(failed("writing the log of a drive"))?;
        drives.push((drive.drive, counts));
    }
    let text = std::fs::read(folder.join(guest::CONSOLE)).unwrap_or_default();
    Ok(Outcome {
        ended,
        begun: times.begun.map(|begun| since(begun, SimTime::ZERO)),
        command: times.begun.and_then(|begun| Some(since(times.command_ended?, begun))),
        total: since(times.ended, SimTime::ZERO),
        wall: begun.elapsed(),
        drives,
        console: last_lines(&String::from_utf8_lossy(&text), CONSOLE_LINES),
        exceeded_maps: String::from_utf8_lossy(&text).contains(EXCEEDED_MAPS),
    })
}

/// Waits for the connection of the started kernel.
fn accept(listener: &UnixListener, running: &mut Running) -> io::Result<std::os::unix::net::UnixStream> {
    let begun = Instant::now();
    loop {
        if !wait(&[listener.as_fd()], Duration::from_millis(50))?.is_empty() {
            return listener.accept().map(|(stream, _)| stream);
        }
        if let Some(status) = running.child.try_wait()? {
            return Err(io::Error::other(format!("it ended with {status}")));
        }
        if begun.elapsed() > START_TIME {
            return Err(io::Error::other(format!("it did not connect to its clock within {START_TIME:?}")));
        }
    }
}
