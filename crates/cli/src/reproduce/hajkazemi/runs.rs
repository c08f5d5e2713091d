//! Runs of workloads on drives: as many at once as there are cores, each made once however many experiments ask for it.
//!
//! Invariants:
//! 1. Results do not depend on which run ends first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use imbrex_disk::{Sectors, SimDuration, SimTime};
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{summarize, Arrival, Drive, DriveResult, DriveSeries, DriveSpec, Engine, Fit, Observer, Options};
use imbrex_trace::Source;

use super::{workloads, PROFILE};
use crate::error::Failure;
use crate::interrupt;
use crate::progress::Bars;

/// The queue of Hajkazemi 2019 §3.
const QUEUE: u32 = 64;

/// What a run came to.
pub struct Run {
    /// Its results.
    pub result: DriveResult,
    /// Its curves.
    pub series: DriveSeries,
}

/// Runs by workload and layer.
pub type Runs = BTreeMap<(String, String), Arc<Run>>;

/// What has been run by this process: the experiments share it.
static KEPT: Mutex<Runs> = Mutex::new(BTreeMap::new());

/// The runs of every one of `names` on every one of `layers`.
pub fn all(names: &[&str], layers: &[&str], bars: &Bars) -> Result<Runs, Failure> {
    let pairs: Vec<_> = names.iter().flat_map(|name| layers.iter().map(move |layer| (*name, *layer))).collect();
    let missing: Vec<_> = pairs.iter().copied().filter(|pair| kept(pair).is_none()).collect();
    let next = Mutex::new(missing.iter());
    let failed: Mutex<Option<Failure>> = Mutex::new(None);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    std::thread::scope(|scope| {
        for _ in 0..cores.min(missing.len()) {
            scope.spawn(|| loop {
                let pair = next.lock().expect("no thread panics while it takes a run").next();
                let Some(&(name, layer)) = pair else { return };
                match one(name, layer, bars) {
                    Ok(run) => keep((name, layer), run),
                    Err(failure) => *failed.lock().expect("no thread panics while it fails") = Some(failure),
                }
            });
        }
    });
    if let Some(failure) = failed.into_inner().expect("the threads have ended") {
        return Err(failure);
    }
    let found = pairs.iter().map(|pair| (owned(pair), kept(pair).expect("it has been run")));
    Ok(found.collect())
}

fn owned((name, layer): &(&str, &str)) -> (String, String) {
    (name.to_string(), layer.to_string())
}

fn kept(pair: &(&str, &str)) -> Option<Arc<Run>> {
    KEPT.lock().expect("no thread panics while it holds the runs").get(&owned(pair)).cloned()
}

fn keep(pair: (&str, &str), run: Run) {
    KEPT.lock().expect("no thread panics while it holds the runs").insert(owned(&pair), Arc::new(run));
}

/// The drive of §3 with `layer`, no smaller than the workload.
fn drive(name: &str, layer: &str) -> Result<Drive, Failure> {
    let spec = DriveSpec::parse(&format!("{PROFILE}+{layer}"))?;
    let profile = imbrex_disk::Profile::named(PROFILE).expect("the profile is built in");
    let drive = Drive::build(&spec, &profile)?;
    let Some(sectors) = workloads::reach_sectors(name) else { return Ok(drive) };
    let sectors = Sectors((sectors * 512).div_ceil(drive.disk.sector_bytes as u64));
    Ok(drive.grown_to(sectors, &[])?)
}

fn one(name: &str, layer: &str, bars: &Bars) -> Result<Run, Failure> {
    let drive = drive(name, layer)?;
    let mut source = workloads::open(name, drive.capacity_bytes() / 512)?;
    let options = Options {
        arrival: Arrival::FixedQueue(QUEUE),
        schedule: Schedule::Fifo,
        write_cache_bytes: drive.host.write_cache_bytes,
        read_ahead_bytes: drive.host.read_ahead_bytes,
        fit: Fit::Reject,
        warmup_requests: 0,
        window: SimDuration::from_secs(1),
        check: false,
    };
    let bar = bars.requests(&format!("{name} {layer}"), source.expected_requests());
    let mut watch = Watch { bar: &bar };
    let outcome = Engine::new(drive, options.clone(), &mut source, &mut watch).run()?;
    bar.finish_and_clear();
    if outcome.interrupted {
        return Err(Failure::failed("interrupted; nothing was written"));
    }
    assert!(outcome.metrics.rejected.is_empty(), "{name} fits {layer}: {:?}", outcome.metrics.rejected);
    let (result, series) = summarize(&outcome, &options, 0.0);
    Ok(Run { result, series })
}

struct Watch<'a> {
    bar: &'a indicatif::ProgressBar,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, requests: u64, _now: SimTime) -> bool {
        self.bar.set_position(requests);
        !interrupt::requested()
    }
}
