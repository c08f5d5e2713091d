//! Runs the guest of `scripts/guest`, a stock kernel in QEMU, whose disks are emulated drives of this process.
//! Experiments use the guest for kernel modules that the host's kernel may lack. Needs QEMU and the scripts, which lie
//! in the source tree.
//!
//! The drives are paced: the drives' time is the guest's time multiplied by the pace. From the guest's line that
//! begins the measurement on, this module samples each drive's time and counters every 20 ms. So the work of a drive
//! in any interval can be computed afterwards.
//!
//! Invariants:
//! 1. A run that failed or did not end is an error that has the last lines of the guest's output.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use imbrex::{Failure, Progress};
use imbrex_serve::DriveServer;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::served::Served;

/// Interval between two samples of the drives.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Folder of the scripts, relative to the source tree.
const SCRIPTS: &str = "scripts/guest";
/// Environment variable that names another folder of the scripts.
const SCRIPTS_VARIABLE: &str = "IMBREX_GUEST_SCRIPTS";
const QEMU: &str = "qemu-system-x86_64";
/// Number of lines of the guest's output in an error.
const LINES_TOLD: usize = 5;

/// Options of a run.
pub(crate) struct GuestOptions<'a> {
    /// File name of the guest's main script, in `scripts/guest/inside`.
    pub script: &'a str,
    /// Arguments for the script, which it finds in its environment variable `GUEST_ONLY`.
    pub words: String,
    /// Specifications of the guest's emulated drives, which become `/dev/vda`, `/dev/vdb` and so on.
    pub drives: &'a [String],
    /// Factor by which the drives run faster than real time: their time is the guest's time multiplied by it.
    pub pace: f64,
    /// Memory of the guest in the notation of QEMU, such as `1G`.
    pub memory: &'a str,
    /// Maximum duration of the run on the wall clock, in seconds.
    pub seconds: u64,
    /// Whole line of the guest's output with which the measurement begins.
    pub begins: &'a str,
    /// Whole line of the guest's output with which the measurement ends.
    pub ends: &'a str,
}

/// Result of a run.
pub(crate) struct GuestOutput {
    /// Text that the guest wrote to its console, without carriage returns.
    pub said: String,
    /// For each drive, samples of its counters, about every 20 ms of wall-clock time, from the begin of the measurement
    /// until the guest ended. Empty if the measurement did not begin.
    pub drives: Vec<Vec<Sample>>,
    /// Time from the line that begins the measurement to the line that ends it, in nanoseconds of the drives' time,
    /// known to about 20 ms of wall-clock time. 0 if one of the lines did not appear.
    pub between_ns: u64,
}

/// Sample of a drive's time and counters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Sample {
    /// Simulated time of the drive at the sample, in nanoseconds since the drive was started.
    pub at_ns: u64,
    /// Work that the drive had done by then, since it was started: busy time and bytes moved.
    pub did: Did,
}

/// Amount of work that a drive did, since its start or in an interval.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Did {
    /// Simulated time during which the drive had requests in flight, in nanoseconds.
    pub busy_ns: u64,
    /// Number of bytes that the host read from the drive.
    pub read_bytes: u64,
    /// Number of bytes that the host wrote to the drive.
    pub written_bytes: u64,
}

