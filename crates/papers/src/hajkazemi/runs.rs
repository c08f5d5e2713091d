//! Runs of workloads on drives. As many runs go on at once as there are cores. Each is made once, however many
//! experiments need its results.
//!
//! Some hundred runs of some ten million requests take an hour. If `IMBREX_KEPT_RUNS` names a folder, results are kept
//! there, and a run with kept results is not repeated, so an interrupted experiment can continue. Kept results are
//! valid only for the program that made them: another version of the program needs another folder.
//!
//! Invariants:
//! 1. Results depend neither on the order in which runs end, nor on whether they were kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use imbrex::drives::fresh;
use imbrex::run::many;
use imbrex::{Failure, Run};
use imbrex_disk::Sectors;
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveResult, DriveSeries, Options};
use serde::{Deserialize, Serialize};

use super::super::Replication;
use super::under_test;
use super::workloads::Case;

/// Depth of the queue (Hajkazemi 2019 §3).
const QUEUE: u32 = 64;

/// Environment variable that names the folder of kept results.
const KEPT_FOLDER: &str = "IMBREX_KEPT_RUNS";

/// Machines whose curves are kept, too (§4, figs 12 and 13).
pub(super) const WITH_CURVES: [&str; 3] = ["w46", "w28", "w56"];

/// Results of one run: a workload on a drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Single figures of the run.
    pub numbers: Numbers,
    /// Latencies of writes and times of issue in the run; only for the workloads of [`WITH_CURVES`], of which these are
    /// drawn, otherwise `None`.
    pub curves: Option<Curves>,
}

/// Single figures of one run of a workload on a drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Numbers {
    /// Number of requests that completed, reads and writes.
    pub requests: u64,
    /// Number of writes among the requests that completed.
    pub writes: u64,
    /// Write amplification: the ratio of sectors written to the medium to sectors that the host wrote.
    pub amplification: f64,
    /// Ratio of write operations on the medium, background work included, to write requests of the host.
    pub operations: f64,
    /// Mean latency of all requests, in milliseconds.
    pub mean_ms: f64,
    /// 99th percentile of the latency of all requests, in milliseconds.
    pub p99_ms: f64,
    /// 99.9th percentile of the latency of all requests, in milliseconds.
    pub p999_ms: f64,
    /// Mean latency of writes, in milliseconds.
    pub write_mean_ms: f64,
    /// 99.9th percentile of the latency of writes, in milliseconds.
    pub write_p999_ms: f64,
    /// Mean latency of reads, in milliseconds.
    pub read_mean_ms: f64,
    /// Simulated duration of the run, from its start to the last completion, in seconds.
    pub seconds: f64,
    /// Fraction (0 to 1) of the simulated duration in which the drive seeks, waits for the platter, transfers or
    /// cleans.
    pub busy: f64,
    /// Simulated time at which the last sampled request entered the drive's queue, in seconds; 0 if none was sampled.
    pub last_issue_seconds: f64,
    /// Duration of the simulation itself on the wall clock, in seconds.
    pub wall_seconds: f64,
}

/// Curves of one run, for charts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Curves {
    /// Histogram of the latencies of writes: pairs of an upper bound in nanoseconds and a number of writes, in
    /// ascending order of the bound.
    pub writes: Vec<(u64, u64)>,
    /// Samples of the issue of requests: pairs of the number of a request and the simulated time in nanoseconds at
    /// which it entered the drive's queue. All drives have samples of the same requests of a workload.
    pub issues: Vec<(u64, u64)>,
}

/// Results by workload and label of the layer.
pub(super) type Runs = BTreeMap<(Case, String), Arc<Measured>>;

/// Results of this process's runs, shared by the experiments.
static KEPT: Mutex<Runs> = Mutex::new(BTreeMap::new());

