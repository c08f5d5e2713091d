//! The test bench of the guide: a drive in its state as sold, a workload, and the measurements that a buyer asks for.
//!
//! Invariants:
//! 1. Every drive has a volatile cache of 64 MiB and reads ahead up to half of that, whatever its profile says, unless
//!    the run turns the volatile cache off. Every flush empties the cache.
//! 2. The cliff is the first time that a host request has to wait until the layer has cleaned something. It is found
//!    in the plans of the layer, since a volatile cache hides it from the host.

use imbrex::drives::fresh;
use imbrex::{Failure, Run};
use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_layer::{GroupKind, Plan};
use imbrex_sim::{Arrival, Drive, DriveResult, DriveSeries, IoRecord, Observer, Options};
use imbrex_trace::Source;
use imbrex_trace::generators::{self, WorkloadSpec};

use super::super::Replication;

/// Size of the volatile cache in bytes, as drives of the time have it.
const WRITE_CACHE_BYTES: u64 = 64 << 20;

/// Limit of read-ahead in bytes: half of the volatile cache, as in the profiles of drives as sold.
const READ_AHEAD_BYTES: u64 = WRITE_CACHE_BYTES / 2;

/// Seed of a built-in workload.
const BUILT_IN_SEED: u64 = 1;

/// Settings of a run of the guide: a drive as sold, and a workload.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    /// Specification of the drive: `PROFILE+LAYER:key=value,…`.
    pub drive: &'a str,
    /// Name of a built-in workload, or a generator's specification in fio's terms. The workload must keep a queue of
    /// fixed depth full; with another the run fails.
    pub workload: &'a str,
    /// Whether the drive has a volatile write cache, which is then of 64 MiB instead of the size in its profile.
    pub has_write_cache: bool,
    /// Number of requests after which the run ends, counted from the cliff: the first request that waits for cleaning.
    /// `None` runs the workload to its end.
    pub past_cliff: Option<u64>,
}

/// The cliff of a run: the first time that a request of the host had to wait until the layer had cleaned.
#[derive(Clone, Copy, Default)]
pub(super) struct Cliff {
    /// Number of requests that had completed before the cliff: the first time that a request had to wait for cleaning.
    pub requests: u64,
    /// Simulated time of the cliff: the first time that a request had to wait for cleaning.
    pub at: SimTime,
}

/// Results of a run.
pub(super) struct Cost {
    /// Summary of the run, as `imbrex simulate` gives it for a drive.
    pub result: DriveResult,
    /// Numbers of completions and latencies over the time of the run.
    pub series: DriveSeries,
    /// The first time that a request had to wait for cleaning; `None` if none had to.
    pub cliff: Option<Cliff>,
    /// The bursts of the workload, in order of time: groups of requests between pauses of a second or more.
    pub bursts: Vec<Burst>,
}

/// A burst: the requests of a workload between two pauses of a second or more.
#[derive(Clone, Copy)]
pub(super) struct Burst {
    /// Number of requests of the burst that completed before one had to wait for the layer's cleaning: all of them if
    /// none had to.
    pub free: u64,
    /// Whether a request of the burst had to wait until the layer had cleaned.
    pub has_waited: bool,
}

impl<'a> Case<'a> {
    /// Returns a run of the whole `workload` on `drive` as sold.
    pub(super) fn new(drive: &'a str, workload: &'a str) -> Case<'a> {
        Case { drive, workload, has_write_cache: true, past_cliff: None }
    }

    /// Simulates the run and returns its results.
    pub(super) fn make(&self, replication: &Replication) -> Result<Cost, Failure> {
        let drive = fresh(self.drive)?;
        let (mut source, arrival) = open(self.workload, drive.capacity_bytes() / 512, replication)?;
        let options = self.options(&drive, arrival);
        let mut watch = Watch { past_cliff: self.past_cliff, ..Watch::default() };
        let ran = Run::new(drive, options)
            .shown(self.drive, replication.progress)
            .on(source.as_mut(), &mut watch)?
            .whole()?;
        let (result, series) = ran.summary(self.drive);
        Ok(Cost { result, series, cliff: watch.cliff, bursts: watch.bursts })
    }

    fn options(&self, drive: &Drive, arrival: Arrival) -> Options {
        let write_cache_bytes = if self.has_write_cache { WRITE_CACHE_BYTES } else { 0 };
        Options { arrival, write_cache_bytes, read_ahead_bytes: READ_AHEAD_BYTES, ..Options::live(drive) }
    }
}

