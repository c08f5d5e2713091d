//! ext4 over RAID 5 of five served disks in the guest, with or without a flash cache: the words passed to the guest's
//! script, and the parser of its output.
//!
//! A run takes a quarter of an hour. If `IMBREX_KEPT_RUNS` names a folder, results are kept there, and a run is not
//! repeated as long as its words, drives and script stay equal.
//!
//! Invariants:
//! 1. The operations and bytes of a phase come from the guest. The work of the drives comes from their own counters
//!    during that phase.

use std::path::PathBuf;

use imbrex::Failure;
use imbrex::files::replace;
use serde::{Deserialize, Serialize};

use super::super::choices::{
    CACHE_FLASH, FLASH_BYTES, GUEST_MEMORY, GUEST_SECONDS, JOURNAL_BYTES, LOAD_BYTES, PACE, RAID_DISK, RAID_DISKS,
    SEED, SERVER_FILES, SERVER_MEMORY_BYTES, SERVER_ROUNDS,
};
use super::{Measured, Outcome};
use crate::Replication;
use crate::guest::{self, GuestOptions, GuestOutput};

const KEPT_FOLDER: &str = "IMBREX_KEPT_RUNS";
const SCRIPT: &str = "jin-fig09.sh";
/// Beginning of each line that the script itself prints.
const MARK: &str = "fig09: ";
/// Largest difference between the guest's clock and ours over the whole load, in percent, including the start and end
/// of the load's program.
const CLOCK_PERCENT: u64 = 5;

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

/// Measures the load on ext4 in the guest, or returns the kept results of an earlier run.
pub(super) fn run(cache: Cache, replication: &Replication, tell: &dyn Fn(&str)) -> Result<Outcome, Failure> {
    let seed = replication.seed(SEED);
    let disks = std::iter::repeat_n(RAID_DISK.to_string(), RAID_DISKS);
    let drives: Vec<String> = disks.chain([CACHE_FLASH.to_string()]).collect();
    let asked = GuestOptions {
        script: SCRIPT,
        words: words(cache, seed),
        drives: &drives,
        pace: PACE,
        memory: GUEST_MEMORY,
        seconds: GUEST_SECONDS,
        begins: &format!("{MARK}begins"),
        ends: &format!("{MARK}ended"),
    };
    let key = format!("{} {drives:?} {PACE}\n{}", asked.words, guest::script_text(SCRIPT)?);
    if let Some(outcome) = kept(cache, seed, &key) {
        return Ok(outcome);
    }
    let outcome = outcome(cache, &guest::run(&asked, replication.progress, tell)?)?;
    keep(cache, seed, key, &outcome)?;
    Ok(outcome)
}

/// Kept results of a run.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    outcome: Outcome,
}

/// Returns the path of the kept results, or `None` if results are not kept. The default seed has no part in the name.
fn place(cache: Cache, seed: u64) -> Option<PathBuf> {
    let name = match seed {
        SEED => format!("jin-fig09-{}.json", cache.word()),
        _ => format!("jin-fig09-{}-seed-{seed}.json", cache.word()),
    };
    std::env::var_os(KEPT_FOLDER).map(|folder| PathBuf::from(folder).join(name))
}

fn kept(cache: Cache, seed: u64, key: &str) -> Option<Outcome> {
    let text = std::fs::read_to_string(place(cache, seed)?).ok()?;
    let kept: Kept = serde_json::from_str(&text).ok()?;
    (kept.key == key).then_some(kept.outcome)
}

fn keep(cache: Cache, seed: u64, key: String, outcome: &Outcome) -> Result<(), Failure> {
    let Some(place) = place(cache, seed) else { return Ok(()) };
    let text = serde_json::to_string(&Kept { key, outcome: outcome.clone() }).map_err(Failure::failed)?;
    Ok(replace(&place, text.as_bytes())?)
}

fn words(cache: Cache, seed: u64) -> String {
    let slow = (1.0 / PACE).round() as u64;
    format!(
        "cache={},files={SERVER_FILES},rounds={SERVER_ROUNDS},seed={seed},flash={FLASH_BYTES},\
         memory={SERVER_MEMORY_BYTES},load={LOAD_BYTES},journal={JOURNAL_BYTES},slow={slow}",
        cache.word()
    )
}

/// Fields that are needed from the output of `imbrex fs bench --json`.
#[derive(Deserialize)]
struct Document {
    phases: Vec<Phase>,
}

#[derive(Deserialize)]
struct Phase {
    begin_ns: u64,
    elapsed_ns: u64,
    operations: u64,
    bytes: u64,
    kinds: std::collections::BTreeMap<String, Figures>,
}

#[derive(Deserialize)]
struct Figures {
    count: u64,
    latency_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    mean: u64,
}

