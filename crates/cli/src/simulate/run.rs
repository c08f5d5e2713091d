//! Running the drives: as many at once as there are cores, each with its own reader of the workload.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Instant;

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_layer::Plan;
use imbrex_sim::observer::IoRecord;
use imbrex_sim::{summarize, Arrival, Drive, DriveResult, DriveSeries, Engine, Fit, Observer, Options};
use indicatif::ProgressBar;

use super::drives::DrivePlan;
use super::sinks::{Sinks, Spools};
use crate::args::{FitChoice, SimulateArgs};
use crate::error::Failure;
use crate::interrupt;
use crate::progress::Bars;
use crate::workload::{Workload, WorkloadCounts};

/// What came of one drive.
pub struct Ran {
    /// Its results.
    pub result: DriveResult,
    /// Its curves.
    pub series: DriveSeries,
    /// What it was asked: the same for all, unless a generator runs by simulated time.
    pub counts: WorkloadCounts,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// Runs `workload` on all of `plans`, in order of theirs.
pub fn run_all(
    args: &SimulateArgs,
    workload: &Workload,
    plans: &[DrivePlan],
    sinks: &Sinks,
    bars: &Bars,
) -> Result<Vec<Ran>, Failure> {
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Option<Result<Ran, Failure>>>> = plans.iter().map(|_| Mutex::new(None)).collect();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let jobs = args.jobs.map_or(cores, |jobs| jobs as usize).min(plans.len());
    let device_sectors = smallest(plans);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(plan) = plans.get(index) else { return };
                let bar = bars.requests(plan.label(), workload.expected_requests());
                let ran = run_one(args, workload, device_sectors, index, plan, sinks, &bar);
                bar.finish();
                *slots[index].lock().expect("no thread panics while it holds a slot") = Some(ran);
            });
        }
    });
    let taken = slots.into_iter().map(|slot| slot.into_inner().expect("no thread panics while it holds a slot"));
    taken.map(|ran| ran.expect("every drive has been run")).collect()
}

/// Sectors (of 512 bytes) that every drive has: the space of a generator that names none.
fn smallest(plans: &[DrivePlan]) -> u64 {
    plans.iter().map(|plan| plan.capacity_bytes() / 512).min().unwrap_or(0)
}

fn run_one(
    args: &SimulateArgs,
    workload: &Workload,
    device_sectors: u64,
    index: usize,
    plan: &DrivePlan,
    sinks: &Sinks,
    bar: &ProgressBar,
) -> Result<Ran, Failure> {
    let drive = plan.build()?;
    let options = options(args, workload, &drive)?;
    let mut source = workload.open(device_sectors)?;
    let mut observer = Watch { bar, spools: sinks.spools(plan.label())? };
    let begun = Instant::now();
    let outcome = Engine::new(drive, options.clone(), &mut source, &mut observer).run()?;
    let wall_seconds = begun.elapsed().as_secs_f64();
    sinks.keep(index, observer.spools)?;
    let (mut result, series) = summarize(&outcome, &options, wall_seconds);
    result.drive = plan.label().to_string();
    result.baseline = plan.is_baseline;
    Ok(Ran { result, series, counts: source.counts(), interrupted: outcome.interrupted })
}

fn options(args: &SimulateArgs, workload: &Workload, drive: &Drive) -> Result<Options, Failure> {
    let depth = args.queue.unwrap_or_else(|| workload.default_depth());
    let arrival = args.arrival.as_deref().unwrap_or_else(|| workload.default_arrival());
    let schedule = args.schedule.as_deref().unwrap_or(&drive.host.schedule);
    let write_cache_bytes = size("--write-cache", args.write_cache.as_deref(), drive.host.write_cache_bytes)?;
    let read_ahead_bytes = size("--read-ahead", args.read_ahead.as_deref(), drive.host.read_ahead_bytes)?;
    let window_ns = imbrex_layer::parameters::parse_duration_ns(&args.window)
        .filter(|&ns| ns > 0)
        .ok_or_else(|| Failure::usage(format!("--window {}: expected a time such as 1s or 100ms", args.window)))?;
    Ok(Options {
        arrival: Arrival::named(arrival, depth).expect("the argument parser lets no other name through"),
        schedule: imbrex_sim::schedule::Schedule::named(schedule, SimDuration(drive.host.age_limit_ns))
            .ok_or_else(|| Failure::usage(format!("the profile's scheduler '{schedule}' is not known")))?,
        write_cache_bytes,
        read_ahead_bytes,
        fit: match args.fit {
            FitChoice::Wrap => Fit::Wrap,
            FitChoice::Scale => Fit::Scale(workload.end_sectors().unwrap_or(0)),
            FitChoice::Grow | FitChoice::Error => Fit::Reject,
        },
        warmup_requests: args.warmup,
        window: SimDuration(window_ns),
        check: args.check,
    })
}

/// A size or `off`, as given for `option`; else the profile's.
fn size(option: &str, given: Option<&str>, of_profile: u64) -> Result<u64, Failure> {
    match given {
        None => Ok(of_profile),
        Some("off") => Ok(0),
        Some(text) => imbrex_layer::parameters::parse_bytes(text)
            .ok_or_else(|| Failure::usage(format!("{option} {text}: expected a size such as 64MiB, or off"))),
    }
}

/// Shows progress, passes records on to the files, and ends the run when the user asks or a file fails.
struct Watch<'a> {
    bar: &'a ProgressBar,
    spools: Spools,
}

impl Watch<'_> {
    fn has_failed(&self) -> bool {
        self.spools.ios.as_ref().is_some_and(|spool| spool.has_failed())
            || self.spools.plans.as_ref().is_some_and(|spool| spool.has_failed())
    }
}

impl Observer for Watch<'_> {
    fn progress(&mut self, requests: u64, _now: SimTime) -> bool {
        self.bar.set_position(requests);
        !interrupt::requested() && !self.has_failed()
    }

    fn wants_ios(&self) -> bool {
        self.spools.ios.is_some()
    }

    fn io(&mut self, record: &IoRecord) {
        if let Some(spool) = &mut self.spools.ios {
            spool.record(record);
        }
    }

    fn wants_plans(&self) -> bool {
        self.spools.plans.is_some()
    }

    fn plan(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        if let Some(spool) = &mut self.spools.plans {
            spool.record(now, commands, plan);
        }
    }
}