/// Opens the workload that `text` names or describes, on a drive of `device_sectors` sectors of 512 bytes.
///
/// # Errors
///
/// The workload does not exist, or does not keep a queue full.
fn open(text: &str, device_sectors: u64, replication: &Replication) -> Result<(Box<dyn Source>, Arrival), Failure> {
    let (source, arrival) = match generators::named(text) {
        Some(entry) => {
            let opened = entry.open(device_sectors, Some(replication.seed(BUILT_IN_SEED))).map_err(Failure::usage)?;
            (opened.source, opened.arrival)
        }
        None => {
            let spec = WorkloadSpec::parse(text).map_err(Failure::usage)?;
            let arrival = spec.arrival();
            (Box::new(replication.generator(text, device_sectors)) as Box<dyn Source>, arrival)
        }
    };
    let generators::Arrival::Closed { depth } = arrival else {
        return Err(Failure::usage(format!("'{text}' keeps no queue full: the guide asks for throughput")));
    };
    Ok((source, Arrival::Closed(depth)))
}

impl Cost {
    /// Returns the simulated duration of the run, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.result.duration_ns as f64 / 1e9
    }

    /// Returns the number of requests a second over the whole run.
    pub(super) fn rate(&self) -> f64 {
        self.result.completed as f64 / self.seconds()
    }

    /// Returns the number of requests a second before the cliff, or over the whole run if there was no cliff.
    pub(super) fn rate_before(&self) -> f64 {
        match self.cliff {
            Some(cliff) if cliff.requests > 0 => cliff.requests as f64 / (cliff.at.0 as f64 / 1e9),
            Some(_) => 0.0,
            None => self.rate(),
        }
    }

    /// Returns the number of requests a second after the cliff, if there was one.
    pub(super) fn rate_after(&self) -> Option<f64> {
        let cliff = self.cliff?;
        let seconds = self.seconds() - cliff.at.0 as f64 / 1e9;
        (seconds > 0.0).then(|| (self.result.completed - cliff.requests) as f64 / seconds)
    }

    /// Returns the number of bytes read and written a second.
    pub(super) fn bytes_per_second(&self) -> f64 {
        let host = &self.result.host;
        (host.read_blocks + host.write_blocks) as f64 * 512.0 / self.seconds()
    }

    /// Returns (seconds, requests a second) for every window.
    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        let width = self.series.window_ns as f64 / 1e9;
        let windows = self.series.windows.iter().enumerate();
        windows.map(|(index, window)| (index as f64 * width, (window.reads + window.writes) as f64 / width)).collect()
    }
}

#[derive(Default)]
struct Watch {
    past_cliff: Option<u64>,
    completed: u64,
    cliff: Option<Cliff>,
    bursts: Vec<Burst>,
    last_end: SimTime,
}

/// Shortest pause of the workload that separates two bursts.
const PAUSE: SimDuration = SimDuration::from_secs(1);

impl Observer for Watch {
    fn progress(&mut self, requests: u64, _now: SimTime) -> bool {
        let enough = self.cliff.zip(self.past_cliff).is_some_and(|(cliff, more)| requests >= cliff.requests + more);
        !enough
    }

    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        self.completed += 1;
        if self.bursts.is_empty() || record.entry.0 >= self.last_end.0 + PAUSE.0 {
            self.bursts.push(Burst { free: 0, has_waited: false });
        }
        self.last_end = self.last_end.max(record.end);
        let burst = self.bursts.last_mut().expect("one has just begun");
        burst.free += u64::from(!burst.has_waited);
    }

    fn wants_plans(&self) -> bool {
        true
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        let cleans = !commands.is_empty() && plan.phases.iter().any(|phase| phase.kind == GroupKind::Cleaning);
        if cleans {
            self.cliff.get_or_insert(Cliff { requests: self.completed, at: now });
            if let Some(burst) = self.bursts.last_mut() {
                burst.has_waited = true;
            }
        }
    }
}
