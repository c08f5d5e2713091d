//! A run of the guest of `scripts/guest`, a stock kernel in QEMU, with emulated drives of this process as its disks: for what takes
//! parts of a kernel that the host need not have. It takes QEMU and the scripts, which lie in the folder of the sources.
//!
//! The drives are paced, so the guest's clock is theirs times the pace. From the line of the guest that begins what is measured they are
//! looked at many times, each with its own time: so what a drive did in any stretch is known afterwards.
//!
//! Invariants:
//! 1. A run that did not come to its end, or failed, is an error with the end of what the guest said.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use imbrex::{Failure, Progress};
use imbrex_serve::Front;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::served::Served;

/// How often the drives are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Where the scripts are, below the folder of the sources.
const SCRIPTS: &str = "scripts/guest";
/// Says where they are, if not there.
const SCRIPTS_VARIABLE: &str = "IMBREX_GUEST_SCRIPTS";
const QEMU: &str = "qemu-system-x86_64";
/// Lines of what the guest said that an error has.
const LINES_TOLD: usize = 5;

/// What is run.
pub struct Asked<'a> {
    /// The guest's main script, in `scripts/guest/inside`.
    pub script: &'a str,
    /// What it is told, as `GUEST_ONLY`.
    pub words: String,
    /// The drives: `/dev/vda`, `/dev/vdb`, …
    pub drives: &'a [String],
    /// How fast they are, of their own speed.
    pub pace: f64,
    /// Memory of the guest.
    pub memory: &'a str,
    /// How long it may take on the wall clock.
    pub seconds: u64,
    /// The line with which what is measured begins.
    pub begins: &'a str,
    /// The line with which it ends.
    pub ends: &'a str,
}

/// What a run came to.
pub struct Ran {
    /// What the guest said.
    pub said: String,
    /// Of each drive, how it stood over time.
    pub drives: Vec<Vec<Sample>>,
    /// From the first of the two lines to the second, in time of the drives.
    pub between_ns: u64,
}

/// How a drive stood.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sample {
    /// Its time.
    pub at_ns: u64,
    /// What it had done.
    pub did: Did,
}

/// What a drive did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Did {
    /// How long it had something to answer.
    pub busy_ns: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

impl Did {
    /// What was done since it was `before`.
    pub fn since(self, before: Did) -> Did {
        Did {
            busy_ns: self.busy_ns - before.busy_ns,
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }
}

impl Ran {
    /// What drive `number` did from `from_ns` to `to_ns` after what is measured began.
    pub fn did(&self, number: usize, from_ns: u64, to_ns: u64) -> Did {
        let samples = &self.drives[number];
        let begun_ns = samples.first().map_or(0, |sample| sample.at_ns);
        let at = |ns: u64| {
            let seen = samples.partition_point(|sample| sample.at_ns <= begun_ns + ns);
            samples.get(seen.saturating_sub(1)).map_or(Did::default(), |sample| sample.did)
        };
        at(to_ns).since(at(from_ns))
    }
}

/// Runs it.
pub fn run(asked: &Asked, progress: &Progress, tell: &dyn Fn(&str)) -> Result<Ran, Failure> {
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
            // It may have ended by itself.
            let _ = kill_process_group(Pid::from_child(&child), Signal::TERM);
        }
        let status = child.wait().map_err(Failure::failed)?;
        let (looked, between_ns) = watched?;
        let said = said(&log);
        if !status.success() {
            return Err(Failure::failed(format!("the guest failed: {}", last_lines(&said))));
        }
        Ok(Ran { said, drives: looked, between_ns })
    })();
    drives.into_iter().map(Served::stop).collect::<Result<Vec<()>, Failure>>()?;
    ran
}

/// The text of a main script: what a run hangs on besides its words.
pub fn script_text(name: &str) -> Result<String, Failure> {
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

fn start(asked: &Asked, scripts: &Path, drives: &[Served], sockets: &[PathBuf], log: &Path) -> Result<Child, Failure> {
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

/// Looks at the drives from the one line to the other, then waits for the end.
fn watch(
    asked: &Asked,
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

fn look(front: &Front) -> Sample {
    let at_ns = front.now().0;
    let did = front.with(|_, statistics| {
        let [read, write, ..] = &statistics.kinds;
        Did { busy_ns: statistics.busy.total_ns(), read_bytes: read.bytes, written_bytes: write.bytes }
    });
    Sample { at_ns, did }
}

/// What the guest has said so far: nothing while it boots.
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
    //! Goal: what a drive did in a stretch is what lies between how it stood. Method: samples by hand.

    use super::*;

    #[test]
    fn a_stretch_is_counted_from_the_beginning_of_what_is_measured() {
        let sample = |at_ns, busy_ns| {
            let did = Did { busy_ns, read_bytes: 2 * busy_ns, written_bytes: 3 * busy_ns };
            Sample { at_ns, did }
        };
        let drive = vec![sample(1000, 7), sample(1010, 9), sample(1020, 20), sample(1030, 21)];
        let ran = Ran { said: String::new(), drives: vec![drive, vec![]], between_ns: 30 };
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
