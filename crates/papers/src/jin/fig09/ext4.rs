//! ext4 over md RAID 5 of five disks in the lab, with or without a flash cache.
//!
//! Invariants:
//! 1. The operations and bytes of a phase come from the guest. The work of the drives comes from their own requests
//!    during that phase.

use imbrex::Failure;

use super::super::choices::{
    FLASH_BYTES, GUEST_BYTES, JOURNAL_BYTES, LOAD_BYTES, PC_DISK, RAID_DISK, RAID_DISKS, SEED, SERVER_FILES,
    SERVER_MEMORY_BYTES, SERVER_ROUNDS,
};
use super::flashcache::{self, Replayed};
use super::{Did, Measured, Outcome};
use crate::Replication;
use crate::linux::{BenchDocument, BenchPhase, Linux, Request, Script};

const SCRIPT: &str = include_str!("ext4.sh");
/// Commands that make the array. New drives read as zeros, so their parity is right as it is. For disks of this size mdadm
/// has long made the bitmap by itself.
const ARRAY: &str = "export MDADM_NO_UDEV=1; mdadm --quiet --create /dev/md0 --level=5 --raid-devices=5 --assume-clean \
     --bitmap=internal --run /dev/vda /dev/vdb /dev/vdc /dev/vdd /dev/vde >&2";
/// Space of a disk that the array uses for itself, in bytes, rounded up.
const ARRAY_BYTES: u64 = 1 << 30;
/// Programs that the script needs, with their Debian packages.
const PROGRAMS: &[(&str, &str)] = &[("mkfs.ext4", "e2fsprogs"), ("mdadm", "mdadm"), ("dmsetup", "dmsetup")];

/// Cache in front of RAID 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cache {
    /// dm-cache in write-back mode with its policy smq.
    Smq,
    /// No cache.
    None,
    /// dm-writecache: every write goes into the cache, and no read does.
    Write,
}

impl Cache {
    fn word(self) -> &'static str {
        match self {
            Cache::Smq => "smq",
            Cache::None => "none",
            Cache::Write => "writecache",
        }
    }

    /// Returns the size of a block of the cache in bytes: the unit in which the guest reports used space.
    fn block_bytes(self) -> u64 {
        match self {
            Cache::Smq => 64 << 10,
            Cache::None | Cache::Write => 4096,
        }
    }
}

/// Measures the load on ext4 in the lab.
pub(super) fn run(
    cache: Cache,
    flash: &str,
    replication: &Replication,
    say: &dyn Fn(&str),
) -> Result<Outcome, Failure> {
    let linux = Linux::with(PROGRAMS)?;
    let text = format!("{ARRAY} && {}", script(cache.word(), replication)?);
    let script = Script {
        memory_bytes: GUEST_BYTES,
        keeps_requests: true,
        ..Script::new(cache.word(), text, replication.seed(SEED))
    };
    let ran = linux.run(&script, &drives(flash), replication, say)?;
    let found = parsed(&ran.output)?;
    let phases = found.phases().map(|phase| measured(phase, found.begun_ns, &ran.requests));
    Ok(Outcome { phases, flash_bytes: found.used_blocks * cache.block_bytes() })
}