/// Returns the results of every workload in `cases`, with the seed of the replication, on every layer in `labels`,
/// after making the runs that are missing. The keys of the results are the workloads as given, whatever the seed.
pub(super) fn all(cases: &[Case], labels: &[&str], replication: &Replication) -> Result<Runs, Failure> {
    let pairs: Vec<_> =
        cases.iter().flat_map(|case| labels.iter().map(move |label| (*case, label.to_string()))).collect();
    let seeded = |(case, label): &(Case, String)| (case.of_replication(replication), label.clone());
    let mut missing: Vec<_> = pairs.iter().map(seeded).filter(|pair| kept(pair).is_none()).collect();
    missing.sort();
    missing.dedup();
    missing.sort_by_key(|(case, _)| std::cmp::Reverse(case.requests()));
    many::of_each(&missing, None, |_, pair| {
        let run = match from_file(pair, replication) {
            Some(run) => run,
            None => one(&pair.0, &pair.1, replication)?,
        };
        to_file(pair, &run, replication)?;
        KEPT.lock().expect("no thread panics while it holds the runs").insert(pair.clone(), Arc::new(run));
        Ok(())
    })?;
    let ran = |pair: (Case, String)| {
        let run = kept(&seeded(&pair)).expect("it has been run");
        (pair, run)
    };
    Ok(pairs.into_iter().map(ran).collect())
}

fn kept(pair: &(Case, String)) -> Option<Arc<Measured>> {
    KEPT.lock().expect("no thread panics while it holds the runs").get(pair).cloned()
}

fn file((case, label): &(Case, String), replication: &Replication) -> Option<PathBuf> {
    let name = format!("{} {label}.json", case.kept_key(replication));
    std::env::var_os(KEPT_FOLDER).map(|folder| PathBuf::from(folder).join(name))
}

fn from_file(pair: &(Case, String), replication: &Replication) -> Option<Measured> {
    serde_json::from_str(&std::fs::read_to_string(file(pair, replication)?).ok()?).ok()
}

fn to_file(pair: &(Case, String), run: &Measured, replication: &Replication) -> Result<(), Failure> {
    let Some(file) = file(pair, replication).filter(|file| !file.exists()) else { return Ok(()) };
    let text = serde_json::to_string(run).map_err(Failure::failed)?;
    Ok(imbrex::files::replace(&file, text.as_bytes())?)
}

/// Returns the drive of §3 with the layer called `label`, grown if the workload needs more space.
fn drive(case: &Case, label: &str, replication: &Replication) -> Result<Drive, Failure> {
    let drive = fresh(&under_test::drive(label))?;
    let Some(sectors) = case.reach_sectors(replication)? else { return Ok(drive) };
    let sectors = Sectors((sectors * 512).div_ceil(drive.disk.sector_bytes as u64));
    Ok(drive.grown_to(sectors, &[])?)
}

fn one(case: &Case, label: &str, replication: &Replication) -> Result<Measured, Failure> {
    let drive = drive(case, label, replication)?;
    let mut source = case.open(replication)?;
    let options = Options { arrival: Arrival::FixedQueue(QUEUE), schedule: Schedule::Fifo, ..Options::live(&drive) };
    let name = format!("{} {label}", case.key());
    let ran = Run::new(drive, options).shown(&name, replication.progress).of(source.as_mut())?.whole()?;
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

#[cfg(test)]
mod tests {
    //! Goal: a user's trace is run once, whatever the arrivals of the stand-ins, on a drive that has all its addresses.
    //! Method: a trace of two requests, one of them at 2 TB of a drive of 1 TB.

    use imbrex::Progress;
    use imbrex_trace::generators::Arrivals;

    use super::super::super::Traces;
    use super::super::under_test::CONVENTIONAL;
    use super::*;

    #[test]
    fn a_trace_is_run_once_on_a_drive_that_is_large_enough() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let rows = "version,time,op,size,lbn\n1,0.5,2a,4096,800\n1,0.75,28,8192,4000000000\n";
        std::fs::write(folder.path().join("w106.csv"), rows).expect("written");
        let traces = Traces::find(folder.path()).expect("there is one");
        let progress = Progress::silent();
        let replication = Replication::new(&progress, 0).with_traces(Some(&traces));
        let cases = Arrivals::ALL.map(|arrivals| Case::of("w106", arrivals));
        let runs = all(&cases, &[CONVENTIONAL], &replication).expect("they run");
        assert_eq!(runs.len(), cases.len());
        for run in runs.values() {
            assert!(Arc::ptr_eq(run, runs.values().next().expect("there is one")));
            assert_eq!((run.numbers.requests, run.numbers.writes), (2, 1));
        }
    }
}
