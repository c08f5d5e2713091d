//! Runs of workloads on drives: as many at once as there are cores, each made once however many experiments ask for it.
//!
//! Some hundred runs of some ten million requests take an hour. Where `IMBREX_KEPT_RUNS` names a folder, what a run came to is
//! kept there, and a run that is kept is not made again: for taking up what was interrupted. What is kept is of the program
//! that made it; another program wants another folder.
//!
//! Invariants:
//! 1. Results do not depend on which run ends first, nor on whether they were kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use imbrex::drives::fresh;
use imbrex::run::many;
use imbrex::{Failure, Progress, Run};
use imbrex_disk::Sectors;
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveResult, DriveSeries, Options};
use serde::{Deserialize, Serialize};

use super::under_test;
use super::workloads::Case;

/// The queue of Hajkazemi 2019 §3.
const QUEUE: u32 = 64;

/// The folder for what runs came to.
const KEPT_FOLDER: &str = "IMBREX_KEPT_RUNS";

/// Of these machines the curves are kept as well (§4, figs 12 and 13).
pub const WITH_CURVES: [&str; 3] = ["w46", "w28", "w56"];

/// What a run came to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Its numbers.
    pub numbers: Numbers,
    /// Its curves, where they are asked for.
    pub curves: Option<Curves>,
}

/// The numbers of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Numbers {
    /// Requests completed, and those of them that write.
    pub requests: u64,
    /// Requests that write.
    pub writes: u64,
    /// Sectors written at the medium for each the host wrote.
    pub amplification: f64,
    /// Operations that write at the medium, for each of the host's.
    pub operations: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: f64,
    /// 99 % of the requests are faster, in milliseconds.
    pub p99_ms: f64,
    /// 99.9 % of the requests are faster, in milliseconds.
    pub p999_ms: f64,
    /// Mean latency of writes in milliseconds.
    pub write_mean_ms: f64,
    /// 99.9 % of the writes are faster, in milliseconds.
    pub write_p999_ms: f64,
    /// Mean latency of reads in milliseconds.
    pub read_mean_ms: f64,
    /// Simulated seconds from the first request to the last completion.
    pub seconds: f64,
    /// Share of them in which the drive works.
    pub busy: f64,
    /// When the last request entered, in seconds.
    pub last_issue_seconds: f64,
    /// Seconds of the wall clock.
    pub wall_seconds: f64,
}

/// The curves of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Curves {
    /// Latencies of writes: (at most so many ns, how many writes), rising.
    pub writes: Vec<(u64, u64)>,
    /// (number of the request, when it entered in ns): the same numbers on every drive of one workload.
    pub issues: Vec<(u64, u64)>,
}

/// Runs by workload and label of the layer.
pub type Runs = BTreeMap<(Case, String), Arc<Measured>>;

/// What has been run by this process: the experiments share it.
static KEPT: Mutex<Runs> = Mutex::new(BTreeMap::new());

/// The runs of every one of `cases` on every one of `labels`.
pub fn all(cases: &[Case], labels: &[&str], progress: &Progress) -> Result<Runs, Failure> {
    let pairs: Vec<_> =
        cases.iter().flat_map(|case| labels.iter().map(move |label| (*case, label.to_string()))).collect();
    let mut missing: Vec<_> = pairs.iter().filter(|pair| kept(pair).is_none()).collect();
    missing.sort_by_key(|(case, _)| std::cmp::Reverse(case.requests()));
    many::of_each(&missing, None, |_, pair| {
        let run = match from_file(pair) {
            Some(run) => run,
            None => one(&pair.0, &pair.1, progress)?,
        };
        to_file(pair, &run)?;
        KEPT.lock().expect("no thread panics while it holds the runs").insert((*pair).clone(), Arc::new(run));
        Ok(())
    })?;
    Ok(pairs.into_iter().map(|pair| (pair.clone(), kept(&pair).expect("it has been run"))).collect())
}

fn kept(pair: &(Case, String)) -> Option<Arc<Measured>> {
    KEPT.lock().expect("no thread panics while it holds the runs").get(pair).cloned()
}

fn file((case, label): &(Case, String)) -> Option<PathBuf> {
    let name = format!("{} {label}.json", case.key());
    std::env::var_os(KEPT_FOLDER).map(|folder| PathBuf::from(folder).join(name))
}

fn from_file(pair: &(Case, String)) -> Option<Measured> {
    serde_json::from_str(&std::fs::read_to_string(file(pair)?).ok()?).ok()
}

fn to_file(pair: &(Case, String), run: &Measured) -> Result<(), Failure> {
    let Some(file) = file(pair).filter(|file| !file.exists()) else { return Ok(()) };
    let text = serde_json::to_string(run).map_err(Failure::failed)?;
    Ok(imbrex::files::replace(&file, text.as_bytes())?)
}

/// The drive of §3 with the layer called `label`, no smaller than the workload.
fn drive(case: &Case, label: &str) -> Result<Drive, Failure> {
    let drive = fresh(&under_test::drive(label))?;
    let Some(sectors) = case.reach_sectors() else { return Ok(drive) };
    let sectors = Sectors((sectors * 512).div_ceil(drive.disk.sector_bytes as u64));
    Ok(drive.grown_to(sectors, &[])?)
}

fn one(case: &Case, label: &str, progress: &Progress) -> Result<Measured, Failure> {
    let drive = drive(case, label)?;
    let mut source = case.open()?;
    let options = Options { arrival: Arrival::FixedQueue(QUEUE), schedule: Schedule::Fifo, ..Options::live(&drive) };
    let name = format!("{} {label}", case.key());
    let ran = Run::new(drive, options).shown(&name, progress).of(source.as_mut())?.whole()?;
    assert!(ran.outcome.metrics.rejected.is_empty(), "{name}: it fits: {:?}", ran.outcome.metrics.rejected);
    let (result, series) = ran.summary("");
    let curves = WITH_CURVES.contains(&case.name).then(|| curves(&series));
    Ok(Measured { numbers: numbers(&result, &series), curves })
}

fn numbers(result: &DriveResult, series: &DriveSeries) -> Numbers {
    let ms = |ns: f64| ns / 1e6;
    let latency = &result.latency_ns;
    let service = &result.service_ns;
    let busy_ns = service.seek + service.rotation + service.transfer + service.cleaning;
    Numbers {
        requests: result.completed,
        writes: result.host.writes,
        amplification: result.write_amplification,
        operations: result.medium.writes as f64 / result.host.writes as f64,
        mean_ms: ms(latency.all.mean as f64),
        p99_ms: ms(latency.all.p99 as f64),
        p999_ms: ms(latency.all.p999 as f64),
        write_mean_ms: ms(latency.write.mean as f64),
        write_p999_ms: ms(latency.write.p999 as f64),
        read_mean_ms: ms(latency.read.mean as f64),
        seconds: result.duration_ns as f64 / 1e9,
        busy: busy_ns as f64 / result.duration_ns as f64,
        last_issue_seconds: series.issues.last().map_or(0.0, |issue| issue.1 as f64 / 1e9),
        wall_seconds: result.wall_seconds,
    }
}

fn curves(series: &DriveSeries) -> Curves {
    Curves { writes: series.writes.buckets().collect(), issues: series.issues.clone() }
}
