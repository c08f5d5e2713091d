//! Linux in the lab, as experiments use it: a new guest for each script, with emulated drives in virtual time.
//!
//! Processor time is not modelled, so all times by the guest's clock are times of the drives, and two runs with one seed
//! are equal. The guest finds the programs of this machine.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use imbrex::drives::emulated;
use imbrex::{Failure, human};
use imbrex_device::EmulatedDrive;
use imbrex_lab::{Ended, Kernel, LabDrive, Limits, Outcome, TIME_OF_DAY_NS, Task, YEAR_NS, is_installed};
use serde::Deserialize;
use tempfile::TempDir;

use crate::Replication;

/// Longest virtual time of a run.
const TIME: Duration = Duration::from_secs(36_000);
/// Wall-clock time for which a guest may compute without a wait.
const BUSY: Duration = Duration::from_secs(600);
/// Options of `mkfs.ext4` and `mount` with which nothing of ext4 is made later than it is used: neither the tables of
/// inodes nor the journal.
pub(crate) const MAKE_EXT4: &str = "mkfs.ext4 -q -F -E lazy_itable_init=1,lazy_journal_init=1";
pub(crate) const MOUNT_EXT4: &str = "mount -t ext4 -o noinit_itable";

/// The lab, with a folder for the files of its runs.
pub(crate) struct Linux {
    kernel: Kernel,
    folder: TempDir,
    program: PathBuf,
    runs: Cell<u32>,
}

/// A script for a new guest. The drives are `/dev/vda`, `/dev/vdb` and so on.
#[derive(Clone, Debug)]
pub(crate) struct Script<'a> {
    /// Name of the run, which its progress shows.
    pub name: &'a str,
    /// Commands of the shell, in which `IMBREX` is the path of this program. The run fails if the last one fails.
    pub text: String,
    /// Seed of the guest's random numbers.
    pub seed: u64,
    /// Memory of the guest in bytes.
    pub memory_bytes: u64,
    /// Number of years between the usual start of guests and the start of this one. Later guests on one drive start later.
    pub years: u64,
    /// Virtual time from the start of the script to a cut of the power.
    pub cut: Option<Duration>,
    /// Whether the requests of the drives are kept.
    pub keeps_requests: bool,
}

impl Script<'_> {
    /// Returns a script with the usual 1 GiB of memory, without a cut of the power.
    pub(crate) fn new(name: &str, text: String, seed: u64) -> Script<'_> {
        Script { name, text, seed, memory_bytes: 1 << 30, years: 0, cut: None, keeps_requests: false }
    }
}

/// Result of a run.
pub(crate) struct Ran {
    /// Standard output of the script.
    pub output: String,
    /// The drives, their counts and the console.
    pub outcome: Outcome,
    /// Completed requests of each drive, by arrival, if they were kept.
    pub requests: Vec<Vec<Request>>,
}

/// Completed read or write of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// Time of arrival by the guest's monotonic clock, in nanoseconds.
    pub arrival_ns: u64,
    /// Time of the answer by the same clock.
    pub end_ns: u64,
    pub is_write: bool,
    /// First byte.
    pub offset: u64,
    pub bytes: u64,
}

impl Linux {
    /// Finds the kernel of the lab, and the programs that the scripts need, each given with its Debian package.
    ///
    /// # Errors
    ///
    /// No kernel has been built, or a program is not installed.
    pub(crate) fn with(programs: &[(&str, &str)]) -> Result<Linux, Failure> {
        let kernel = Kernel::cached().map_err(Failure::failed)?;
        if let Some((program, package)) = programs.iter().find(|(program, _)| !is_installed(program)) {
            return Err(Failure::failed(format!("{program} is not installed (Debian package {package})")));
        }
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let program = std::env::current_exe().map_err(Failure::failed)?;
        Ok(Linux { kernel, folder, program, runs: Cell::new(0) })
    }

    /// Returns a folder for files that scripts read.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a script on new drives in memory. `say` receives the progress in words.
    ///
    /// # Errors
    ///
    /// Like [`Linux::run_on`]; or the script fails.
    pub(crate) fn run(
        &self,
        script: &Script,
        drives: &[String],
        replication: &Replication,
        say: &dyn Fn(&str),
    ) -> Result<Ran, Failure> {
        let drives = drives.iter().map(|words| emulated(words)).collect::<Result<Vec<_>, _>>()?;
        let ran = self.run_on(script, drives, replication, say)?;
        match ran.outcome.ended {
            Ended::Command(0) => Ok(ran),
            ref ended => Err(self.failure(script, ended, &ran.outcome)),
        }
    }

