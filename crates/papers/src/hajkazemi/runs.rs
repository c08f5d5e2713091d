//! Runs of workloads on drives: as many at once as there are cores, each made once however many experiments ask for it.
//!
//! Invariants:
//! 1. Results do not depend on which run ends first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use imbrex::drives::fresh;
use imbrex::run::many;
use imbrex::{Failure, Progress, Run};
use imbrex_disk::Sectors;
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveResult, DriveSeries, Options};

use super::under_test::PROFILE;
use super::workloads;

/// The queue of Hajkazemi 2019 §3.
const QUEUE: u32 = 64;

/// What a run came to.
pub struct Measured {
    /// Its results.
    pub result: DriveResult,
    /// Its curves.
    pub series: DriveSeries,
}

/// Runs by workload and layer.
pub type Runs = BTreeMap<(String, String), Arc<Measured>>;

/// What has been run by this process: the experiments share it.
static KEPT: Mutex<Runs> = Mutex::new(BTreeMap::new());

/// The runs of every one of `names` on every one of `layers`.
pub fn all(names: &[&str], layers: &[&str], progress: &Progress) -> Result<Runs, Failure> {
    let pairs: Vec<_> = names.iter().flat_map(|name| layers.iter().map(move |layer| (*name, *layer))).collect();
    let missing: Vec<_> = pairs.iter().copied().filter(|pair| kept(pair).is_none()).collect();
    many::of_each(&missing, None, |_, &(name, layer)| {
        keep((name, layer), one(name, layer, progress)?);
        Ok(())
    })?;
    let found = pairs.iter().map(|pair| (owned(pair), kept(pair).expect("it has been run")));
    Ok(found.collect())
}

fn owned((name, layer): &(&str, &str)) -> (String, String) {
    (name.to_string(), layer.to_string())
}

fn kept(pair: &(&str, &str)) -> Option<Arc<Measured>> {
    KEPT.lock().expect("no thread panics while it holds the runs").get(&owned(pair)).cloned()
}

fn keep(pair: (&str, &str), run: Measured) {
    KEPT.lock().expect("no thread panics while it holds the runs").insert(owned(&pair), Arc::new(run));
}

/// The drive of §3 with `layer`, no smaller than the workload.
fn drive(name: &str, layer: &str) -> Result<Drive, Failure> {
    let drive = fresh(&format!("{PROFILE}+{layer}"))?;
    let Some(sectors) = workloads::reach_sectors(name) else { return Ok(drive) };
    let sectors = Sectors((sectors * 512).div_ceil(drive.disk.sector_bytes as u64));
    Ok(drive.grown_to(sectors, &[])?)
}

fn one(name: &str, layer: &str, progress: &Progress) -> Result<Measured, Failure> {
    let drive = drive(name, layer)?;
    let mut source = workloads::open(name, drive.capacity_bytes() / 512)?;
    let options = Options { arrival: Arrival::FixedQueue(QUEUE), schedule: Schedule::Fifo, ..Options::live(&drive) };
    let ran = Run::new(drive, options).shown(&format!("{name} {layer}"), progress).of(&mut source)?.whole()?;
    assert!(ran.outcome.metrics.rejected.is_empty(), "{name} fits {layer}: {:?}", ran.outcome.metrics.rejected);
    let (result, series) = ran.summary("");
    Ok(Measured { result, series })
}