fn outcome(cache: Cache, ran: &GuestOutput) -> Result<Outcome, Failure> {
    let unclear = |what: &str| Failure::failed(format!("the output of the guest has no {what}"));
    let document: Document = document(&ran.said).ok_or_else(|| unclear("document"))?;
    let [before, run] = &document.phases[..] else { return Err(unclear("two phases")) };
    let ended_ns = in_drives_time(run.begin_ns + run.elapsed_ns);
    if ran.between_ns.abs_diff(ended_ns) * 100 > ran.between_ns * CLOCK_PERCENT {
        return Err(Failure::failed(format!(
            "the guest's clock says that the load took {} s of the drives, ours {} s: the machine is too busy",
            ended_ns as f64 / 1e9,
            ran.between_ns as f64 / 1e9
        ))
        .or_try("again, with less else to do"));
    }
    let [used, _] = numbers(&ran.said, "flash").ok_or_else(|| unclear("line of the flash"))?;
    let [busy, all] = numbers(&ran.said, "processor").ok_or_else(|| unclear("line of the processor"))?;
    let phases = [before, run].map(|phase| measured(phase, ran));
    Ok(Outcome {
        phases,
        flash_bytes: used * cache.block_bytes(),
        processor_percent: Some(busy as f64 * 100.0 / all.max(1) as f64),
    })
}

fn measured(phase: &Phase, ran: &GuestOutput) -> Measured {
    let from_ns = in_drives_time(phase.begin_ns);
    let elapsed_ns = in_drives_time(phase.elapsed_ns);
    let asked = phase.kinds.iter().filter(|(name, _)| *name != "syncfs");
    let latency_ns = super::super::mean(asked.map(|(_, figures)| (figures.count, figures.latency_ns.mean)));
    Measured {
        operations: phase.operations,
        bytes: phase.bytes,
        elapsed_ns,
        latency_ns: in_drives_time(latency_ns),
        drives: (0..ran.drives.len()).map(|drive| ran.did(drive, from_ns, from_ns + elapsed_ns)).collect(),
    }
}

fn in_drives_time(ns: u64) -> u64 {
    (ns as f64 * PACE) as u64
}

/// Parses the JSON document between its two marks in the guest's output.
fn document(said: &str) -> Option<Document> {
    let (_, behind) = said.split_once(&format!("{MARK}document\n"))?;
    let (text, _) = behind.split_once(&format!("{MARK}end of document"))?;
    serde_json::from_str(text).ok()
}

/// Returns the two numbers of the script's line that begins with `word`.
fn numbers(said: &str, word: &str) -> Option<[u64; 2]> {
    let line = said.lines().find_map(|line| line.strip_prefix(MARK)?.strip_prefix(word))?;
    let numbers: Option<Vec<u64>> = line.split_whitespace().map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    //! Goal: the guest's output is parsed correctly, and a missing part is an error. Method: an output written here.

    use super::*;
    use crate::guest::{Did, Sample};

    const SAID: &str = r#"[    3.1] something of the kernel
fig09: begins
fig09: ended
fig09: processor 300 2000
fig09: flash 409 410
fig09: state 0 1955422208 cache 8 7/1024
fig09: document
{
  "schema": "imbrex.fs-bench/1",
  "phases": [
    { "name": "pre-allocate", "begin_ns": 10, "elapsed_ns": 1000, "operations": 7, "bytes": 70,
      "kinds": { "create": { "count": 3, "latency_ns": { "mean": 100, "max": 1 } },
                 "write": { "count": 1, "latency_ns": { "mean": 500, "max": 1 } },
                 "syncfs": { "count": 1, "latency_ns": { "mean": 90000, "max": 1 } } } },
    { "name": "run", "begin_ns": 1010, "elapsed_ns": 2000, "operations": 9, "bytes": 90, "kinds": {} }
  ]
}
fig09: end of document
"#;

    fn ran(said: &str) -> GuestOutput {
        let sample = |at_ns, busy_ns| Sample { at_ns, did: Did { busy_ns, ..Did::default() } };
        let drive = vec![sample(5, 1), sample(106, 41), sample(306, 91)];
        GuestOutput { said: said.into(), drives: vec![drive; 6], between_ns: 303 }
    }

    #[test]
    fn a_console_is_an_outcome() {
        let found = outcome(Cache::Smq, &ran(SAID)).expect("it has all there is");
        assert_eq!(found.flash_bytes, 409 * 65536);
        assert_eq!(found.processor_percent, Some(15.0));
        let [before, run] = &found.phases;
        assert_eq!((before.operations, before.bytes, before.elapsed_ns, before.latency_ns), (7, 70, 100, 20));
        assert_eq!((before.disk_ns(), run.disk_ns(), run.elapsed_ns), (40, 50, 200));
    }

    #[test]
    fn a_missing_part_is_an_error() {
        for word in ["processor", "flash", "document", "end of document", "run"] {
            let said: Vec<&str> = SAID.lines().filter(|line| !line.contains(word)).collect();
            assert!(outcome(Cache::Smq, &ran(&(said.join("\n") + "\n"))).is_err(), "without '{word}'");
        }
    }

    #[test]
    fn a_clock_that_goes_otherwise_is_an_error() {
        let far = GuestOutput { between_ns: 340, ..ran(SAID) };
        let error = outcome(Cache::Smq, &far).expect_err("it is a tenth off");
        assert!(error.to_string().contains("too busy"), "{error}");
    }
}