/// Replays the requests of ext4 with the policy of Flashcache. They come from a run of ext4 on one disk that is as large as
/// the array. The outcome has no latencies.
pub(super) fn run_flashcache(
    flash: &str,
    replication: &Replication,
    say: &dyn Fn(&str),
) -> Result<(Outcome, Replayed), Failure> {
    let linux = Linux::with(PROGRAMS)?;
    let seed = replication.seed(SEED);
    let text = script("trace", replication)?;
    let traced = Script { memory_bytes: GUEST_BYTES, keeps_requests: true, ..Script::new("trace", text, seed) };
    let ran = linux.run(&traced, &[PC_DISK.to_string()], replication, say)?;
    let found = parsed(&ran.output)?;
    let mut files = Vec::new();
    for (number, phase) in found.phases().into_iter().enumerate() {
        let from_ns = found.begun_ns + phase.begin_ns;
        let during = ran.requests[0]
            .iter()
            .filter(|request| (from_ns..from_ns + phase.elapsed_ns).contains(&request.arrival_ns));
        let lines = during.map(|request| flashcache::line(request.is_write, request.offset, request.bytes));
        let path = linux.folder().join(format!("phase{number}"));
        std::fs::write(&path, lines.collect::<String>()).map_err(Failure::failed)?;
        files.push(path.display().to_string());
    }
    let text = format!(
        "{ARRAY} && IMBREX reproduce {} --in-guest flashcache,{FLASH_BYTES},{}",
        super::EXPERIMENT.name,
        files.join(",")
    );
    let script = Script { keeps_requests: true, ..Script::new("replay", text, seed) };
    let ran = linux.run(&script, &drives(flash), replication, say)?;
    let replayed: Replayed = serde_json::from_str(&ran.output).map_err(Failure::failed)?;
    let [before, run] = found.phases();
    let of = |phase: &BenchPhase, (begin, end): (u64, u64)| Measured {
        operations: phase.operations,
        bytes: phase.bytes,
        elapsed_ns: end - begin,
        latency_ns: None,
        drives: ran.requests.iter().map(|drive| did(drive, begin, end)).collect(),
    };
    let phases = [of(before, replayed.phases[0]), of(run, replayed.phases[1])];
    let flash_bytes = replayed.used_blocks * flashcache::BLOCK_BYTES;
    Ok((Outcome { phases, flash_bytes }, replayed))
}

/// Returns the disks of the array, then the flash.
fn drives(flash: &str) -> Vec<String> {
    std::iter::repeat_n(RAID_DISK.to_string(), RAID_DISKS).chain([flash.to_string()]).collect()
}

fn script(cache: &str, replication: &Replication) -> Result<String, Failure> {
    let seed = replication.seed(SEED);
    let disk = imbrex::drives::fresh(RAID_DISK)?.capacity_bytes() - ARRAY_BYTES;
    let size = (disk * (RAID_DISKS as u64 - 1)) & !((1 << 20) - 1);
    Ok(format!(
        "cache={cache} files={SERVER_FILES} rounds={SERVER_ROUNDS} seed={seed} flash={FLASH_BYTES} program=IMBREX \
         memory={SERVER_MEMORY_BYTES} load={LOAD_BYTES} journal={JOURNAL_BYTES} size={size}\n{SCRIPT}"
    ))
}

/// Returns the monotonic clock in nanoseconds, for the word `clock`, in the guest. For `flashcache`, a size of flash in
/// bytes, and files with requests, replays these requests.
pub(in crate::jin) fn in_guest(words: &[&str]) -> Result<String, Failure> {
    match words {
        ["clock"] => Ok(monotonic_ns().to_string()),
        ["flashcache", bytes, files @ ..] => {
            let bytes = bytes.parse().map_err(|_| Failure::usage("a size in bytes is needed"))?;
            flashcache::replay(files, bytes, "/dev/vdf", "/dev/md0")
        }
        _ => Err(Failure::usage("the word 'clock' or 'flashcache' is needed")),
    }
}

pub(super) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Output of the script.
struct Found {
    /// The guest's clock at the begin of the benchmark, in nanoseconds.
    begun_ns: u64,
    /// The two phases.
    before: BenchPhase,
    run: BenchPhase,
    /// Number of blocks of flash that the cache uses, in its own unit.
    used_blocks: u64,
}

impl Found {
    fn phases(&self) -> [&BenchPhase; 2] {
        [&self.before, &self.run]
    }
}

/// Parses the output of the script: the clock at the begin of the benchmark, its document, and the used blocks of flash.
fn parsed(output: &str) -> Result<Found, Failure> {
    let unclear = || Failure::failed("the guest printed something else than a clock, a document and a number");
    let (clock, rest) = output.split_once('\n').ok_or_else(unclear)?;
    let begun_ns: u64 = clock.parse().map_err(|_| unclear())?;
    let (document, used) = rest.trim_end().rsplit_once('\n').ok_or_else(unclear)?;
    let used_blocks: u64 = used.parse().map_err(|_| unclear())?;
    let phases = BenchDocument::parse(document)?.phases;
    let [before, run] = <[BenchPhase; 2]>::try_from(phases).map_err(|_| unclear())?;
    Ok(Found { begun_ns, before, run, used_blocks })
}