impl Did {
    /// Returns the work done since the counters were at `before`.
    pub(crate) fn since(self, before: Did) -> Did {
        Did {
            busy_ns: self.busy_ns - before.busy_ns,
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }
}

impl GuestOutput {
    /// Returns the work of drive `number` from `from_ns` to `to_ns`, in time of the drives since the measurement
    /// began.
    pub(crate) fn did(&self, number: usize, from_ns: u64, to_ns: u64) -> Did {
        let samples = &self.drives[number];
        let begun_ns = samples.first().map_or(0, |sample| sample.at_ns);
        let at = |ns: u64| {
            let seen = samples.partition_point(|sample| sample.at_ns <= begun_ns + ns);
            samples.get(seen.saturating_sub(1)).map_or(Did::default(), |sample| sample.did)
        };
        at(to_ns).since(at(from_ns))
    }
}

/// Boots the guest, runs its script and returns the output and the samples of the drives.
pub(crate) fn run(asked: &GuestOptions, progress: &Progress, tell: &dyn Fn(&str)) -> Result<GuestOutput, Failure> {
    let scripts = scripts()?;
    let folder = tempfile::tempdir().map_err(Failure::failed)?;
    let sockets: Vec<PathBuf> =
        (0..asked.drives.len()).map(|number| folder.path().join(format!("{number}.sock"))).collect();
    let pace = format!("{}x", asked.pace);
    let serve = |(words, socket): (&String, &PathBuf)| Served::start(words, &pace, socket);
    let drives = asked.drives.iter().zip(&sockets).map(serve).collect::<Result<Vec<Served>, Failure>>()?;
    let log = folder.path().join("console");
    let ran = (|| {
        let mut child = start(asked, &scripts, &drives, &sockets, &log)?;
        let watched = watch(asked, &mut child, &drives, &log, progress, tell);
        if watched.is_err() {
            // QEMU may have ended by itself.
            let _ = kill_process_group(Pid::from_child(&child), Signal::TERM);
        }
        let status = child.wait().map_err(Failure::failed)?;
        let (looked, between_ns) = watched?;
        let said = said(&log);
        if !status.success() {
            return Err(Failure::failed(format!("the guest failed: {}", last_lines(&said))));
        }
        Ok(GuestOutput { said, drives: looked, between_ns })
    })();
    drives.into_iter().map(Served::stop).collect::<Result<Vec<()>, Failure>>()?;
    ran
}

/// Returns the text of a main script. A kept result is valid only for this text, besides the words and drives.
pub(crate) fn script_text(name: &str) -> Result<String, Failure> {
    let path = scripts()?.join("inside").join(name);
    std::fs::read_to_string(&path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

fn scripts() -> Result<PathBuf, Failure> {
    let scripts = std::env::var_os(SCRIPTS_VARIABLE).map_or(PathBuf::from(SCRIPTS), PathBuf::from);
    if !scripts.join("run.sh").is_file() {
        let reason = format!("the guest's scripts are not in {}", scripts.display());
        return Err(Failure::failed(reason)
            .or_try(format!("the folder of the sources of Imbrex, or {SCRIPTS_VARIABLE} with where they are")));
    }
    let has_qemu = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(QEMU).is_file()));
    if !has_qemu {
        return Err(Failure::failed(format!("{QEMU} is not here")).or_try("apt-get install qemu-system-x86"));
    }
    Ok(scripts)
}

fn start(
    asked: &GuestOptions,
    scripts: &Path,
    drives: &[Served],
    sockets: &[PathBuf],
    log: &Path,
) -> Result<Child, Failure> {
    let program = std::env::current_exe().map_err(Failure::failed)?;
    let disk =
        |(drive, socket): (&Served, &PathBuf)| format!("{}:{}", socket.display(), drive.front().facts().sector_bytes);
    let disks: Vec<String> = drives.iter().zip(sockets).map(disk).collect();
    Command::new(scripts.join("run.sh"))
        .arg(scripts.join("inside").join(asked.script))
        .arg(program)
        .env("IMBREX_GUEST_DRIVES", disks.join(" "))
        .env("IMBREX_GUEST_ONLY", &asked.words)
        .env("IMBREX_GUEST_MEMORY", asked.memory)
        .env("IMBREX_GUEST_SECONDS", asked.seconds.to_string())
        .env("IMBREX_GUEST_LOG", log)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| Failure::failed(format!("{}: {error}", scripts.join("run.sh").display())))
}

/// Samples the drives from the line that begins the measurement until the guest ends. Returns the samples and the
/// measured time in nanoseconds of the drives.
fn watch(
    asked: &GuestOptions,
    child: &mut Child,
    drives: &[Served],
    log: &Path,
    progress: &Progress,
    tell: &dyn Fn(&str),
) -> Result<(Vec<Vec<Sample>>, u64), Failure> {
    let mut samples = vec![Vec::new(); drives.len()];
    let (mut begun, mut between) = (None::<Instant>, None::<Duration>);
    while child.try_wait().map_err(Failure::failed)?.is_none() {
        if progress.should_stop() {
            return Err(Failure::interrupted());
        }
        if between.is_none() {
            match begun {
                None if has_line(log, asked.begins) => begun = Some(Instant::now()),
                Some(begun) if has_line(log, asked.ends) => between = Some(begun.elapsed()),
                _ => {}
            }
        }
        if begun.is_some() {
            drives.iter().zip(&mut samples).for_each(|(drive, samples)| samples.push(look(drive.front())));
        }
        tell(&begun.map_or("booting".to_string(), |begun| format!("{} s", begun.elapsed().as_secs())));
        sleep(LOOK_EVERY);
    }
    let between = between.unwrap_or_default();
    Ok((samples, (between.as_nanos() as f64 * asked.pace) as u64))
}

fn look(front: &DriveServer) -> Sample {
    let at_ns = front.now().0;
    let did = front.with(|_, statistics| {
        let [read, write, ..] = &statistics.kinds;
        Did { busy_ns: statistics.busy.total_ns(), read_bytes: read.bytes, written_bytes: write.bytes }
    });
    Sample { at_ns, did }
}

/// Returns the output of the guest so far: empty while the guest boots.
fn said(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\r', "")
}

fn has_line(log: &Path, line: &str) -> bool {
    said(log).lines().any(|said| said == line)
}

fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_TOLD)..].join(" / ")
}

#[cfg(test)]
mod tests {
    //! Goal: the work in an interval is the difference of two samples. Method: samples written here.

    use super::*;

    #[test]
    fn a_stretch_is_counted_from_the_beginning_of_what_is_measured() {
        let sample = |at_ns, busy_ns| {
            let did = Did { busy_ns, read_bytes: 2 * busy_ns, written_bytes: 3 * busy_ns };
            Sample { at_ns, did }
        };
        let drive = vec![sample(1000, 7), sample(1010, 9), sample(1020, 20), sample(1030, 21)];
        let ran = GuestOutput { said: String::new(), drives: vec![drive, vec![]], between_ns: 30 };
        assert_eq!(ran.did(0, 0, 20), Did { busy_ns: 13, read_bytes: 26, written_bytes: 39 });
        assert_eq!(ran.did(0, 15, 1000).busy_ns, 12, "the last that was seen before counts");
        assert_eq!(ran.did(1, 0, 20), Did::default());
    }

    #[test]
    fn an_error_has_the_end_of_what_was_said() {
        assert_eq!(last_lines("a\nb\n\nc\nd\ne\nf\n"), "b / c / d / e / f");
        assert_eq!(last_lines(""), "");
    }
}