    /// Runs a script on drives. It ends with the script, whatever its status, or with the cut of the power.
    ///
    /// # Errors
    ///
    /// The guest cannot be started or does not end by itself, a drive fails, or the user interrupts the run.
    pub(crate) fn run_on(
        &self,
        script: &Script,
        drives: Vec<EmulatedDrive>,
        replication: &Replication,
        say: &dyn Fn(&str),
    ) -> Result<Ran, Failure> {
        let number = self.runs.replace(self.runs.get() + 1);
        let folder = self.folder.path().join(format!("run{number}"));
        std::fs::create_dir(&folder).map_err(Failure::failed)?;
        let text = script.text.replace("IMBREX", &self.program.display().to_string());
        let task = Task {
            command: ["sh", "-c", &text].map(Into::into).to_vec(),
            file_system: None,
            makes_file_systems: false,
            folder: "/".into(),
            seed: script.seed,
            memory_bytes: script.memory_bytes,
            time_of_day_ns: TIME_OF_DAY_NS + script.years * YEAR_NS,
            disturbance: None,
        };
        let log_of = |index: usize| folder.join(format!("requests{index}.csv"));
        let count = drives.len();
        let attach = |(index, drive): (usize, EmulatedDrive)| -> Result<LabDrive, Failure> {
            let log =
                script.keeps_requests.then(|| File::create(log_of(index))).transpose().map_err(Failure::failed)?;
            Ok(LabDrive { drive, log: log.map(|file| Box::new(BufWriter::new(file)) as Box<dyn Write + Send>) })
        };
        let drives = drives.into_iter().enumerate().map(attach).collect::<Result<Vec<_>, _>>()?;
        let limits = Limits { cut: script.cut, time: TIME, busy: BUSY };
        let mut watch = |progress: imbrex_lab::Progress| {
            let virtual_ns = progress.now.as_nanos() as u64;
            say(&format!("{}: {} of virtual time", script.name, human::duration_ns(virtual_ns)));
            replication.progress.should_stop()
        };
        let ran = imbrex_lab::run(&self.kernel, &task, drives, &limits, &folder, &mut watch);
        let outcome = ran.map_err(Failure::failed)?;
        match &outcome.ended {
            ended if outcome.exceeded_maps => return Err(self.failure(script, ended, &outcome)),
            Ended::Command(_) | Ended::Cut => {}
            Ended::Interrupted => return Err(Failure::interrupted()),
            ended => return Err(self.failure(script, ended, &outcome)),
        }
        let output = std::fs::read(folder.join("output.txt")).map_err(Failure::failed)?;
        let kept = if script.keeps_requests { count } else { 0 };
        let requests = (0..kept).map(|index| {
            let text = std::fs::read_to_string(log_of(index)).map_err(Failure::failed)?;
            requests_in(&text).ok_or_else(|| Failure::failed("the log of a drive cannot be read"))
        });
        let requests = requests.collect::<Result<Vec<_>, _>>()?;
        Ok(Ran { output: String::from_utf8_lossy(&output).into_owned(), outcome, requests })
    }

    /// Returns the error of a run that ended otherwise than it should.
    fn failure(&self, script: &Script, ended: &Ended, outcome: &Outcome) -> Failure {
        if outcome.exceeded_maps {
            return Failure::failed(
                "a process of the guest needed more memory than vm.max_map_count permits (docs/lab.md)",
            );
        }
        let number = self.runs.get() - 1;
        let errors = std::fs::read(self.folder.path().join(format!("run{number}/errors.txt"))).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors).trim().replace('\n', "; ");
        Failure::failed(format!("the run '{}' ended with {ended:?}: {errors} {}", script.name, outcome.console))
    }
}

/// Parses the log of a drive: its completed reads and writes.
fn requests_in(log: &str) -> Option<Vec<Request>> {
    let ns = |text: &str| -> Option<u64> {
        let (seconds, rest) = text.split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + rest.parse::<u64>().ok()?)
    };
    let completed = log.lines().skip(1).filter(|line| line.ends_with(",ok"));
    let moved = completed.filter(|line| line.contains(",read,") || line.contains(",write"));
    let parse = |line: &str| {
        let mut fields = line.split(',');
        let (time, word, offset) = (fields.next()?, fields.next()?, fields.next()?.parse().ok()?);
        let (bytes, _device, latency) = (fields.next()?.parse().ok()?, fields.next()?, fields.next()?);
        let arrival_ns = ns(time)?;
        Some(Request { arrival_ns, end_ns: arrival_ns + ns(latency)?, is_write: word != "read", offset, bytes })
    };
    moved.map(parse).collect()
}

/// Fields that experiments need from the output of `imbrex fs bench --json`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct BenchDocument {
    /// Phases of the benchmark.
    pub phases: Vec<BenchPhase>,
}

/// Phase of a benchmark.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct BenchPhase {
    pub name: String,
    /// Time since the begin of the benchmark, in nanoseconds.
    pub begin_ns: u64,
    pub elapsed_ns: u64,
    /// Number of the units that the benchmark counts in this phase.
    pub done: u64,
    /// Number of operations of the file system.
    pub operations: u64,
    /// Number of bytes read and written.
    pub bytes: u64,
    /// Figures of each kind of operation.
    pub kinds: BTreeMap<String, BenchKind>,
}

/// Figures of a kind of operation.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct BenchKind {
    pub count: u64,
    pub latency_ns: BenchLatency,
}

/// Latency of a kind of operation.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct BenchLatency {
    pub mean: u64,
}

impl BenchDocument {
    /// Parses the output of `imbrex fs bench --json`.
    ///
    /// # Errors
    ///
    /// The text is no such output.
    pub(crate) fn parse(text: &str) -> Result<BenchDocument, Failure> {
        serde_json::from_str(text).map_err(|error| Failure::failed(format!("the output of the benchmark: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_reads_and_writes_of_a_log_are_parsed() {
        let log = "time,op,offset,size,device,latency,outcome\n\
                   1.000000005,read,0,4096,0,0.000000010,ok\n\
                   2.000000000,flush,0,0,0,0.000000010,ok\n\
                   2.500000000,write-fua,8192,512,0,1.000000000,ok\n\
                   3.000000000,write,8192,512,0,1.000000000,error\n\
                   4.000000000,write,8192,512,0,,lost\n";
        let expected = [
            Request { arrival_ns: 1_000_000_005, end_ns: 1_000_000_015, is_write: false, offset: 0, bytes: 4096 },
            Request { arrival_ns: 2_500_000_000, end_ns: 3_500_000_000, is_write: true, offset: 8192, bytes: 512 },
        ];
        assert_eq!(requests_in(log), Some(expected.to_vec()));
        assert_eq!(requests_in("time\nx,read,0,4096,0,0.1,ok\n"), None);
    }
}