fn measured(phase: &BenchPhase, begun_ns: u64, requests: &[Vec<Request>]) -> Measured {
    let from_ns = begun_ns + phase.begin_ns;
    let asked = phase.kinds.iter().filter(|(name, _)| *name != "syncfs");
    Measured {
        operations: phase.operations,
        bytes: phase.bytes,
        elapsed_ns: phase.elapsed_ns,
        latency_ns: Some(super::super::mean(asked.map(|(_, figures)| (figures.count, figures.latency_ns.mean)))),
        drives: requests.iter().map(|drive| did(drive, from_ns, from_ns + phase.elapsed_ns)).collect(),
    }
}

/// Returns the work of a drive between two times. `requests` are in order of arrival. A request that was answered in
/// this time counts as moved.
fn did(requests: &[Request], from_ns: u64, to_ns: u64) -> Did {
    let mut did = Did::default();
    // The end of the time that is counted as busy.
    let mut counted_ns = from_ns;
    for request in requests {
        let (begin, end) = (request.arrival_ns.max(counted_ns), request.end_ns.min(to_ns));
        if begin < end {
            did.busy_ns += end - begin;
            counted_ns = end;
        }
        if (from_ns..to_ns).contains(&request.end_ns) {
            let bytes = if request.is_write { &mut did.written_bytes } else { &mut did.read_bytes };
            *bytes += request.bytes;
        }
    }
    did
}

#[cfg(test)]
mod tests {
    //! Goal: the guest's output is parsed correctly, and a missing part is an error; a drive is busy while it has a
    //! request. Method: an output and requests written here.

    use super::*;

    const OUTPUT: &str = r#"5
{
  "schema": "imbrex.fs-bench/1",
  "phases": [
    { "name": "pre-allocate", "begin_ns": 1, "elapsed_ns": 100, "done": 1, "operations": 7, "bytes": 70,
      "kinds": { "create": { "count": 3, "latency_ns": { "mean": 10, "max": 1 } },
                 "write": { "count": 1, "latency_ns": { "mean": 50, "max": 1 } },
                 "syncfs": { "count": 1, "latency_ns": { "mean": 90000, "max": 1 } } } },
    { "name": "run", "begin_ns": 101, "elapsed_ns": 200, "done": 1, "operations": 9, "bytes": 90, "kinds": {} }
  ]
}
409
"#;

    fn request(arrival_ns: u64, end_ns: u64, is_write: bool) -> Request {
        Request { arrival_ns, end_ns, is_write, offset: 0, bytes: 1000 }
    }

    #[test]
    fn an_output_is_an_outcome() {
        let requests = vec![vec![request(0, 10, false), request(90, 110, true)]; 6];
        let found = parsed(OUTPUT).expect("it has all there is");
        assert_eq!((found.used_blocks, found.begun_ns), (409, 5));
        let [before, run] = &found.phases().map(|phase| measured(phase, found.begun_ns, &requests));
        assert_eq!((before.operations, before.bytes, before.elapsed_ns, before.latency_ns), (7, 70, 100, Some(20)));
        // From 6 to 106, then to 306.
        assert_eq!((before.disk_ns(), run.disk_ns()), (4 + 16, 4));
        assert_eq!((before.drives[0].read_bytes, run.drives[0].written_bytes), (1000, 1000));
    }

    #[test]
    fn requests_at_the_same_time_count_once() {
        let requests = [request(0, 100, false), request(10, 50, true), request(60, 120, true), request(150, 160, true)];
        let all = Did { busy_ns: 130, read_bytes: 1000, written_bytes: 3000 };
        assert_eq!(did(&requests, 0, 200), all);
        assert_eq!(did(&requests, 20, 155).busy_ns, 100 + 5);
    }

    #[test]
    fn a_missing_part_is_an_error() {
        for part in ["5\n", "409\n", "\"run\"", "\"phases\""] {
            let line_less: Vec<&str> = OUTPUT.split_inclusive('\n').filter(|line| !line.contains(part)).collect();
            assert!(parsed(&line_less.concat()).is_err(), "without '{part}'");
        }
    }
}
